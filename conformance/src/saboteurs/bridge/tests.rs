//! Channels between raw connections: what a rewriter gets, and what comes out.

use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, duplex};

use super::*;
use crate::saboteurs::Conformant;

/// Says what passed, answers `ask`, drops `drop`, and ends the channel at `close`.
struct Fussy;

impl Saboteur for Fussy {
    fn channel(&self, _: &ChannelInfo) -> Option<Box<dyn MessageRewriter>> {
        Some(Box::new(Fussy))
    }
}

impl MessageRewriter for Fussy {
    fn to_server(&mut self, message: Message) -> Vec<OutMessage> {
        match &message {
            Message::Text(text) if text == "ask" => {
                vec![OutMessage::of(Act::Answer(Message::Text("told".into())))]
            }
            Message::Text(text) if text == "drop" => Vec::new(),
            Message::Text(text) if text == "late" => {
                vec![OutMessage::send(message).after(Duration::from_secs(5))]
            }
            Message::Text(text) if text == "close" => vec![OutMessage::of(Act::Close(4001))],
            _ => vec![OutMessage::send(message)],
        }
    }
}

type Ends = (BufReader<DuplexStream>, BufReader<DuplexStream>);

fn channel(saboteur: impl Saboteur + 'static) -> Ends {
    let (client, inner_client) = duplex(1024);
    let (server, inner_server) = duplex(1024);
    tokio::spawn(async move { lines(&saboteur, 0, 0.01, inner_client, inner_server).await });
    (BufReader::new(client), BufReader::new(server))
}

async fn line(from: &mut BufReader<DuplexStream>) -> String {
    let mut line = String::new();
    let read = from.read_line(&mut line);
    tokio::time::timeout(Duration::from_secs(5), read)
        .await
        .expect("no line")
        .unwrap();
    line
}

#[tokio::test]
async fn lines_are_dropped_answered_and_passed() {
    let (mut client, mut server) = channel(Fussy);
    client.write_all(b"drop\nask\nlate\nb\n").await.unwrap();
    assert_eq!(line(&mut server).await, "late\n");
    assert_eq!(line(&mut server).await, "b\n");
    assert_eq!(line(&mut client).await, "told\n");
    server.write_all(b"hello\n").await.unwrap();
    assert_eq!(line(&mut client).await, "hello\n");
    client.write_all(b"close\n").await.unwrap();
    assert_eq!(
        (line(&mut client).await, line(&mut server).await),
        Default::default()
    );
}

#[tokio::test]
async fn without_a_rewriter_bytes_pass_as_they_are() {
    let (mut client, mut server) = channel(Conformant);
    client.write_all(b"half a li").await.unwrap();
    let mut some = [0; 9];
    server.read_exact(&mut some).await.unwrap();
    assert_eq!(&some, b"half a li");
    drop(client);
    assert_eq!(line(&mut server).await, "");
}

#[tokio::test]
async fn websocket_frames_are_unmasked_rewritten_and_masked_again() {
    let (mut client, inner_client) = duplex(1024);
    let (server, inner_server) = duplex(1024);
    let bridge = open(
        &Fussy,
        ChannelKind::WebSocket,
        RequestInfo::default(),
        0,
        0.01,
    )
    .unwrap();
    tokio::spawn(bridge.run(inner_client, inner_server));
    let text = |text: &str| crate::transcript::WsFrame::Text(text.to_owned());
    for message in ["drop", "x", "close"] {
        client
            .write_all(&message_bytes(&text(message), true))
            .await
            .unwrap();
    }
    let mut reader = FrameReader::new(server);
    let frame = reader.next().await.unwrap().unwrap();
    assert!(frame.masked);
    assert_eq!(&frame.payload[..], b"x");
    let close = FrameReader::new(client).next().await.unwrap().unwrap();
    assert!(!close.masked);
    assert_eq!(&close.payload[..], 4001_u16.to_be_bytes());
}
