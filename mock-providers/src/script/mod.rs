//! What to answer to which request.
//!
//! A [`Script`] is a list of [`Rule`]s: conditions ([`When`]) and the [`Reply`]s for them, given in
//! order. The builder and the file form are the same types; see [`file`] for the file.
//!
//! - [`when`]: the conditions.
//! - [`reply`]: one reply, and the builder.
//! - [`answer`] and [`text`]: what the model says, in terms that fit every wire.
//! - [`errors`]: error statuses, and bytes of the author's own.
//! - [`variation`]: what compatible services do otherwise.
//! - [`framing`]: the form of the event stream.
//! - [`edit`]: changes to single events.
//! - [`timing`]: when it is sent.
//! - [`transport`]: how it is cut, stalled and broken.
//! - [`file`]: reading and writing; `forms` are the short forms of values, `sound` refuses what means nothing, and
//!   `refusal` says why.

/// Lets a type, which derives both sides with `remote = "Self"`, be read only when it is sound.
macro_rules! checked {
    ($type:ty, $check:path) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let read = Self::deserialize(from)?;
                $check(&read).map_err(serde::de::Error::custom)?;
                Ok(read)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, to)
            }
        }
    };
}

pub mod answer;
pub mod duration;
pub mod edit;
pub mod errors;
pub mod file;
mod forms;
pub mod framing;
mod refusal;
pub mod reply;
mod sound;
pub mod text;
pub mod timing;
pub mod transport;
pub mod variation;
pub mod when;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use answer::{Answer, Call, Calls, Finish, Keepalive, Part, Reasoning, Usage, UsagePlan};
pub use edit::{Edit, Pick, RawEvent};
pub use errors::{
    ErrorForm, ErrorReply, RawReply, RetryAfter, RetryAfterForm, SocketEnd, SocketReply,
};
pub use framing::{Done, Escape, Framing, LineEnd};
pub use refusal::ScriptError;
pub use reply::{Body, Reply};
pub use text::{Chunking, Text};
pub use timing::Timing;
pub use transport::{Cut, CutHow, Faults, Insert, Position, Stall, Until};
pub use variation::{
    ContentForm, ExtraFields, Failure, FinishPlace, ReasoningField, RolePlace, Service,
    SignaturePlace, ToolArgs, ToolId, ToolIndex, UsagePlace, Variation,
};
pub use when::{NameMatch, TextMatch, ToolResultMatch, When};

/// Rules that were loaded together. They share one set of state variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Names the script in error texts and the journal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// State variables at the start.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, String>,
    /// The rules; of those that match, the one with the highest priority answers, then the first.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// Conditions, and the replies for requests that meet them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    remote = "Self",
    expecting = "a rule, with `when` and `reply`"
)]
pub struct Rule {
    /// Names the rule in error texts and the journal; otherwise its place in the script does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The conditions. None means every request.
    #[serde(default, skip_serializing_if = "When::is_empty")]
    pub when: When,
    /// Rules with a higher number are tried first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// The replies, given in this order.
    #[serde(default, alias = "reply", deserialize_with = "forms::one_or_many")]
    pub replies: Vec<Reply>,
    /// What follows the last reply.
    #[serde(default, skip_serializing_if = "After::is_repeat")]
    pub after: After,
    /// Answers requests that break the service's rules; the breaches are journalled all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lenient: bool,
    /// Chat Completions: what the service wants of thinking that comes back as `reasoning_content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<Echo>,
}

checked!(Rule, sound::rule);

/// What a service wants of thinking that comes back in a field of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Echo {
    /// It must come back beside calls.
    Required,
    /// It must not come back.
    Refused,
}

/// What a rule does when every reply was given.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// Give the last reply again, for ever.
    #[default]
    Repeat,
    /// Begin again with the first.
    Cycle,
    /// Match nothing any more.
    Stop,
}

impl After {
    fn is_repeat(&self) -> bool {
        *self == Self::Repeat
    }
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl Script {
    /// A script without rules.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Adds a rule behind the others.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets a state variable at the start.
    #[must_use]
    pub fn state(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.state.insert(name.into(), value.into());
        self
    }
}

impl From<Rule> for Script {
    /// A script of one rule, named after it.
    fn from(rule: Rule) -> Self {
        Self::new(rule.name.clone()).rule(rule)
    }
}

impl Rule {
    /// A rule with this name that matches every request.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// A rule for requests whose last user message contains `text`, named after the text.
    pub fn on(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(text.clone()).when(When::new().last_user(text))
    }

    /// Replaces the conditions.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// Adds a reply behind the others.
    #[must_use]
    pub fn reply(mut self, reply: impl Into<Reply>) -> Self {
        self.replies.push(reply.into());
        self
    }

    /// Stops matching when every reply was given once.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.after = After::Stop;
        self
    }

    /// Begins again with the first reply after the last.
    #[must_use]
    pub fn cycle(mut self) -> Self {
        self.after = After::Cycle;
        self
    }

    /// Rules with a higher number are tried first; 0 if not said.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Answers also requests that break the service's rules.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Wants thinking back, or refuses it.
    #[must_use]
    pub fn echo(mut self, echo: Echo) -> Self {
        self.echo = Some(echo);
        self
    }

    /// Which reply the use number `nth` (from 0) gives; `None` when the rule is used up.
    pub fn nth_reply(&self, nth: u64) -> Option<usize> {
        let count = self.replies.len() as u64;
        let last = count.checked_sub(1)?;
        let place = match self.after {
            After::Repeat => nth.min(last),
            After::Cycle => nth % count,
            After::Stop if nth > last => return None,
            After::Stop => nth,
        };
        usize::try_from(place).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(rule: &Rule) -> Vec<Option<usize>> {
        (0..4).map(|nth| rule.nth_reply(nth)).collect()
    }

    #[test]
    fn replies_are_given_in_order_and_then_as_the_rule_says() {
        let rule = Rule::new("r")
            .reply(Reply::text("a"))
            .reply(Reply::text("b"));
        assert_eq!(order(&rule), [Some(0), Some(1), Some(1), Some(1)]);
        assert_eq!(
            order(&rule.clone().cycle()),
            [Some(0), Some(1), Some(0), Some(1)]
        );
        assert_eq!(order(&rule.once()), [Some(0), Some(1), None, None]);
        assert_eq!(order(&Rule::new("empty")), [None; 4]);
    }
}
