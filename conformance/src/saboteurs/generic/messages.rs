//! Changes of single messages of a channel, and of what a client reports.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use turnwire_spec::catalogue::messages::{MessageEdit, MessageRewrite, Sender};

use super::counter::{Counter, Share};
use crate::{
    saboteurs::{
        channel::{Act, ChannelInfo, Message, MessageRewriter, OutMessage},
        json,
        saboteur::RequestInfo,
        template::Context,
    },
    schema,
    transcript::views::stream::type_matches,
};

/// The rewrites of one channel, and what they remember of it.
#[derive(Debug)]
pub(super) struct Messages {
    info: RequestInfo,
    rewrites: Vec<(Arc<MessageRewrite>, Counter)>,
    /// Messages that wait for the next one to pass, to the client and to the server.
    held: [Vec<Message>; 2],
}

impl Messages {
    pub(super) fn new(rewrites: &[Arc<MessageRewrite>], info: &ChannelInfo) -> Self {
        Self {
            info: info.request.clone(),
            rewrites: rewrites
                .iter()
                .map(|rewrite| (Arc::clone(rewrite), Counter::default()))
                .collect(),
            held: Default::default(),
        }
    }

    fn pass(&mut self, from: Sender, message: Message) -> Vec<OutMessage> {
        let has_json = message.json().is_some();
        let mut fate = Fate::new(message);
        for (rewrite, counter) in &mut self.rewrites {
            if rewrite.from == from {
                fate.meet(rewrite, counter, &self.info);
            }
        }
        let held = &mut self.held[usize::from(from == Sender::Client)];
        fate.settle(held, has_json)
    }
}

impl MessageRewriter for Messages {
    fn to_client(&mut self, message: Message) -> Vec<OutMessage> {
        self.pass(Sender::Server, message)
    }

    fn to_server(&mut self, message: Message) -> Vec<OutMessage> {
        self.pass(Sender::Client, message)
    }
}

/// Copies that one `repeat` makes at most.
const COPIES: u64 = 10_000;

/// What becomes of one message.
#[derive(Debug)]
struct Fate {
    message: Message,
    before: Vec<String>,
    after: Vec<String>,
    answers: Vec<String>,
    delay: Duration,
    copies: u64,
    dropped: bool,
    swapped: bool,
    end: Option<Act>,
}

impl Fate {
    fn new(message: Message) -> Self {
        Self {
            message,
            before: Vec::new(),
            after: Vec::new(),
            answers: Vec::new(),
            delay: Duration::ZERO,
            copies: 1,
            dropped: false,
            swapped: false,
            end: None,
        }
    }

    /// Applies a rewrite, when it is about this message as it now stands.
    fn meet(&mut self, rewrite: &MessageRewrite, counter: &mut Counter, info: &RequestInfo) {
        let json = self.message.json();
        if !is_about(rewrite, &self.message, json.as_ref()) {
            return;
        }
        let Some(index) = counter.next(Share {
            skip: rewrite.skip,
            every: rewrite.every,
            limit: rewrite.limit,
        }) else {
            return;
        };
        let context = Context {
            info,
            frame: None,
            json: json.as_ref(),
            index,
        };
        for edit in &rewrite.edits {
            self.apply(edit, context);
        }
    }

    fn apply(&mut self, edit: &MessageEdit, context: Context<'_>) {
        match edit {
            MessageEdit::Json(edits) => {
                if let Some(mut document) = self.message.json() {
                    json::apply(edits, &mut document, context);
                    self.message = Message::Text(document.to_string());
                }
            }
            MessageEdit::Text(text) => self.message = Message::Text(context.fill(text)),
            MessageEdit::Drop => self.dropped = true,
            MessageEdit::Repeat(times) => {
                self.copies = self.copies.saturating_add(*times).min(COPIES);
            }
            MessageEdit::SwapWithNext => self.swapped = true,
            MessageEdit::DelayMs(ms) => self.delay += Duration::from_millis(*ms),
            MessageEdit::Before(text) => self.before.push(context.fill(text)),
            MessageEdit::After(text) => self.after.push(context.fill(text)),
            MessageEdit::Answer(text) => self.answers.push(context.fill(text)),
            MessageEdit::Binary => {
                if let Message::Text(text) = &self.message {
                    self.message = Message::Binary(text.clone().into());
                }
            }
            MessageEdit::Close(code) => self.end = Some(Act::Close(*code)),
            MessageEdit::Cut => self.end = Some(Act::Cut),
        }
    }

    /// Says what is sent, and what waits for the next message.
    fn settle(self, held: &mut Vec<Message>, has_json: bool) -> Vec<OutMessage> {
        let text = |text: String| OutMessage::send(Message::Text(text));
        let mut outs: Vec<_> = self.before.into_iter().map(text).collect();
        let waiting = if has_json {
            std::mem::take(held)
        } else {
            Vec::new()
        };
        if !self.dropped {
            for _ in 0..self.copies {
                if self.swapped {
                    held.push(self.message.clone());
                } else {
                    outs.push(OutMessage::send(self.message.clone()));
                }
            }
        }
        outs.extend(waiting.into_iter().map(OutMessage::send));
        outs.extend(self.after.into_iter().map(text));
        let answer = |text: String| OutMessage::of(Act::Answer(Message::Text(text)));
        outs.extend(self.answers.into_iter().map(answer));
        outs.extend(self.end.map(OutMessage::of));
        if let Some(first) = outs.first_mut() {
            first.delay = self.delay;
        }
        outs
    }
}

fn is_about(rewrite: &MessageRewrite, message: &Message, json: Option<&Value>) -> bool {
    let kind = message.kind();
    let listed = if rewrite.types.is_empty() {
        json.is_some()
    } else {
        type_matches(&rewrite.types, &kind)
    };
    let data = rewrite
        .where_data
        .as_ref()
        .is_none_or(|wanted| json.is_some_and(|json| schema::satisfied(wanted, json)));
    listed && !type_matches(&rewrite.not_type, &kind) && data
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::saboteurs::channel::{ChannelKind, Outlet};

    /// What a rewrite makes of texts of the server, and what the server gets back after `<`.
    fn rewritten(rewrite: Value, texts: &[&str]) -> String {
        let rewrite: MessageRewrite = serde_json::from_value(rewrite).unwrap();
        let info = ChannelInfo {
            kind: ChannelKind::WebSocket,
            request: RequestInfo::default(),
            number: 0,
            outlet: Outlet::test().0,
        };
        let mut messages = Messages::new(&[Arc::new(rewrite)], &info);
        let mut shown = Vec::new();
        for text in texts {
            for out in messages.to_client(Message::Text((*text).to_owned())) {
                let wait = if out.delay.is_zero() {
                    String::new()
                } else {
                    format!("{:?} ", out.delay)
                };
                shown.push(
                    wait + &match out.act {
                        Act::Send(Message::Text(text)) => text,
                        Act::Answer(Message::Text(text)) => format!("<{text}"),
                        other => format!("{other:?}"),
                    },
                );
            }
        }
        shown.join(" | ")
    }

    const A: &str = r#"{"type":"a","n":1}"#;
    const B: &str = r#"{"type":"b"}"#;

    #[test]
    fn each_edit_does_its_one_thing() {
        for (edit, made) in [
            (json!("drop"), B.to_owned()),
            (json!({"repeat": 1}), format!("{A} | {A} | {B}")),
            (json!("swap_with_next"), format!("{B} | {A}")),
            (json!({"delay_ms": 20}), format!("20ms {A} | {B}")),
            (json!({"before": "x{/n}"}), format!("x1 | {A} | {B}")),
            (json!({"after": "y{index}"}), format!("{A} | y0 | {B}")),
            (json!({"answer": "z"}), format!("{A} | <z | {B}")),
            (json!({"text": "t"}), format!("t | {B}")),
            (json!({"close": 4000}), format!("{A} | Close(4000) | {B}")),
            (json!("cut"), format!("{A} | Cut | {B}")),
            (
                json!({"json": [{"set": ["/n", 2]}]}),
                format!("{} | {B}", A.replace('1', "2")),
            ),
        ] {
            let rewrite = json!({"type": ["a"], "do": [edit]});
            assert_eq!(rewritten(rewrite, &[A, B]), made, "{edit}");
        }
    }

    #[test]
    fn selection_and_counters_narrow_what_is_touched() {
        let drop = |more: Value| {
            let mut rewrite = json!({"do": ["drop"]});
            rewrite
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            rewritten(rewrite, &[A, A, A, B, "text"])
        };
        let rest = format!("{B} | text");
        assert_eq!(drop(json!({})), "text");
        assert_eq!(
            drop(json!({"type": [":text"]})),
            format!("{A} | {A} | {A} | {B}")
        );
        assert_eq!(
            drop(json!({"type": ["a"], "skip": 1})),
            format!("{A} | {rest}")
        );
        assert_eq!(
            drop(json!({"type": ["a"], "limit": 1})),
            format!("{A} | {A} | {rest}")
        );
        assert_eq!(
            drop(json!({"type": ["a"], "every": 2})),
            format!("{A} | {rest}")
        );
        assert_eq!(drop(json!({"where": {"required": ["n"]}})), rest);
        assert_eq!(
            drop(json!({"from": "client"})),
            format!("{A} | {A} | {A} | {rest}")
        );
    }
}
