//! Connections to the server that is recorded. Each connection of a client has one of its own, so that what
//! becomes of one side becomes of the other.

use hyper::{body::Incoming, client::conn::http1, http};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Mutex,
    task::AbortHandle,
};

use super::body::Sent;
use crate::drivers::{
    causes,
    http::{BaseUrl, connect::open_stream},
};

/// The way from one client's connection to the server.
#[derive(Debug)]
pub(super) struct Upstream {
    base: BaseUrl,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    sender: http1::SendRequest<Sent>,
    driver: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Why there is no response.
#[derive(Debug)]
pub(super) enum Failure {
    NotConnected(String),
    NoResponse(String),
}

impl Upstream {
    pub(super) fn new(base: BaseUrl) -> Self {
        Self {
            base,
            open: Mutex::new(None),
        }
    }

    /// Sends a request, over the connection of the last one where that is still open.
    pub(super) async fn send(
        &self,
        request: http::Request<Sent>,
    ) -> Result<http::Response<Incoming>, Failure> {
        let mut open = self.open.lock().await;
        let mut request = request;
        if let Some(kept) = open.as_mut()
            && kept.sender.ready().await.is_ok()
        {
            match kept.sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                // The server closed it meanwhile, and has not seen the request.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => {
                        *open = None;
                        return Err(Failure::NoResponse(causes(&error.into_error())));
                    }
                },
            }
        }
        let fresh = self.connect().await.map_err(Failure::NotConnected)?;
        let sent = open.insert(fresh).sender.send_request(request).await;
        sent.map_err(|error| Failure::NoResponse(causes(&error)))
    }

    async fn connect(&self) -> Result<Open, String> {
        let stream = open_stream(&self.base).await?;
        start(TokioIo::new(stream)).await
    }
}

async fn start<S>(stream: TokioIo<S>) -> Result<Open, String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = http1::Builder::new()
        .preserve_header_case(true)
        .handshake(stream)
        .await
        .map_err(|error| causes(&error))?;
    let driver = tokio::spawn(async move {
        // What goes wrong is also told to whoever waits for the response or its body.
        let _ = connection.with_upgrades().await;
    });
    Ok(Open {
        sender,
        driver: driver.abort_handle(),
    })
}
