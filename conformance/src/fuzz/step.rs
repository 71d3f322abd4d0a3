//! A case: a short list of steps, as plain data.
//!
//! Steps mean the same in every protocol; a protocol leaves out those that it has no use for. Nothing in a step is
//! absolute: cursors are told by where they stand, clients and sessions by small numbers, so that a case can be
//! played against any target, and still can be when steps are taken out of it.
//!
//! The JSON form is what a saved counterexample carries in its notes:
//! `[{"do":"write","session":0,"count":2},{"do":"connect","client":0,"session":0,"query":"own"}]`.

use serde::{Deserialize, Serialize};

use crate::transcript::cut::CutAt;

/// A conversation that is played from its beginning, on sessions of its own.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Case {
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// One thing that is done. Sessions and clients are numbered from 0.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Step {
    /// Values are stored outside of a turn, one commit each.
    Write {
        /// In which session.
        session: u8,
        /// How many.
        count: u8,
    },
    /// A turn, from its beginning to its end.
    Turn {
        /// In which session.
        session: u8,
        /// Words that the model says.
        words: u8,
        /// Values that it stores.
        #[serde(default, skip_serializing_if = "is_zero")]
        writes: u8,
        /// How it ends.
        #[serde(default, skip_serializing_if = "is_default")]
        ending: Ending,
    },
    /// A turn begins; its model falls silent in the middle, until the turn is finished.
    Begin {
        /// In which session.
        session: u8,
        /// Words that the model says before and after.
        words: u8,
    },
    /// The model of a turn that has begun goes on; nothing happens without one.
    Finish {
        /// In which session.
        session: u8,
    },
    /// Many values are stored in a row.
    Burst {
        /// In which session.
        session: u8,
        /// How many.
        count: u16,
        /// Bytes of each.
        #[serde(default, skip_serializing_if = "is_default")]
        bytes: u16,
    },
    /// A turn is committed, and its events cannot be published.
    LosePublish {
        /// In which session.
        session: u8,
    },
    /// A client opens a connection. One that it has is closed once the new one is there.
    Connect {
        /// Which client.
        client: u8,
        /// To which session; the client forgets what it knew of another one.
        session: u8,
        /// Cursor in the query, or in the message that asks for a replay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Place>,
        /// Cursor in the header, where the protocol has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        header: Option<Place>,
        /// It asks for a part of the events only.
        #[serde(default, skip_serializing_if = "is_default")]
        narrow: bool,
        /// It does not read until it is told to.
        #[serde(default, skip_serializing_if = "is_default")]
        slow: bool,
        /// Where the connection breaks off: after so many frames, and bytes of the next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cut: Option<(u16, u16)>,
        /// Values that are stored at the same time.
        #[serde(default, skip_serializing_if = "is_zero")]
        race: u8,
    },
    /// A slow client reads what has come.
    Read {
        /// Which client.
        client: u8,
    },
    /// A client closes its connection.
    Drop {
        /// Which client.
        client: u8,
    },
    /// A text is put into a session's queue; what waits there is replaced.
    Queue {
        /// In which session.
        session: u8,
        /// The queue is cleared instead.
        #[serde(default, skip_serializing_if = "is_default")]
        clear: bool,
    },
    /// A slash command.
    Command {
        /// In which session.
        session: u8,
    },
    /// A session is driven again.
    Continue {
        /// Which session.
        session: u8,
    },
    /// The running turn is called off, by its job; where none runs, one that has ended.
    Cancel {
        /// In which session.
        session: u8,
    },
    /// The target is stopped and started again on the same data.
    Restart {
        /// It is killed without warning.
        kill: bool,
    },
}

/// How a turn ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The model says what it has to say.
    #[default]
    Said,
    /// The model answers with an error.
    Failed,
    /// The player stops it.
    Stopped,
}

/// Where a cursor stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The newest that the client has, as the protocol wants it.
    Own,
    /// So many events before that.
    Behind(u8),
    /// Before the first event.
    Start,
    /// So many events after the newest one of the session.
    Ahead(u16),
    /// In an epoch that never was.
    Foreign,
    /// In the epoch before the present one; one that never was when there is none.
    Former,
    /// In another session of the case; one that never was when there is none.
    OtherSession,
    /// An empty text.
    Empty,
    /// Digits alone.
    Digits,
    /// A text that is no cursor, one of several.
    Garbage(u8),
    /// A text of so many characters that is no cursor.
    Long(u32),
}

impl Case {
    /// Whether the target is restarted.
    pub fn restarts(&self) -> bool {
        let is_restart = |step: &Step| matches!(step, Step::Restart { .. });
        self.steps.iter().any(is_restart)
    }

    /// Whether what is recorded depends on who is faster. Without that, a case is recorded the same each time.
    pub fn is_racy(&self) -> bool {
        self.restarts_within_a_turn()
            || self.steps.iter().any(|step| match step {
                Step::Connect { race, slow, .. } => *race > 0 || *slow,
                Step::Burst { count, .. } => *count > 50,
                // How many words are told before a turn stops, or before what it writes, is a matter of time.
                Step::Turn {
                    words,
                    writes,
                    ending,
                    ..
                } => *ending == Ending::Stopped || (*words > 0 && *writes > 0),
                _ => false,
            })
    }

    /// Whether the target is restarted while a turn that tells something may run: how much of it is heard before the
    /// connection ends is a matter of time.
    fn restarts_within_a_turn(&self) -> bool {
        let begins = |step: &Step| matches!(step, Step::Begin { words, .. } if *words > 0);
        let begun = self.steps.iter().skip_while(|step| !begins(step));
        begun
            .into_iter()
            .any(|step| matches!(step, Step::Restart { .. }))
    }

    /// The JSON form, in one line.
    pub fn to_json(&self) -> String {
        // Plain data with text keys only: there is nothing in it that JSON cannot say.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Step {
    /// The session that it names.
    pub fn session(&self) -> Option<u8> {
        match self {
            Self::Write { session, .. }
            | Self::Turn { session, .. }
            | Self::Begin { session, .. }
            | Self::Finish { session }
            | Self::Burst { session, .. }
            | Self::LosePublish { session }
            | Self::Queue { session, .. }
            | Self::Command { session }
            | Self::Continue { session }
            | Self::Cancel { session }
            | Self::Connect { session, .. } => Some(*session),
            Self::Read { .. } | Self::Drop { .. } | Self::Restart { .. } => None,
        }
    }

    /// The client that it names.
    pub fn client(&self) -> Option<u8> {
        match self {
            Self::Connect { client, .. } | Self::Read { client } | Self::Drop { client } => {
                Some(*client)
            }
            _ => None,
        }
    }

    /// A connection as the protocol wants it.
    pub fn connect(client: u8, session: u8) -> Self {
        Self::Connect {
            client,
            session,
            query: Some(Place::Own),
            header: None,
            narrow: false,
            slow: false,
            cut: None,
            race: 0,
        }
    }
}

/// Where a stream is cut off, as a step says it.
pub fn cut_at(cut: Option<(u16, u16)>) -> Option<CutAt> {
    cut.map(|(frames, bytes)| CutAt {
        frames: frames.into(),
        bytes: bytes.into(),
    })
}

/// Texts that are no cursors of any protocol here, none of them empty or with a space at an end.
pub const GARBAGE: &[&str] = &[
    ":",
    ":5",
    "abc",
    "abc:",
    "abc:x",
    "abc:-1",
    "abc:+1",
    "abc:1.5",
    "abc:1e3",
    "a:b:c",
    "null",
    "undefined",
    "{\"seq\":1}",
    "%3A7",
    "../../etc/passwd:x",
    "e:1;drop table",
];

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_reads_back_from_its_json() {
        let case = Case {
            steps: vec![
                Step::Write {
                    session: 1,
                    count: 3,
                },
                Step::Connect {
                    client: 2,
                    session: 0,
                    query: Some(Place::Behind(2)),
                    header: Some(Place::Long(300)),
                    narrow: true,
                    slow: false,
                    cut: Some((3, 14)),
                    race: 2,
                },
                Step::Restart { kill: true },
            ],
        };
        let json = case.to_json();
        assert_eq!(
            json,
            r#"[{"do":"write","session":1,"count":3},{"do":"connect","client":2,"session":0,"query":{"behind":2},"header":{"long":300},"narrow":true,"cut":[3,14],"race":2},{"do":"restart","kill":true}]"#
        );
        assert_eq!(serde_json::from_str::<Case>(&json).unwrap(), case);
    }
}
