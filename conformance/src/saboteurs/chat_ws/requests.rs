//! Frames of a client of which the server makes something else.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{each, kind, text};
use crate::{
    saboteurs::{
        Sabotage,
        channel::{ChannelInfo, Message, MessageRewriter, OutMessage},
        saboteur::Saboteur,
    },
    transcript::Side,
};

/// The saboteurs of this file.
pub const SABOTEURS: &[Sabotage] = &[
    Sabotage::new("CWS-003", a_socket_for_each_chat),
    Sabotage::new("CWS-031", subscribes_only_at_first),
    Sabotage::new("CWS-040", new_chats_go_on_with_the_last),
    Sabotage::new("CWS-042", the_queue_is_only_announced),
    Sabotage::new("CWS-049", cancel_ends_all_jobs),
    Sabotage::new("CWS-052", the_queue_leaves_with_its_socket),
];

/// CWS-040: a message without a session goes to the last one of the socket.
fn new_chats_go_on_with_the_last() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut last = String::new();
        move |from, frame: &Value| {
            if from == Side::Server && kind(frame) == "chat:complete" {
                text(frame, "sessionId").clone_into(&mut last);
                return None;
            }
            let is_new = from == Side::Client
                && kind(frame) == "chat:send"
                && text(frame, "sessionId").is_empty();
            (is_new && !last.is_empty()).then(|| {
                let mut frame = frame.clone();
                frame["payload"]["sessionId"] = json!(last);
                vec![OutMessage::json(&frame)]
            })
        }
    })
}

/// CWS-042: at the end of a turn the queued text is announced, and no turn begins.
fn the_queue_is_only_announced() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut queued: Option<Value> = None;
        move |from, frame: &Value| {
            if from == Side::Client && kind(frame) == "chat:set_queue" {
                queued = Some(frame["payload"].clone());
                return Some(Vec::new());
            }
            let stops = from == Side::Server
                && kind(frame) == "chat:active"
                && frame.pointer("/payload/running") == Some(&json!(false));
            let queued = stops.then(|| queued.take()).flatten()?;
            let flushed = json!({ "type": "chat:queued_flushed", "payload": {
                "projectSlug": queued["projectSlug"], "target": queued["projectSlug"],
                "sessionId": queued["sessionId"], "text": queued["text"],
            }});
            Some(vec![OutMessage::json(frame), OutMessage::json(&flushed)])
        }
    })
}

/// CWS-049: a cancel ends every job that the socket heard of.
fn cancel_ends_all_jobs() -> Arc<dyn Saboteur> {
    each(|_| {
        let mut jobs: Vec<String> = Vec::new();
        move |from, frame: &Value| {
            let job = text(frame, "jobId").to_owned();
            if from == Side::Server {
                if !job.is_empty() && !jobs.contains(&job) {
                    jobs.push(job);
                }
                return None;
            }
            (kind(frame) == "chat:cancel").then(|| {
                let cancel =
                    |job: &String| json!({ "type": "chat:cancel", "payload": { "jobId": job } });
                jobs.iter()
                    .map(|job| OutMessage::json(&cancel(job)))
                    .collect()
            })
        }
    })
}

/// CWS-052: when a socket closes, what it queued is thrown away.
fn the_queue_leaves_with_its_socket() -> Arc<dyn Saboteur> {
    struct Leaving(Option<Value>);

    impl MessageRewriter for Leaving {
        fn to_server(&mut self, message: Message) -> Vec<OutMessage> {
            let frame = message.json();
            if let Some(frame) = frame.filter(|frame| kind(frame) == "chat:set_queue") {
                self.0 = Some(frame);
            }
            let closes = matches!(message, Message::Close(_));
            let mut outs = Vec::new();
            if let Some(mut frame) = closes.then(|| self.0.take()).flatten() {
                frame["payload"]["text"] = Value::Null;
                outs.push(OutMessage::json(&frame));
            }
            outs.push(OutMessage::send(message));
            outs
        }
    }

    Arc::new(super::OnChannel(|_: &ChannelInfo| Leaving(None)))
}

/// CWS-031: the client subscribes only on its first connection.
fn subscribes_only_at_first() -> Arc<dyn Saboteur> {
    each(|info| {
        let later = info.number > 0;
        move |from, frame: &Value| {
            (later && from == Side::Client && kind(frame) == "chat:subscribe").then(Vec::new)
        }
    })
}

/// CWS-003: the client opens a socket for each chat.
///
/// The second subscription of a connection opens another one, to wherever the client thought the server was.
fn a_socket_for_each_chat() -> Arc<dyn Saboteur> {
    each(|info| {
        let (host, number) = (
            info.request.header("host").unwrap_or_default().to_owned(),
            info.number,
        );
        let mut subscriptions = 0;
        move |from, frame: &Value| {
            let subscribes = from == Side::Client && kind(frame) == "chat:subscribe";
            subscriptions += u32::from(subscribes);
            if subscribes && subscriptions == 2 && number == 0 {
                tokio::spawn(another_socket(host.clone()));
            }
            None
        }
    })
}

/// Opens a socket and keeps it until the other side ends it.
async fn another_socket(host: String) {
    let request = format!(
        "GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    // A server that is gone ends the sabotage as well.
    if let Ok(mut stream) = TcpStream::connect(&host).await
        && stream.write_all(request.as_bytes()).await.is_ok()
    {
        let mut bytes = [0; 512];
        while stream.read(&mut bytes).await.unwrap_or_default() > 0 {}
    }
}
