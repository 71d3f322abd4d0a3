//! The client side of a transcript, against a server, with a diff of what the server answers.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::{Instant, sleep_until};
use turnwire_spec::sse;

use super::{Timing, words::Words};
use crate::{
    drivers::http::{BaseUrl, Call, HttpClient, HttpLimits, Reading},
    transcript::{
        End, ExchangeId, Fact, Header, Request, Transcript,
        diff::{self, Diff},
        is_event_stream,
        record::Recorder,
        text::{ParseError, Template},
        views::stream::StreamFrame,
    },
};

/// How it is played.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server.
    pub upstream: BaseUrl,
    /// How fast.
    pub timing: Timing,
    /// How long to wait for what the recorded server had said.
    pub patience: Duration,
    /// Placeholders, by name, and what stands for them; such as the tokens that were replaced.
    pub given: Vec<(String, String)>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Answered {
    /// What happened now.
    pub transcript: Transcript,
    /// How it differs from the transcript.
    pub diff: Diff,
    /// What could not be done as recorded.
    pub remarks: Vec<String>,
}

/// Headers of a request that are written anew.
const OWN: &[&str] = &[
    "host",
    "content-length",
    "content-type",
    "connection",
    "accept-encoding",
    "transfer-encoding",
    "user-agent",
    "upgrade",
];

/// Plays it.
///
/// # Errors
///
/// When the template is no transcript.
pub async fn play(template: &Template, options: &Options) -> Result<Answered, ParseError> {
    let recorded = template.lower()?;
    let header = Header {
        suite: recorded.header.suite.clone(),
        scenario: recorded.header.scenario.clone(),
        time_scale: recorded.header.time_scale,
        ..Header::default()
    };
    let recorder = Recorder::new(header);
    let mut player = Player {
        client: HttpClient::new(
            options.upstream.clone(),
            recorder.clone(),
            HttpLimits::default(),
        ),
        options,
        words: Words::given(&options.given),
        open: BTreeMap::new(),
        remarks: Vec::new(),
        begun: Instant::now(),
    };
    for entry in &recorded.entries {
        player.fact(entry.at, &entry.fact).await;
    }
    let open: Vec<ExchangeId> = player.open.keys().copied().collect();
    for exchange in open {
        player.catch_up(exchange).await;
        player.close(exchange).await;
    }
    player.client.finish().await;
    let transcript = recorder.transcript();
    Ok(Answered {
        diff: diff::templates(template, &Template::of(&transcript)),
        remarks: player.remarks,
        transcript,
    })
}

struct Player<'o> {
    client: HttpClient,
    options: &'o Options,
    words: Words,
    open: BTreeMap<ExchangeId, Open>,
    remarks: Vec<String>,
    begun: Instant,
}

/// An exchange that goes on.
struct Open {
    reading: Option<Reading>,
    /// What the recorded server had said by now.
    recorded: sse::Recorder,
    frames: Vec<StreamFrame>,
    body: Vec<u8>,
    stream: bool,
    /// Frames of both sides from which ids were learnt.
    learnt: usize,
}

impl Player<'_> {
    async fn fact(&mut self, at: Duration, fact: &Fact) {
        match fact {
            Fact::Request { exchange, request } => {
                let open: Vec<ExchangeId> = self.open.keys().copied().collect();
                for before in open {
                    self.catch_up(before).await;
                }
                if let Some(due) = self.begun.checked_add(self.options.timing.of(at)) {
                    sleep_until(due).await;
                }
                self.send(*exchange, request).await;
            }
            Fact::Response { exchange, head } => {
                if let Some(open) = self.open.get_mut(exchange) {
                    open.stream = is_event_stream(&head.headers);
                }
            }
            Fact::Chunk { exchange, bytes } => {
                if let Some(open) = self.open.get_mut(exchange) {
                    open.body.extend_from_slice(bytes);
                    if open.stream {
                        let frames = open.recorded.feed(bytes);
                        open.frames.extend(frames.into_iter().filter_map(told));
                    }
                }
            }
            Fact::End { exchange, how } => {
                self.catch_up(*exchange).await;
                if matches!(how, End::Complete | End::Broken(_)) {
                    self.wait_end(*exchange).await;
                }
                self.close(*exchange).await;
            }
            Fact::WebSocket { exchange, .. } | Fact::Line { exchange, .. } => {
                let remark = format!("exchange {}: messages are not played", exchange.0);
                if !self.remarks.contains(&remark) {
                    self.remarks.push(remark);
                }
            }
            Fact::Label(_) | Fact::Target(_) | Fact::State(_) | Fact::Note(_) => {}
        }
    }

    async fn send(&mut self, exchange: ExchangeId, request: &Request) {
        let mut call = Call::new(&request.method, self.words.say_text(&request.target));
        let mut media_type = "application/octet-stream".to_owned();
        for (name, value) in &request.headers {
            let value = self.words.say_text(value);
            if name == "content-type" {
                media_type.clone_from(&value);
            }
            if OWN.contains(&name.as_str()) {
                continue;
            }
            if value.contains("{{") {
                self.remarks.push(format!(
                    "exchange {}: header {name} is left out, because nothing is known to stand for {value}; see --set",
                    exchange.0
                ));
                continue;
            }
            call = call.header(name, value);
        }
        if !request.body.is_empty() {
            call = call.body(&media_type, self.words.say(&request.body));
        }
        match self.client.open(call).await {
            Ok(stream) => {
                let open = Open {
                    reading: Some(stream.keep_reading()),
                    recorded: sse::Recorder::new(sse::Limits::NONE),
                    frames: Vec::new(),
                    body: Vec::new(),
                    stream: false,
                    learnt: 0,
                };
                self.open.insert(exchange, open);
            }
            Err(error) => self
                .remarks
                .push(format!("exchange {}: {error}", exchange.0)),
        }
    }

    /// Waits until the server has said as much as the recorded one had by now, and learns its ids.
    async fn catch_up(&mut self, exchange: ExchangeId) {
        let patience = self.options.patience;
        let Some(open) = self.open.get_mut(&exchange) else {
            return;
        };
        let (Some(reading), true) = (&open.reading, open.stream) else {
            return;
        };
        let wanted = open.frames.len();
        let enough = |frames: &[StreamFrame]| (telling(frames).count() >= wanted).then_some(());
        reading.wait_until(patience, enough).await;
        let now: Vec<StreamFrame> = telling(&reading.frames()).cloned().collect();
        let learnt = open.learnt;
        for (recorded, now) in open.frames.iter().zip(&now).skip(learnt) {
            self.words.learn_text(
                recorded.frame.id().unwrap_or_default(),
                now.frame.id().unwrap_or_default(),
            );
            if let (Some(recorded), Some(now)) = (&recorded.json, &now.json) {
                self.words.learn_json(recorded, now);
            }
            open.learnt += 1;
        }
    }

    /// Waits for the end of an answer, and learns the ids in it.
    async fn wait_end(&mut self, exchange: ExchangeId) {
        let patience = self.options.patience;
        let Some(open) = self.open.get_mut(&exchange) else {
            return;
        };
        let Some(reading) = &open.reading else {
            return;
        };
        if reading.wait_end(patience).await.is_none() {
            self.remarks.push(format!(
                "exchange {}: it has not ended within {patience:?}",
                exchange.0
            ));
        }
        if !open.stream {
            let (recorded, now) = (open.body.clone(), body_of(reading));
            let json = |bytes: &[u8]| serde_json::from_slice(bytes).ok();
            if let (Some(recorded), Some(now)) = (json(&recorded), json(&now)) {
                self.words.learn_json(&recorded, &now);
            }
        }
    }

    async fn close(&mut self, exchange: ExchangeId) {
        if let Some(reading) = self.open.remove(&exchange).and_then(|open| open.reading) {
            reading.close().await;
        }
    }
}

/// The bytes of an answer that was read as if it were a stream.
fn body_of(reading: &Reading) -> Vec<u8> {
    let frames = reading.frames();
    frames
        .iter()
        .flat_map(|frame| frame.frame.to_bytes())
        .collect()
}

fn told(frame: sse::Frame) -> Option<StreamFrame> {
    let json = frame
        .data()
        .and_then(|data| serde_json::from_str(&data).ok());
    let frame = StreamFrame {
        index: 0,
        at: Duration::ZERO,
        frame,
        json,
    };
    is_telling(&frame).then_some(frame)
}

/// Frames of which there are as many whenever it is played: no comments and no heartbeats.
fn telling(frames: &[StreamFrame]) -> impl Iterator<Item = &StreamFrame> {
    frames.iter().filter(|frame| is_telling(frame))
}

fn is_telling(frame: &StreamFrame) -> bool {
    frame.frame.terminated
        && !frame.frame.is_blank()
        && !frame.frame.is_comment_only()
        && frame.event_type() != "system.heartbeat"
}
