//! A body as the transcript has it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::{sync::mpsc, task::AbortHandle};

use super::state::{State, Unanswered};
use crate::transcript::End;

/// A body on its way to the client.
pub(super) struct Replayed {
    pieces: mpsc::Receiver<Result<Bytes, ()>>,
    task: Option<AbortHandle>,
    over: Option<(Arc<State>, usize)>,
}

impl Replayed {
    /// The body of the exchange at this place. One that `may_hang` stays open when nobody ended it.
    pub(super) fn start(state: Arc<State>, place: usize, may_hang: bool) -> Self {
        let (sink, pieces) = mpsc::channel(1);
        let task = tokio::spawn(pour(Arc::clone(&state), place, sink, may_hang));
        Self {
            pieces,
            task: Some(task.abort_handle()),
            over: Some((state, place)),
        }
    }

    /// Words of our own.
    pub(super) fn words(text: &str) -> Self {
        let (sink, pieces) = mpsc::channel(1);
        // There is room for one.
        let _ = sink.try_send(Ok(Bytes::from(format!("{text}\n"))));
        Self {
            pieces,
            task: None,
            over: None,
        }
    }

    /// No body at all, as before a switch of protocols.
    pub(super) fn nothing() -> Self {
        let (_, pieces) = mpsc::channel(1);
        Self {
            pieces,
            task: None,
            over: None,
        }
    }
}

impl Drop for Replayed {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        if let Some((state, place)) = self.over.take() {
            state.over(place);
        }
    }
}

async fn pour(
    state: Arc<State>,
    place: usize,
    sink: mpsc::Sender<Result<Bytes, ()>>,
    may_hang: bool,
) {
    let Some(played) = state.script.exchanges.get(place) else {
        return;
    };
    for piece in &played.body {
        state.until(piece).await;
        let words = state.words();
        if sink.send(Ok(words.say(&piece.what).into())).await.is_err() {
            return;
        }
    }
    match &played.end {
        Some(end) if matches!(end.what, End::Complete) => state.until(end).await,
        Some(end) if matches!(end.what, End::Broken(_) | End::NotHttp(_)) => {
            state.until(end).await;
            let _ = sink.send(Err(())).await;
        }
        // The client closed it, or nobody did.
        _ if may_hang => sink.closed().await,
        _ => {}
    }
}

impl Body for Replayed {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.pieces.poll_recv(context).map(|piece| {
            piece.map(|piece| match piece {
                Ok(bytes) => Ok(Frame::data(bytes)),
                Err(()) => Err(std::io::Error::other(Unanswered::Cut)),
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.task.is_none() && self.pieces.is_empty() && self.pieces.is_closed()
    }
}
