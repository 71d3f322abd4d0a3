//! The client side of a transcript, against a server, with a diff of what the server answers.
//!
//! - [`play()`]: goes through the transcript; what the client did waits until the server has said as much as the
//!   recorded one had by then;
//! - `stream`: answers; `channel`: WebSockets and channels of lines.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::{Instant, sleep_until};

use self::{channel::Channel, stream::Stream};
use super::{Timing, play::testees, said::Said, words::Words};
use crate::{
    drivers::{
        http::{BaseUrl, Call, HttpClient, HttpLimits},
        lines::{self, LineChannel},
        websocket::{self, Opened},
    },
    transcript::{
        End, ExchangeId, Fact, Header, Request, Side, Transcript,
        diff::{self, Diff},
        header, is_event_stream,
        record::Recorder,
        text::{ParseError, Template},
    },
};

mod channel;
mod stream;

/// How it is played.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server: `http://` for requests and WebSockets, `tcp://` for channels of lines.
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
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-version",
];

/// Plays it.
///
/// # Errors
///
/// When the template is no transcript.
pub async fn play(template: &Template, options: &Options) -> Result<Answered, ParseError> {
    let told = testees(&template.lower()?);
    let template = template.without(&told);
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
        recorder: recorder.clone(),
        options,
        words: Words::given(&options.given),
        open: BTreeMap::new(),
        tried: Vec::new(),
        remarks: Vec::new(),
        begun: Instant::now(),
    };
    for entry in &recorded.entries {
        player.fact(entry.at, &entry.fact).await;
    }
    player.catch_all_up().await;
    while let Some((_, open)) = player.open.pop_first() {
        open.close().await;
    }
    player.client.finish().await;
    let transcript = recorder.transcript();
    Ok(Answered {
        diff: diff::templates(&template, &Template::of(&transcript)),
        remarks: player.remarks,
        transcript,
    })
}

struct Player<'o> {
    client: HttpClient,
    recorder: Recorder,
    options: &'o Options,
    words: Words,
    open: BTreeMap<ExchangeId, Open>,
    /// Exchanges that could not be opened.
    tried: Vec<ExchangeId>,
    remarks: Vec<String>,
    begun: Instant,
}

/// An exchange that goes on.
enum Open {
    Stream(Box<Stream>),
    Channel(Channel),
}

impl Open {
    async fn close(self) {
        match self {
            Self::Stream(stream) => stream.close().await,
            Self::Channel(channel) => {
                channel.end(&End::ClosedByHarness, Duration::ZERO).await;
            }
        }
    }
}

impl Player<'_> {
    async fn fact(&mut self, at: Duration, fact: &Fact) {
        if let Some((exchange, from, said)) = Said::of(fact) {
            return self.said(at, exchange, from, &said).await;
        }
        match fact {
            Fact::Request { exchange, request } => {
                self.reach(at).await;
                self.ask(*exchange, request).await;
            }
            Fact::Response { exchange, head } => {
                if let Some(Open::Stream(stream)) = self.open.get_mut(exchange) {
                    stream.head(is_event_stream(&head.headers));
                }
            }
            Fact::Chunk { exchange, bytes } => {
                if let Some(Open::Stream(stream)) = self.open.get_mut(exchange) {
                    stream.recorded(bytes);
                }
            }
            Fact::End { exchange, how } => self.end(*exchange, how).await,
            _ => {}
        }
    }

    /// Comes to this place of the recording: everything that the recorded server had said by now is there, and as
    /// much time has passed.
    async fn reach(&mut self, at: Duration) {
        self.catch_all_up().await;
        if let Some(due) = self.begun.checked_add(self.options.timing.of(at)) {
            sleep_until(due).await;
        }
    }

    async fn catch_all_up(&mut self) {
        let open: Vec<ExchangeId> = self.open.keys().copied().collect();
        for exchange in open {
            self.catch_up(exchange).await;
        }
    }

    async fn said(&mut self, at: Duration, exchange: ExchangeId, from: Side, said: &Said) {
        if matches!(said, Said::Line(_)) && !self.open.contains_key(&exchange) {
            self.connect(exchange).await;
        }
        if from == Side::Client {
            self.reach(at).await;
        }
        let Some(Open::Channel(channel)) = self.open.get_mut(&exchange) else {
            return;
        };
        if from == Side::Server {
            return channel.recorded(said);
        }
        let said = said.in_words(&self.words);
        if said.text().is_some_and(|text| self.words.leaves_open(text)) {
            self.remarks.push(format!(
                "exchange {}: nothing is known to stand for a placeholder of {}; see --set",
                exchange.0,
                said.shown()
            ));
        }
        if let Err(error) = channel.say(said).await {
            self.remark(exchange, &error.to_string());
        }
    }

    /// Opens a channel of lines, once.
    async fn connect(&mut self, exchange: ExchangeId) {
        if self.tried.contains(&exchange) {
            return;
        }
        self.tried.push(exchange);
        if !self.options.upstream.lines {
            return self.remark(exchange, "lines are played to tcp://HOST:PORT or a command");
        }
        let (upstream, limits) = (&self.options.upstream, HttpLimits::default());
        let how = lines::Open::default();
        match LineChannel::open(upstream, self.recorder.clone(), limits, how).await {
            Ok(channel) => {
                let open = Open::Channel(Channel::lines(channel));
                self.open.insert(exchange, open);
            }
            Err(error) => self.remark(exchange, &error.to_string()),
        }
    }

    async fn ask(&mut self, exchange: ExchangeId, request: &Request) {
        if self.options.upstream.lines {
            return self.remark(exchange, "requests are played to http://HOST:PORT");
        }
        let upgrade = header(&request.headers, "upgrade");
        let result = if upgrade.is_some_and(|to| to.eq_ignore_ascii_case("websocket")) {
            self.switch(exchange, request).await
        } else {
            let call = self.call(exchange, request);
            let opened = self.client.open(call).await;
            opened.map(|stream| {
                let stream = Stream::new(stream.keep_reading());
                Some(Open::Stream(Box::new(stream)))
            })
        };
        match result {
            Ok(Some(open)) => {
                self.open.insert(exchange, open);
            }
            Ok(None) => {}
            Err(error) => self.remark(exchange, &error.to_string()),
        }
    }

    async fn switch(
        &mut self,
        exchange: ExchangeId,
        request: &Request,
    ) -> Result<Option<Open>, crate::drivers::DriveError> {
        let target = self.words.say_text(&request.target);
        self.left_open(exchange, "target", &target);
        let mut how = websocket::Open::at(target);
        for (name, value) in self.headers(exchange, request) {
            how = how.header(&name, value);
        }
        Ok(match websocket::open(&self.client, how).await? {
            Opened::Socket(socket) => Some(Open::Channel(Channel::socket(socket))),
            // The difference says so.
            Opened::Refused(_) => None,
        })
    }

    fn call(&mut self, exchange: ExchangeId, request: &Request) -> Call {
        let target = self.words.say_text(&request.target);
        self.left_open(exchange, "target", &target);
        let mut call = Call::new(&request.method, target);
        for (name, value) in self.headers(exchange, request) {
            call = call.header(&name, value);
        }
        if !request.body.is_empty() {
            let media_type = header(&request.headers, "content-type");
            let media_type = media_type.unwrap_or("application/octet-stream");
            let body = self.words.say(&request.body);
            self.left_open(exchange, "body", &String::from_utf8_lossy(&body));
            call = call.body(media_type, body);
        }
        call
    }

    /// Says so when a part of a request is sent with a placeholder in it.
    fn left_open(&mut self, exchange: ExchangeId, part: &str, said: &str) {
        if self.words.leaves_open(said) {
            let words =
                format!("nothing is known to stand for a placeholder of its {part}; see --set");
            self.remark(exchange, &words);
        }
    }

    /// The headers that are sent as they were; one of which nothing is known is left out.
    fn headers(&mut self, exchange: ExchangeId, request: &Request) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        for (name, value) in &request.headers {
            if OWN.contains(&name.to_ascii_lowercase().as_str()) {
                continue;
            }
            let value = self.words.say_text(value);
            if self.words.leaves_open(&value) {
                self.remarks.push(format!(
                    "exchange {}: header {name} is left out, because nothing is known to stand for {value}; see --set",
                    exchange.0
                ));
            } else {
                headers.push((name.clone(), value));
            }
        }
        headers
    }

    async fn catch_up(&mut self, exchange: ExchangeId) {
        let patience = self.options.patience;
        let lacks = match self.open.get_mut(&exchange) {
            None => return,
            Some(Open::Stream(stream)) => match stream.catch_up(patience, &mut self.words).await {
                0 => return,
                count => format!("{count} frames"),
            },
            Some(Open::Channel(channel)) => {
                let kinds = channel.catch_up(patience, &mut self.words).await;
                if kinds.is_empty() {
                    return;
                }
                kinds.join(", ")
            }
        };
        self.remark(exchange, &format!("not within {patience:?}: {lacks}"));
    }

    async fn end(&mut self, exchange: ExchangeId, how: &End) {
        self.catch_up(exchange).await;
        let patience = self.options.patience;
        let waits = matches!(how, End::Complete | End::Broken(_));
        let in_time = match self.open.remove(&exchange) {
            None => return,
            Some(Open::Channel(channel)) => channel.end(how, patience).await,
            Some(Open::Stream(stream)) => {
                let in_time = !waits || stream.wait_end(patience, &mut self.words).await;
                stream.close().await;
                in_time
            }
        };
        if !in_time {
            self.remark(exchange, &format!("it has not ended within {patience:?}"));
        }
    }

    fn remark(&mut self, exchange: ExchangeId, words: &str) {
        let remark = format!("exchange {}: {words}", exchange.0);
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}
