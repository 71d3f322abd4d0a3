//! The `session-update` protocol in a transcript: connections, requests with their answers, events, and what the
//! scenario scripted.
//!
//! A transcript is of one of two kinds: the harness was the client of a server under test ([`served`]), or its
//! own server fed a client under test ([`fed`]). The checks of each side look at the one kind only.

use serde_json::Value;
use turnwire_spec::session_update::RequestId;

use super::messages::{Channel, Content, Message, channels};
use crate::{
    transcript::{Fact, Side, Transcript},
    verdict::Evidence,
};

/// The connections to a server under test; none when a client was tested.
pub fn served(transcript: &Transcript) -> Vec<Channel<'_>> {
    let channels = channels(transcript);
    if tests_a_client(&channels) {
        return Vec::new();
    }
    wire(channels)
}

/// The connections of a client under test; none when a server was tested.
pub fn fed(transcript: &Transcript) -> Vec<Channel<'_>> {
    let channels = channels(transcript);
    if !tests_a_client(&channels) {
        return Vec::new();
    }
    wire(channels)
}

/// A client under test says that it is ready, on a channel of its own.
fn tests_a_client(channels: &[Channel<'_>]) -> bool {
    let messages = channels.iter().flat_map(|channel| &channel.messages);
    let mut lines = messages.filter(|message| matches!(message.content, Content::Line(_)));
    lines.any(|line| line.from == Side::Client && line.pointer("/ready") == Some(&true.into()))
}

fn wire(channels: Vec<Channel<'_>>) -> Vec<Channel<'_>> {
    let is_message = |message: &Message<'_>| {
        let kind = message.text_at("/kind");
        kind.is_some_and(|kind| ["request", "response", "event"].contains(&kind))
    };
    channels
        .into_iter()
        .filter(|channel| channel.messages.iter().any(is_message))
        .collect()
}

/// One event of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Update<'c> {
    /// Its message.
    pub message: &'c Message<'c>,
}

impl<'c> Update<'c> {
    /// The type of the event.
    pub fn kind(&self) -> &'c str {
        self.message.text_at("/event/type").unwrap_or_default()
    }

    /// A member of the wrapper.
    pub fn member(&self, name: &str) -> Option<&'c Value> {
        self.message.json.as_ref()?.get(name)
    }

    /// A text of the wrapper; empty when it is not there.
    pub fn text(&self, name: &str) -> &'c str {
        self.member(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// A member of the event.
    pub fn event(&self, name: &str) -> Option<&'c Value> {
        self.member("event")?.get(name)
    }

    /// A text of the event; empty when it is not there.
    pub fn event_text(&self, name: &str) -> &'c str {
        self.event(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its number in millionths: exact for every integer of 64 bits, which a float is not.
    pub fn sequence(&self) -> Option<i128> {
        const MILLION: i128 = 1_000_000;
        let number = self.member("sequence")?.as_number()?;
        let integer = number.as_u64().map(i128::from);
        let integer = integer.or_else(|| number.as_i64().map(i128::from));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "beyond that range no number is above the one before, as with floats"
        )]
        let decimal = || number.as_f64().map(|number| (number * 1e6).round() as i128);
        integer.map(|integer| integer * MILLION).or_else(decimal)
    }

    /// The turn that a task comes from, wherever it stands.
    pub fn origin(&self) -> &'c str {
        let inside = self.event_text("origin_turn_id");
        if inside.is_empty() {
            self.text("origin_turn_id")
        } else {
            inside
        }
    }

    /// Its identity, wherever it stands.
    pub fn id(&self) -> &'c str {
        let inside = self.event_text("event_id");
        if inside.is_empty() {
            self.text("event_id")
        } else {
            inside
        }
    }

    /// Whether it tells that a turn has ended.
    pub fn ends_turn(&self) -> bool {
        matches!(
            self.kind(),
            "turn_completed" | "turn_failed" | "turn_cancelled"
        )
    }

    /// The task that it is about, and its state.
    pub fn task(&self) -> Option<(&'c str, &'c str)> {
        if self.kind() != "task_updated" {
            return None;
        }
        let task = self.event("task")?;
        Some((
            task.get("task_id")?.as_str()?,
            task.get("status")?.as_str()?,
        ))
    }

    /// Whether it tells that a task has ended.
    pub fn ends_task(&self) -> bool {
        use turnwire_spec::session_update::events::TaskStatus;
        self.task()
            .is_some_and(|(_, status)| TaskStatus::text_is_terminal(status))
    }

    /// Evidence at it.
    pub fn evidence(
        &self,
        channel: &Channel<'_>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Evidence {
        channel.evidence_at(self.message, expected, got)
    }
}

/// The events of a connection, in order: everything of the server that is no response.
pub fn updates<'c>(channel: &'c Channel<'c>) -> Vec<Update<'c>> {
    let told = channel
        .from(Side::Server)
        .filter(|message| message.json.is_some() && message.text_at("/kind") != Some("response"));
    told.map(|message| Update { message }).collect()
}

/// A request and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'c> {
    /// The request.
    pub request: &'c Message<'c>,
    /// The response, when it came.
    pub response: Option<&'c Message<'c>>,
}

impl<'c> Asked<'c> {
    /// A parameter that is a text; empty when it is not there.
    pub fn param(&self, name: &str) -> &'c str {
        let params = self.request.pointer("/params");
        params
            .and_then(|params| params.get(name)?.as_str())
            .unwrap_or_default()
    }

    /// The result.
    pub fn result(&self) -> Option<&'c Value> {
        self.response?.pointer("/result")
    }

    /// A member of the result.
    pub fn given(&self, name: &str) -> Option<&'c Value> {
        self.result()?.get(name)
    }
}

/// The requests of a connection with this method; all when it is empty.
pub fn asked<'c>(channel: &'c Channel<'c>, method: &str) -> Vec<Asked<'c>> {
    let requests = channel.from(Side::Client).filter(|message| {
        message.text_at("/kind") == Some("request")
            && (method.is_empty() || message.text_at("/method") == Some(method))
    });
    let answer = |request: &Message<'_>| {
        channel.from(Side::Server).find(|message| {
            message.index > request.index
                && message.text_at("/kind") == Some("response")
                && answers(request, message)
        })
    };
    requests
        .map(|request| Asked {
            request,
            response: answer(request),
        })
        .collect()
}

/// Whether two messages have the same `request_id`. Numbers that are the same float may be different ones.
fn answers(request: &Message<'_>, response: &Message<'_>) -> bool {
    let (asked, told) = (
        request.pointer("/request_id"),
        response.pointer("/request_id"),
    );
    let is_number = |id: Option<&Value>| id.is_some_and(Value::is_number);
    if !is_number(asked) || !is_number(told) {
        return asked == told;
    }
    match (request.content, response.content) {
        (Content::Line(asked), Content::Line(told)) => RequestId::of(asked) == RequestId::of(told),
        _ => asked == told,
    }
}

/// A turn that the harness asked for, with what it scripted for it.
#[derive(Clone, Copy, Debug)]
pub struct Played<'c> {
    /// Place of the connection among those looked at.
    pub place: usize,
    /// The connection.
    pub channel: &'c Channel<'c>,
    /// The prompt and its answer.
    pub prompt: Asked<'c>,
    /// What was scripted; null when nothing was told.
    pub script: &'c Value,
}

impl<'c> Played<'c> {
    /// The turn, as the answer names it; empty without one.
    pub fn turn(&self) -> &'c str {
        let turn = self.prompt.given("turn_id").and_then(Value::as_str);
        turn.unwrap_or_default()
    }

    /// Whether the turn called tools, and all of them did their work: a target without the fixture tools has none to
    /// judge, whether it says that there is no such tool or calls none at all.
    pub fn has_tool(&self) -> bool {
        let updates = self.updates();
        let results = updates.iter().filter(|it| it.kind() == "tool_result");
        let done: Vec<bool> = results
            .map(|result| result.event_text("status") == "completed")
            .collect();
        !done.is_empty() && done.into_iter().all(|done| done)
    }

    /// Whether it was asked to go on with a turn that was left, which keeps its id.
    pub fn resumes(&self) -> bool {
        self.prompt.request.pointer("/params/resume") == Some(&Value::Bool(true))
    }

    /// Whether it was scripted to call tools.
    pub fn is_to_call(&self) -> bool {
        self.script.get("result").is_some() || self.script["startsTask"] == true
    }

    /// The events of the turn on its own connection.
    pub fn updates(&self) -> Vec<Update<'c>> {
        let ours = |update: &Update<'c>| update.text("turn_id") == self.turn();
        updates(self.channel).into_iter().filter(ours).collect()
    }
}

/// The turns that the harness asked for and that were answered, in order of connections.
pub fn played<'c>(channels: &'c [Channel<'c>], transcript: &'c Transcript) -> Vec<Played<'c>> {
    static NOTHING: Value = Value::Null;
    let script = |input: &str| {
        let told = transcript
            .entries
            .iter()
            .find_map(|entry| match &entry.fact {
                Fact::State(state) if state["scripted"] == input => Some(state),
                _ => None,
            });
        told.unwrap_or(&NOTHING)
    };
    let of_channel = |(place, channel): (usize, &'c Channel<'c>)| {
        asked(channel, "session/prompt")
            .into_iter()
            .map(move |prompt| Played {
                place,
                channel,
                prompt,
                script: script(prompt.param("input")),
            })
    };
    channels
        .iter()
        .enumerate()
        .flat_map(of_channel)
        .filter(|played| !played.turn().is_empty())
        .collect()
}

/// A subscription to a session that had turns before: what was rebuilt of it.
#[derive(Clone, Debug)]
pub struct Rebuilt<'c> {
    /// The connection.
    pub channel: &'c Channel<'c>,
    /// The subscription.
    pub subscribe: Asked<'c>,
    /// The session.
    pub session: &'c str,
    /// The events of the session up to the next prompt on the connection, or its end.
    pub updates: Vec<Update<'c>>,
}

/// Whether a prompt to a session was answered, by its turn, before a message.
fn had_turns(channels: &[Channel<'_>], session: &str, message: &Message<'_>) -> bool {
    let prompts = channels
        .iter()
        .flat_map(|channel| asked(channel, "session/prompt"));
    let mut ours = prompts.filter(|prompt| prompt.param("session_id") == session);
    ours.any(|prompt| {
        let in_time = prompt
            .response
            .is_some_and(|response| response.at <= message.at);
        in_time && prompt.given("turn_id").is_some()
    })
}

/// The subscriptions under a label that begins with `re`, reconnected or restarted, to sessions of which a prompt had
/// been answered.
pub fn rebuilt<'c>(channels: &'c [Channel<'c>]) -> Vec<Rebuilt<'c>> {
    let mut found = Vec::new();
    for channel in channels {
        for subscribe in asked(channel, "session/subscribe") {
            let begun = subscribe.request.index;
            if !subscribe.request.label.starts_with("re") {
                continue;
            }
            let prompts = asked(channel, "session/prompt");
            let until = prompts
                .iter()
                .map(|prompt| prompt.request.index)
                .find(|index| *index > begun)
                .unwrap_or(usize::MAX);
            let session = subscribe.param("session_id");
            if !had_turns(channels, session, subscribe.request) {
                continue;
            }
            let ours = |update: &Update<'_>| {
                (begun..until).contains(&update.message.index)
                    && update.text("session_id") == session
            };
            found.push(Rebuilt {
                channel,
                subscribe,
                session,
                updates: updates(channel).into_iter().filter(ours).collect(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::text;

    #[test]
    fn an_answer_to_another_number_is_no_answer_however_near_the_numbers_are() {
        let ask = r#"{"kind":"request","request_id":18446744073709551617,"method":"ping"}"#;
        for (id, is_answered) in [
            ("18446744073709551617", true),
            ("18446744073709551618", false),
            ("18446744073709552000", false),
        ] {
            let told = format!(r#"{{"kind":"response","request_id":{id},"result":{{}}}}"#);
            let text = format!("twire 1\nsuite: session-update\n\n>1$ {ask}\n<1$ {told}\n");
            let transcript = text::parse(&text).unwrap();
            let channels = served(&transcript);

            let asked = asked(&channels[0], "ping");
            assert_eq!(asked[0].response.is_some(), is_answered, "{id}");
        }
    }
}
