//! Chats over a WebSocket: how the server ends a socket. What goes over one that stays open is recorded from the
//! scenarios.

use std::time::Duration;

use bytes::Bytes;
use turnwire::{drivers::DriveError, stage::Stage, transcript::WsFrame};

use crate::machine::Story;

const SOON: Duration = Duration::from_secs(10);

pub(crate) const STORIES: &[Story] = &[
    other!(
        "chat-ws",
        "socket-closed",
        "a text that is no UTF-8, and a ping that is too long, each end their socket with a code",
        ["CWS-008"],
        1.0,
        closed
    ),
    other!(
        "chat-ws",
        "server-stops",
        "the server is asked to stop, and says that it goes",
        ["CWS-008"],
        1.0,
        stops
    ),
];

async fn closed(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    socket.wait_for_kind("chat:active", SOON).await;
    let text = Bytes::from_static(b"{\"type\":\"ping\xff\"}");
    socket.send_as_text(text).await?;
    socket.wait_end(SOON).await;

    let mut socket = stage.chat().await?;
    socket.wait_for_kind("chat:active", SOON).await;
    // RFC 6455, section 5.5: a control frame has up to 125 bytes.
    let long = Bytes::from_static(&[b'.'; 126]);
    socket.send_message(WsFrame::Ping(long)).await?;
    socket.wait_end(SOON).await;
    Ok(())
}

async fn stops(stage: &Stage) -> Result<(), DriveError> {
    let mut socket = stage.chat().await?;
    socket.wait_for_kind("chat:active", SOON).await;
    stage.stop().await?;
    socket.wait_end(SOON).await;
    Ok(())
}
