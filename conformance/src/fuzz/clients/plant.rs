//! Faults of clients, which the fuzzer has to find: between the reference client and the harness.
//!
//! A fault shows only in a case that holds what triggers it, so that finding it also shows that such cases are made,
//! and that they stay when a case is made smaller.

use super::{
    case::{Case, Kind},
    faulty::{self, Deed},
    run::Launcher,
};

/// A fault.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    /// Its name.
    pub name: &'static str,
    /// What is wrong.
    pub about: &'static str,
    /// The name of what triggers it, see [`Case::names`].
    pub trigger: &'static str,
    /// The protocol whose client has it.
    pub kind: Kind,
    deed: Deed,
}

macro_rules! of_kind {
    ($name:ident, $kind:ident) => {
        const fn $name(
            name: &'static str,
            trigger: &'static str,
            deed: Deed,
            about: &'static str,
        ) -> Plant {
            Plant {
                name,
                about,
                trigger,
                kind: Kind::$kind,
                deed,
            }
        }
    };
}

of_kind!(covel, Covel);
of_kind!(stream, Stream);
of_kind!(chat, Chat);
of_kind!(updates, Updates);

/// The faults, by protocol.
pub const PLANTS: &[Plant] = &[
    covel(
        "dies-of-nesting",
        "deep",
        Deed::Dies,
        "deep nesting ends the client",
    ),
    covel(
        "dies-of-types",
        "retype",
        Deed::Dies,
        "a member of another type ends the client",
    ),
    covel(
        "dies-of-encodings",
        "encode",
        Deed::Dies,
        "another encoding ends the client",
    ),
    covel(
        "hangs-at-half-a-frame",
        "half",
        Deed::Hangs,
        "after half a frame the client never connects again",
    ),
    covel(
        "hangs-at-a-refusal",
        "refused",
        Deed::Hangs,
        "after one refusal the client never connects again",
    ),
    covel(
        "freezes-at-unknown-members",
        "unknown",
        Deed::Freezes,
        "a member that nobody knows stops the display",
    ),
    covel(
        "freezes-at-dropped-members",
        "drop",
        Deed::Freezes,
        "a member that is missing stops the display",
    ),
    covel(
        "doubles-what-came-twice",
        "again",
        Deed::Doubles,
        "a frame that came twice leaves its message there twice",
    ),
    covel(
        "loses-after-pieces",
        "pieces",
        Deed::Loses,
        "after frames in pieces events are lost",
    ),
    covel(
        "runs-after-wrong-bytes",
        "byte",
        Deed::Runs,
        "a wrong byte leaves the action running for ever",
    ),
    covel(
        "garbles-carriage-returns",
        "cr-lf",
        Deed::Garbles,
        "after lines that end with CR LF texts are not what was sent",
    ),
    stream(
        "reader-dies",
        "line",
        Deed::Dies,
        "the reader ends in the middle of a stream",
    ),
    stream(
        "reader-doubles-pieces",
        "pieces",
        Deed::Doubles,
        "events that came in pieces are read twice",
    ),
    stream(
        "reader-loses-the-last",
        "line",
        Deed::Loses,
        "the last event before the end is lost",
    ),
    stream(
        "reader-garbles-pieces",
        "pieces",
        Deed::Garbles,
        "data that came in pieces is not what was sent",
    ),
    chat(
        "dies-of-nesting",
        "deep",
        Deed::Dies,
        "deep nesting ends the client",
    ),
    chat(
        "dies-of-types",
        "retype",
        Deed::Dies,
        "a member of another type ends the client",
    ),
    chat(
        "dies-of-encodings",
        "encode",
        Deed::Dies,
        "another encoding ends the client",
    ),
    chat(
        "dies-of-masks",
        "masked",
        Deed::Dies,
        "a frame that is masked ends the client",
    ),
    chat(
        "hangs-at-half-a-frame",
        "half",
        Deed::Hangs,
        "after half a frame the client does nothing any more",
    ),
    chat(
        "hangs-at-a-refusal",
        "refused",
        Deed::Hangs,
        "after one refusal the client does nothing any more",
    ),
    chat(
        "hangs-at-a-huge-frame",
        "huge",
        Deed::Hangs,
        "a frame that says it is huge is waited for",
    ),
    chat(
        "freezes-at-unknown-members",
        "unknown",
        Deed::Freezes,
        "a member that nobody knows stops the display",
    ),
    chat(
        "freezes-at-binary-messages",
        "binary",
        Deed::Freezes,
        "a binary message stops the display",
    ),
    chat(
        "doubles-what-came-twice",
        "again",
        Deed::Doubles,
        "a frame that came twice leaves its bubble there twice",
    ),
    chat(
        "loses-after-fragments",
        "fragments",
        Deed::Loses,
        "after a message in fragments the last bubble is lost",
    ),
    chat(
        "garbles-pieces",
        "pieces",
        Deed::Garbles,
        "after frames in pieces texts are not what was sent",
    ),
    chat(
        "runs-after-dropped-members",
        "drop",
        Deed::Runs,
        "a member that is missing leaves the turn running for ever",
    ),
    updates(
        "dies-of-nesting",
        "deep",
        Deed::Dies,
        "deep nesting ends the client",
    ),
    updates(
        "dies-of-types",
        "retype",
        Deed::Dies,
        "a member of another type ends the client",
    ),
    updates(
        "dies-of-bytes",
        "byte",
        Deed::Dies,
        "a wrong byte ends the client",
    ),
    updates(
        "dies-of-long-lines",
        "oversize",
        Deed::Dies,
        "a line of more than a mebibyte ends the client",
    ),
    updates(
        "hangs-at-half-a-line",
        "half",
        Deed::Hangs,
        "after half a line the client does nothing any more",
    ),
    updates(
        "hangs-at-a-refusal",
        "refused",
        Deed::Hangs,
        "after one refusal the client does nothing any more",
    ),
    updates(
        "freezes-at-unknown-members",
        "unknown",
        Deed::Freezes,
        "a member that nobody knows stops the display",
    ),
    updates(
        "freezes-at-blank-lines",
        "blank-lines",
        Deed::Freezes,
        "a blank line stops the display",
    ),
    updates(
        "doubles-what-came-twice",
        "again",
        Deed::Doubles,
        "an event that came twice leaves its notice there twice",
    ),
    updates(
        "loses-after-pieces",
        "pieces",
        Deed::Loses,
        "after lines in pieces tools are lost",
    ),
    updates(
        "garbles-carriage-returns",
        "cr-lf",
        Deed::Garbles,
        "after lines that end with CR LF texts are not what was sent",
    ),
    updates(
        "runs-after-dropped-members",
        "drop",
        Deed::Runs,
        "a member that is missing leaves the turn running for ever",
    ),
];

impl Plant {
    /// Whether it shows in this case.
    pub fn is_triggered(&self, case: &Case) -> bool {
        case.names().contains(&self.trigger)
    }

    /// The client with this fault.
    pub fn client(&self, own: &Launcher) -> Launcher {
        faulty::launcher(own, self.deed)
    }
}
