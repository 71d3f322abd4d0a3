//! What happens to a client, and what it wants done. Numbers tie an [`Input`] to the [`Command`] that it answers.

use std::time::Duration;

use serde_json::Value;

/// What a person does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Person {
    /// Opens a session.
    Open(String),
    /// Leaves it.
    Close,
    /// Types into the input box.
    Type(String),
    /// Says something, or enters a command.
    Say(String),
    /// Answers a form.
    Answer(String, Value),
    /// Stops the action.
    Stop,
    /// Tries the last turn again.
    Retry,
    /// Hides the page.
    Hide,
    /// Shows it again.
    Show,
    /// Scrolls back in the conversation.
    Older,
    /// Says something to the action that runs.
    Steer(String),
    /// Presses a control: the slot that shows it, and its id there.
    Press(String, String),
    /// Chooses an answer, which goes out with what is said next: the block, and the values.
    Select(String, Value),
    /// Tries one failed task again: turn and runtime.
    RetryTask(String, String),
    /// Has an open settlement looked after: the id of its result.
    Recover(String),
    /// Calls an action of a plugin with this payload.
    Call(String, String, Value),
    /// Allows or denies the call that is asked about.
    Decide(bool),
    /// Answers this suspension.
    Resume(String, Value),
    /// Registers a handler of this event type that fails with this message.
    Handle(String, String),
    /// Opens the debug page.
    Debug,
    /// Copies a provider request of the debug page: which call, which of its requests.
    Copy(usize, usize),
    /// Rebuilds one.
    Rebuild(usize, usize),
    /// Exports the session for the public.
    Export,
}

/// What is asked for with `GET`.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Ask {
    /// The session view.
    View,
    /// The session record.
    Session,
    /// Where the execution stands.
    Execution,
    /// The background jobs.
    Jobs,
    /// The slots of the interface.
    Slots,
    /// The open suspensions.
    Suspensions,
    /// Messages before the window.
    Older,
    /// What was traced.
    Traces,
    /// Messages between what is shown and a newer window.
    Fill,
    /// The plugins of the session, with their commands.
    Plugins,
    /// The data of this plugin.
    Data(String),
    /// The worlds.
    World,
    /// The calls that wait for the person.
    Approvals,
    /// A page of the trace, for the debug page.
    TracePage,
    /// What this client has kept of the session's executions.
    Kept,
    /// Where this medium is to be had.
    Media(String),
}

/// What timers are for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timer {
    /// Subscribe, with or without the view.
    Subscribe,
    /// Look how the lost action stands.
    Poll,
}

/// What happened. Numbers are those of the [`Command`] that it answers.
#[derive(Clone, Debug)]
pub enum Input {
    /// The person did something.
    Person(Person),
    /// An answer came, with its JSON; or none did.
    Answer(u64, Ask, Option<(u16, Value)>),
    /// What is behind a URL was answered with this status; or there was an error of this kind.
    Fetched(u64, Result<u16, &'static str>),
    /// The subscription is open.
    Subscribed(u64),
    /// A frame of the subscription: event, data, id.
    Frame(u64, String, String, Option<String>),
    /// The subscription is over, or was refused with this status.
    Unsubscribed(u64, Option<u16>),
    /// The action was taken; its stream is open.
    ActionTaken(u64),
    /// A frame of the action.
    ActionFrame(u64, String),
    /// The action's stream is over, or was refused with this status.
    ActionOver(u64, Option<u16>),
    /// A timer went off.
    Timer(u64, Timer),
    /// A call was answered, or was not.
    Called(u64, Option<(u16, Value)>),
    /// The client's own store has taken something, or has not.
    Kept(u64, bool),
    /// A medium was loaded, or was not: its id.
    Loaded(String, bool),
}

impl Input {
    /// The number of the command that it answers.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Person(_) | Self::Loaded(..) => None,
            Self::Answer(number, ..)
            | Self::Called(number, _)
            | Self::Kept(number, _)
            | Self::Fetched(number, _)
            | Self::Subscribed(number)
            | Self::Frame(number, ..)
            | Self::Unsubscribed(number, _)
            | Self::ActionTaken(number)
            | Self::ActionFrame(number, _)
            | Self::ActionOver(number, _)
            | Self::Timer(number, _) => Some(*number),
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Ask with `GET`, and answer with [`Input::Answer`].
    Get(u64, Ask, String),
    /// Ask the client's own store for this, and answer with [`Input::Answer`].
    Recall(u64, Ask, &'static str),
    /// Ask for what is behind a URL, and answer with [`Input::Fetched`].
    Fetch(u64, String),
    /// Open the subscription at this path.
    Subscribe(u64, String),
    /// Post an action and read its stream.
    Act(u64, Value),
    /// Close the stream that has this number.
    End(u64),
    /// Post something whose answer does not matter.
    Post(String, Value),
    /// Post something, and answer with [`Input::Called`].
    Call(u64, String, Value),
    /// Put something into the client's own store, at this path, and answer with [`Input::Kept`].
    Keep(u64, String, Value),
    /// Load a medium: its id, and the path; answer with [`Input::Loaded`].
    Load(String, String),
    /// Wait, before time scaling.
    Wait(u64, Timer, Duration),
    /// Wait, before time scaling, and at least so long in real time.
    Pause(u64, Timer, Duration),
}
