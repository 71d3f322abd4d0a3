//! Opening a session, the subscription and its cursor, actions, and the recovery of what was lost.
//!
//! [`Core::handle`] takes one [`Input`] and gives the [`Command`]s that follow from it. Nothing here does I/O or
//! reads a clock.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
    time::Duration,
};

use serde_json::{Value, json};
use turnwire_spec::{
    covel::limits::{
        POLL_AFTER_FAILURES, POLL_AFTER_SUCCESS, RECONNECT_FIRST, RECONNECT_MAX,
        REFUSALS_TO_GIVE_UP,
    },
    cursor::Cursor,
};

use super::{
    control::{Call, Keeping},
    history::History,
    shown::{Message, Shown, Status},
    turn::Event,
};

/// The topics that the client asks for. COV-SUB-054 to 056.
pub const TOPICS: &str = "runtime,state,game,plugin,session,system,job";

/// Longest wait for the view before the subscription is opened without its cursor.
pub const VIEW_FIRST: Duration = Duration::from_millis(100);

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
}

/// What is asked for with `GET`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
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
    /// The plugins, with their commands.
    Plugins,
    /// What was traced.
    Traces,
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

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Ask with `GET`, and answer with [`Input::Answer`].
    Get(u64, Ask, String),
    /// Open the subscription in place of any other, at this path.
    Subscribe(u64, String),
    /// Close the subscription.
    Unsubscribe,
    /// Post an action and read its stream.
    Act(u64, Value),
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
    /// Wait, in real time.
    Pause(u64, Timer, Duration),
    /// Forget the action's stream.
    Forget,
}

/// The action that runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Action {
    pub(super) request: String,
    /// The form that it answers.
    pub(super) form: Option<String>,
    /// How many of the waiting choices it has sent.
    choices: usize,
    /// Whether an execution has begun.
    pub(super) started: bool,
    /// Its turns, in order.
    pub(super) turns: Vec<String>,
    /// The newest round, and whether it runs.
    pub(super) round: Option<(u64, bool)>,
    pub(super) advance_over: bool,
    /// The stream was lost; the server is asked how it stands.
    lost: bool,
    failures: usize,
}

/// A Covel client without its sockets.
#[derive(Debug, Default)]
pub struct Core {
    /// Tells this page from others; whoever starts the client gives it.
    pub(super) page: String,
    /// Whether this client keeps its data itself.
    pub(super) local: bool,
    pub(super) shown: Shown,
    pub(super) action: Option<Action>,
    pub(super) ended_turns: BTreeSet<String>,
    pub(super) committed_slots: BTreeMap<String, Value>,
    pub(super) changed_slots: BTreeSet<String>,
    pub(super) previews: BTreeMap<String, (String, Value)>,
    pub(super) messages_cursor: Option<String>,
    pub(super) history: History,
    /// Commands by the name that a person types, once the server has told them.
    pub(super) catalog: Option<BTreeMap<String, String>>,
    /// A slash command that waits for the catalog.
    pub(super) slash: Option<String>,
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) keeping: Option<(u64, Keeping)>,
    /// The plugin that keeps the dimensions, and the runtimes that recover them.
    pub(super) dimension_recovery: (Option<String>, Value),
    pub(super) commands: Vec<Command>,
    number: u64,
    requests: u64,
    /// The first view of the visit is still to come.
    opening: bool,
    /// The newest question of each kind: answers to older ones are late.
    asked: BTreeMap<Ask, u64>,
    subscription: u64,
    acting: u64,
    timer: u64,
    /// Events that wait for the view.
    held: Vec<Event>,
    view_pending: bool,
    /// The view is wanted again as soon as the action is over.
    view_wanted: bool,
    /// The cursor of the first `system.connected`, when the subscription was opened before the view came.
    joined_at: Option<String>,
    connected_before: bool,
    /// The subscription ended, and this client did not want it.
    lost: bool,
    backoff: Duration,
    refusals: u32,
    hidden: bool,
    /// What the person wants to say once the running action has stopped.
    pub(super) next: Option<String>,
}

impl Core {
    /// A client of this page, and whether it keeps its data itself.
    pub fn new(page: String, local: bool) -> Self {
        Self {
            page,
            local,
            ..Self::default()
        }
    }

    /// What a person sees.
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Takes in what happened; gives what is to be done.
    pub fn handle(&mut self, input: Input) -> Vec<Command> {
        match input {
            Input::Person(person) => self.person(person),
            Input::Answer(number, ask, answer) if self.asked.get(&ask) == Some(&number) => {
                self.asked.remove(&ask);
                self.answer(ask, answer);
            }
            Input::Subscribed(number) if number == self.subscription => {
                self.backoff = RECONNECT_FIRST;
                self.refusals = 0;
                self.shown.connection = "open";
            }
            Input::Frame(number, event, data, id) if number == self.subscription => {
                self.frame(&event, &data, id);
            }
            Input::Unsubscribed(number, status) if number == self.subscription => {
                self.unsubscribed(status)
            }
            Input::ActionTaken(number) if number == self.acting => self.taken(),
            Input::Called(number, answer) => self.called(number, answer),
            Input::Kept(number, kept) => self.kept(number, kept),
            Input::Loaded(id, loaded) => {
                if let Some(medium) = self.shown.media.get_mut(&id) {
                    *medium = loaded;
                }
            }
            Input::ActionFrame(number, data) if number == self.acting => {
                if let Some((event, session)) = Event::read(&data, true)
                    && session == self.shown.session
                {
                    self.apply(&event);
                }
            }
            Input::ActionOver(number, status) if number == self.acting => self.action_lost(status),
            Input::Timer(number, Timer::Subscribe) if number == self.timer => self.subscribe(),
            Input::Timer(number, Timer::Poll) if number == self.acting => self.ask_execution(),
            // Late: it belongs to a connection, a question or a visit that is over.
            _ => {}
        }
        take(&mut self.commands)
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    pub(super) fn path(&self, rest: &str) -> String {
        format!("/api/sessions/{}{rest}", self.shown.session)
    }

    pub(super) fn ask(&mut self, ask: Ask, rest: &str) {
        let (number, path) = (self.next_number(), self.path(rest));
        self.asked.insert(ask, number);
        self.commands.push(Command::Get(number, ask, path));
    }

    fn person(&mut self, person: Person) {
        match person {
            Person::Open(session) => self.open(&session),
            Person::Close => self.leave(),
            Person::Type(text) => self.shown.input = text,
            Person::Say(text) => self.say(text),
            Person::Answer(form, values) => self.answer_form(form, values),
            Person::Stop => self.stop(),
            Person::Retry => {
                self.shown.retry_offered = false;
                self.act(json!({"type": "retry_turn", "payload": {}}), None);
            }
            Person::Hide => {
                self.hidden = true;
                self.close_subscription("paused");
            }
            Person::Show => {
                self.hidden = false;
                self.subscribe();
                if self.action.as_ref().is_some_and(|action| action.lost) {
                    self.ask_execution();
                }
            }
            Person::Steer(text) => self.steer(text),
            Person::Press(slot, control) => self.press(&slot, &control),
            Person::Select(block, values) => self.select(&block, values),
            Person::RetryTask(turn, runtime) => self.retry_task(&turn, &runtime),
            Person::Recover(result) => self.recover(&result),
            Person::Older => {
                if let Some(cursor) = self.messages_cursor.clone() {
                    self.ask(
                        Ask::Older,
                        &format!("/messages/page?cursor={}", encoded(&cursor)),
                    );
                }
            }
        }
    }

    fn open(&mut self, session: &str) {
        self.leave();
        self.shown = Shown::opening(session);
        self.backoff = RECONNECT_FIRST;
        self.read_view();
        self.ask(Ask::Jobs, "/runtime-jobs");
        self.ask(Ask::Slots, "/ui-slots");
        self.ask(Ask::Suspensions, "/suspensions");
        self.ask(Ask::Plugins, "/plugins");
        self.ask_traces();
        self.opening = true;
        self.timer = self.next_number();
        self.commands
            .push(Command::Pause(self.timer, Timer::Subscribe, VIEW_FIRST));
    }

    /// Everything of this visit is over; what still comes for it is late.
    fn leave(&mut self) {
        let hidden = self.hidden;
        self.commands
            .extend([Command::Unsubscribe, Command::Forget]);
        *self = Self {
            commands: take(&mut self.commands),
            number: self.number + 1,
            requests: self.requests,
            page: take(&mut self.page),
            local: self.local,
            hidden,
            ..Self::default()
        };
    }

    fn wait(&mut self, time: Duration) {
        self.timer = self.next_number();
        self.commands
            .push(Command::Wait(self.timer, Timer::Subscribe, time));
    }

    // ---- the subscription ----

    /// COV-SUBAG-057 to 063: none while an action of this session runs, or nobody looks.
    fn subscribe(&mut self) {
        let away = self.hidden || self.action.as_ref().is_some_and(|action| !action.lost);
        if self.shown.session.is_empty() || away || self.refusals >= REFUSALS_TO_GIVE_UP {
            return;
        }
        self.timer = 0;
        self.subscription = self.next_number();
        let mut path = format!(
            "/api/events/stream?sessionId={}&topics={TOPICS}",
            encoded(&self.shown.session)
        );
        if let Some(cursor) = &self.shown.cursor {
            path.push_str(&format!("&lastEventId={}", encoded(cursor)));
        }
        self.commands
            .push(Command::Subscribe(self.subscription, path));
    }

    fn close_subscription(&mut self, state: &'static str) {
        self.subscription = 0;
        self.timer = 0;
        self.shown.connection = state;
        self.commands.push(Command::Unsubscribe);
    }

    fn unsubscribed(&mut self, status: Option<u16>) {
        self.subscription = 0;
        self.lost = true;
        self.shown.connection = "connecting";
        match status {
            Some(status @ 400..=499) if status != 408 && status != 429 => self.refusals += 1,
            _ => self.refusals = 0,
        }
        if self.refusals >= REFUSALS_TO_GIVE_UP {
            self.shown.connection = "closed";
            return;
        }
        let wait = self.backoff;
        self.backoff = (wait * 2).min(RECONNECT_MAX);
        self.wait(wait);
    }

    fn frame(&mut self, kind: &str, data: &str, id: Option<String>) {
        // COV-SUB-077: only events have an id, and the last id is the cursor, as it stands.
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            self.shown.cursor = Some(id);
        }
        match kind {
            "system.connected" => self.connected(data),
            "system.reset" => self.reset(data),
            _ => {
                // COV-SUB-007: the frame's own name decides.
                if let Some((mut event, session)) = Event::read(data, false)
                    && session == self.shown.session
                {
                    kind.clone_into(&mut event.kind);
                    self.arrived(event);
                }
            }
        }
    }

    fn connected(&mut self, data: &str) {
        let cursor = cursor_in(data);
        let again = std::mem::replace(&mut self.connected_before, true);
        let lost = std::mem::replace(&mut self.lost, false);
        if self.shown.cursor.is_none() {
            // COV-SUB-037: who has no cursor begins here.
            self.shown.cursor.clone_from(&cursor);
            if self.view_pending && !again {
                self.joined_at = cursor;
            }
        }
        if again && lost {
            // COV-SUSP-058: what was missed may not be replayed. After a pause it is. COV-SLOT-074: diagnostics never
            // are.
            self.read_view();
            self.ask_traces();
        }
    }

    /// COV-SUB-104, 105: another beginning: its cursor, and the stored state.
    fn reset(&mut self, data: &str) {
        self.shown.cursor = cursor_in(data).or(self.shown.cursor.take());
        self.read_view();
        self.ask(Ask::Jobs, "/runtime-jobs");
        self.changed_slots.clear();
        self.ask(Ask::Slots, "/ui-slots");
        self.ask(Ask::Suspensions, "/suspensions");
        self.ask(Ask::Session, "");
    }

    /// COV-SUB-103: what comes while the view is under way is newer than it, and applied after it.
    fn arrived(&mut self, event: Event) {
        if self.view_pending {
            self.held.push(event.clone());
        }
        self.apply(&event);
    }

    fn apply(&mut self, event: &Event) {
        if !event.in_turn {
            self.diagnosed(event);
        }
        if !self.turn_event(event) {
            self.background_event(event);
        }
        self.recovery_event(event);
    }

    fn ask_traces(&mut self) {
        let (number, path) = (self.next_number(), encoded(&self.shown.session));
        self.asked.insert(Ask::Traces, number);
        self.commands.push(Command::Get(
            number,
            Ask::Traces,
            format!("/api/traces/{path}"),
        ));
    }

    // ---- what is stored ----

    /// Reads the view; during an action, after it (COV-DIM-053).
    pub(super) fn read_view(&mut self) {
        if self.action.as_ref().is_some_and(|action| !action.lost) {
            self.view_wanted = true;
            return;
        }
        self.view_wanted = false;
        self.view_pending = true;
        self.held.clear();
        self.ask(Ask::View, "/view");
    }

    pub(super) fn ask_execution(&mut self) {
        if !self.hidden && !self.asked.contains_key(&Ask::Execution) {
            self.ask(Ask::Execution, "/execution");
        }
    }

    fn answer(&mut self, ask: Ask, answer: Option<(u16, Value)>) {
        let body = answer.and_then(|(status, body)| (status == 200).then_some(body));
        match (ask, body) {
            (Ask::View, body) => self.viewed(body),
            (Ask::Execution, body) => self.execution(body),
            (Ask::Session, Some(body)) => self.apply_session(&body),
            (Ask::Jobs, body) => {
                if let Some(body) = body {
                    self.apply_jobs(&body);
                }
                self.jobs_known();
            }
            (Ask::Traces, Some(body)) => self.traced(&body),
            (Ask::Plugins, body) => self.plugins(body.unwrap_or_default()),
            (Ask::Slots, Some(body)) => self.apply_slots(&body),
            (Ask::Suspensions, Some(body)) => self.apply_suspensions(&body),
            (Ask::Older, Some(body)) => {
                self.messages_cursor = body["nextCursor"].as_str().map(str::to_owned)
            }
            (_, None) => {}
        }
    }

    fn viewed(&mut self, body: Option<Value>) {
        self.view_pending = false;
        let held = take(&mut self.held);
        let Some(view) = body else {
            return;
        };
        if self.action.as_ref().is_some_and(|action| !action.lost) {
            self.view_wanted = true;
            return;
        }
        self.apply_view(&view);
        if take(&mut self.opening) {
            self.adopt(&view);
        }
        self.settle_recovered(&view);
        held.iter().for_each(|event| self.apply(event));
        let event_cursor = view["eventCursor"].as_str().map(str::to_owned);
        match self.joined_at.take() {
            // COV-SUB-045 to 047: something happened between the view and the subscription.
            Some(joined)
                if event_cursor
                    .as_ref()
                    .is_some_and(|cursor| is_news(&joined, cursor)) =>
            {
                self.read_view()
            }
            Some(_) => {}
            None if self.shown.cursor.is_none() => self.shown.cursor = event_cursor,
            None => {}
        }
        if self.subscription == 0 && !self.connected_before {
            self.subscribe();
        }
    }

    // ---- actions ----

    /// COV-CMD-040: an action runs that this page has not begun, or no longer follows: it is watched like one whose
    /// stream was lost, and not sent again.
    fn adopt(&mut self, view: &Value) {
        let execution = &view["execution"];
        if execution["state"] != "running" || self.action.is_some() {
            return;
        }
        let text = |key: &str| execution[key].as_str().map(str::to_owned);
        self.action = Some(Action {
            request: text("requestId").unwrap_or_default(),
            started: true,
            turns: text("turnId").into_iter().collect(),
            lost: true,
            ..Action::default()
        });
        self.acting = self.next_number();
        self.shown.executing = true;
        self.ask_execution();
    }

    /// COV-ADV-007: what was said stays in the input box until it is accepted.
    pub(super) fn say(&mut self, text: String) {
        self.shown.input.clone_from(&text);
        self.begin(text);
    }

    /// Goes on with what was said.
    pub(super) fn begin(&mut self, text: String) {
        if self.action.is_some() || self.keeping.is_some() {
            // COV-ADV-001 to 006: the running action is stopped first; one input waits, no more.
            if self.next.is_some() {
                self.shown.notice = Some("busy".to_owned());
                return;
            }
            self.next = Some(text);
            self.stop();
            return;
        }
        if text.starts_with('/') && self.command(&text) {
            return;
        }
        if self.local {
            return self.keep_input(text);
        }
        self.submit(text, None);
    }

    /// Sends what was said, with the choices that wait for it.
    pub(super) fn submit(&mut self, text: String, input_message: Option<String>) {
        let action = if text.starts_with('/') {
            json!({"type": "command", "command": text})
        } else {
            json!({"type": "say", "text": text})
        };
        let mut actions = vec![action];
        let choices = self.selected();
        let count = choices.len();
        actions.extend(choices);
        let mut payload = json!({ "actions": actions });
        if let Some(id) = input_message {
            payload["inputMessageId"] = json!(id);
        }
        self.act(json!({"type": "submit_actions", "payload": payload}), None);
        if let Some(action) = &mut self.action {
            action.choices = count;
        }
        let request = self.action.as_ref().map(|action| action.request.clone());
        self.shown.messages.push(Message {
            role: "player".to_owned(),
            text,
            status: Status::Sending,
            request,
            ..Message::default()
        });
    }

    fn answer_form(&mut self, form: String, values: Value) {
        if self.action.is_some() || self.keeping.is_some() {
            // COV-ADV-005: what was filled in stays.
            self.shown.notice = Some("busy".to_owned());
            if let Some(form) = self.shown.form(&form) {
                form.draft = Some(values);
            }
            return;
        }
        let turn = self.shown.messages.iter().find(|message| {
            message
                .form
                .as_ref()
                .is_some_and(|own| own.block_id == form)
        });
        let turn = turn.and_then(|message| message.turn_id.clone());
        if let Some(form) = self.shown.form(&form) {
            form.draft = Some(values.clone());
            form.issues.clear();
        }
        let submission = json!({"interactionId": form, "type": "form", "values": values});
        let answer = json!({"type": "interaction", "turnId": turn, "submissions": [submission]});
        self.act(
            json!({"type": "submit_actions", "payload": {"actions": [answer]}}),
            Some(form),
        );
    }

    fn stop(&mut self) {
        if self.action.is_some() {
            self.commands
                .push(Command::Post(self.path("/abort"), json!({})));
        }
    }

    /// Posts an action. The subscription pauses until it is over.
    pub(super) fn act(&mut self, mut body: Value, form: Option<String>) {
        if self.action.is_some() || self.shown.session.is_empty() {
            return;
        }
        self.requests += 1;
        let request = format!("turnwire-{}-{}", self.page, self.requests);
        body["requestId"] = json!(request);
        body["sessionId"] = json!(self.shown.session);
        self.shown.executing = true;
        self.shown.execution_error = None;
        self.shown.notice = None;
        self.action = Some(Action {
            request,
            form,
            ..Action::default()
        });
        self.close_subscription("paused");
        if self.asked.remove(&Ask::View).is_some() {
            // COV-SUSP-022: by the time it is answered it may be older than what this action commits.
            self.view_pending = false;
            self.view_wanted = true;
        }
        self.acting = self.next_number();
        self.commands.push(Command::Act(self.acting, body));
    }

    /// The server has taken what was said; what was typed since stays.
    fn taken(&mut self) {
        let Some(action) = &self.action else {
            return;
        };
        let mut echoes = self.shown.messages.iter();
        let said = echoes.find(|message| message.request.as_ref() == Some(&action.request));
        if said.is_some_and(|message| message.text == self.shown.input) {
            self.shown.input.clear();
        }
        let sent = action.choices.min(self.shown.selections.len());
        self.shown.selections.drain(..sent);
    }

    /// The action has ended: the subscription goes on, and what was asked for meanwhile is read.
    pub(super) fn action_over(&mut self, refresh: bool, reread: bool) {
        self.acting = 0;
        self.shown.executing = false;
        self.shown.advance = None;
        self.subscribe();
        if reread || take(&mut self.view_wanted) {
            self.read_view();
        } else if refresh {
            // COV-CTL-051: phase and count may have changed without an event.
            self.ask(Ask::Session, "");
        }
        if self.local {
            // COV-ADV-002: what is to be said next waits for it.
            return self.keep_checkpoint();
        }
        if let Some(text) = self.next.take() {
            self.begin(text);
        }
    }

    /// The stream is gone before it said how the action ended. Nothing is sent again; the server is asked.
    fn action_lost(&mut self, status: Option<u16>) {
        let Some(action) = &mut self.action else {
            return;
        };
        if let Some(status) = status {
            let request = action.request.clone();
            self.action = None;
            self.shown.execution_error = Some(format!("the server answered {status}"));
            let echo = |message: &Message| message.request.as_deref() == Some(&request);
            if let Some(place) = self.shown.messages.iter().position(echo) {
                let text = self.shown.messages.remove(place).text;
                if self.shown.input.is_empty() {
                    self.shown.input = text;
                }
            }
            return self.action_over(false, false);
        }
        action.lost = true;
        self.subscribe();
        self.ask_execution();
    }

    /// How the lost action stands. COV-CMD-045 to 052.
    fn execution(&mut self, body: Option<Value>) {
        let Some(action) = &mut self.action else {
            return;
        };
        let (wait, over) = match &body {
            Some(body) => {
                action.failures = 0;
                (POLL_AFTER_SUCCESS, body["state"] != "running")
            }
            None => {
                action.failures += 1;
                let place = (action.failures - 1).min(POLL_AFTER_FAILURES.len() - 1);
                (POLL_AFTER_FAILURES[place], false)
            }
        };
        if over {
            self.read_view();
        } else {
            self.commands
                .push(Command::Wait(self.acting, Timer::Poll, wait));
        }
    }

    /// The view that followed a lost action says what became of it.
    fn settle_recovered(&mut self, view: &Value) {
        let Some(action) = self.action.as_ref().filter(|action| action.lost).cloned() else {
            return;
        };
        let state = view["execution"]["state"].as_str().unwrap_or_default();
        let ended = state != "running";
        let failed = matches!(state, "failed" | "interrupted");
        self.settle_lost(&action.turns, ended, failed);
        if !ended || self.asked.contains_key(&Ask::Execution) {
            return;
        }
        self.shown.retry_offered = view["execution"]["retry"].is_object();
        self.action = None;
        self.acting = 0;
        self.shown.executing = false;
        self.shown.advance = None;
    }
}

fn cursor_in(data: &str) -> Option<String> {
    let frame: Value = serde_json::from_str(data).ok()?;
    frame["cursor"].as_str().map(str::to_owned)
}

/// Whether a cursor is of another epoch than the other, or newer; by number, not by text (COV-SUB-173).
fn is_news(cursor: &str, than: &str) -> bool {
    match (Cursor::parse(cursor), Cursor::parse(than)) {
        (Ok(a), Ok(b)) => a.epoch != b.epoch || a.seq > b.seq,
        _ => cursor != than,
    }
}

/// Percent-encodes what is no plain character of a query value.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
