//! The model relay of a scripted server, and the local model behind the page that answers it.
//!
//! The relay belongs to no session. Its payloads are open in the seed; here `ready {channel}`,
//! `request {requestId, method, path, body}` and `cancel {requestId}`, answered at
//! `/api/model-relay/requests/ID/chunk`, `/end` and `/error`. The path of a request is its id, so that each has a
//! local answer of its own. The local model says bytes that tell their place, so that lost, repeated and swapped
//! ones show.
//!
//! Source: seed 000, lines 639 and 784-790.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{
    drivers::scripted::{Conversation, head},
    stage::{ClientStage, client::path_of},
    transcript::header,
};

/// Where the page finds the local model.
pub(super) const LOCAL_MODEL: &str = "/local-model";

/// The relay's stream and the answers of the local model that are open.
#[derive(Debug, Default)]
pub(super) struct Relay {
    stream: Option<Conversation>,
    answers: BTreeMap<String, Answer>,
}

/// An answer of the local model.
#[derive(Debug)]
struct Answer {
    conversation: Conversation,
    /// Bytes so far.
    said: usize,
}

impl Relay {
    /// Opens the stream that the page asks for; whether it asked. One that says that it does not relay is not waited
    /// for.
    pub(super) async fn open(&mut self, stage: &ClientStage) -> bool {
        let asked = tokio::select! {
            asked = stage.request_for("/api/model-relay/stream") => asked,
            () = stage.cannot("relay") => None,
        };
        let Some(mut stream) = asked else {
            return false;
        };
        let channel = header(&stream.request.headers, "x-model-relay").map(str::to_owned);
        stream.open_events().await;
        self.stream = Some(stream);
        self.tell("ready", &json!({ "channel": channel })).await;
        true
    }

    /// Cuts the stream, as when the network fails.
    pub(super) async fn cut(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.cut().await;
        }
    }

    /// Asks for a model under this id; whether the page asked its local model then.
    pub(super) async fn request(&mut self, stage: &ClientStage, id: &str) -> bool {
        let path = format!("/{id}");
        let body = json!({ "model": "local", "messages": [] });
        let asks = json!({ "requestId": id, "method": "POST", "path": path, "body": body });
        self.tell("request", &asks).await;
        let own = format!("{LOCAL_MODEL}{path}");
        let Some(mut conversation) = stage.request_that(|request| path_of(request) == own).await
        else {
            return false;
        };
        conversation
            .open(&head(200, "application/octet-stream"))
            .await;
        let answer = Answer {
            conversation,
            said: 0,
        };
        self.answers.insert(id.to_owned(), answer);
        true
    }

    /// Lets the local model say so many pieces of so many bytes.
    pub(super) async fn pieces(&mut self, id: &str, count: usize, bytes: usize) {
        let Some(answer) = self.answers.get_mut(id) else {
            return;
        };
        for _ in 0..count {
            let from = answer.said;
            answer.said += bytes;
            let piece: Vec<u8> = (from..answer.said).map(byte_at).collect();
            answer.conversation.send(piece).await;
        }
    }

    /// Ends the answer of the local model.
    pub(super) async fn finish(&mut self, id: &str) {
        if let Some(answer) = self.answers.remove(id) {
            answer.conversation.finish().await;
        }
    }

    /// Takes a request back.
    pub(super) async fn cancel(&mut self, id: &str) {
        self.tell("cancel", &json!({ "requestId": id })).await;
    }

    /// Ends the record of what is open.
    pub(super) fn end_here(&mut self) {
        let answers = self.answers.values_mut();
        answers
            .map(|answer| &mut answer.conversation)
            .chain(&mut self.stream)
            .for_each(Conversation::ends_here);
    }

    async fn tell(&mut self, kind: &str, data: &serde_json::Value) {
        if let Some(stream) = &mut self.stream {
            stream
                .send(format!("event: {kind}\ndata: {data}\n\n"))
                .await;
        }
    }
}

/// The byte at a place of an answer.
fn byte_at(place: usize) -> u8 {
    let mixed = place.wrapping_mul(31) ^ (place >> 8).wrapping_mul(17) ^ (place >> 16);
    mixed.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_blocks_of_an_answer_differ() {
        let block = |number: usize| (number * 256..(number + 1) * 256).map(byte_at).collect();
        let blocks: Vec<Vec<u8>> = (0..64).map(block).collect();
        assert!(blocks.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
