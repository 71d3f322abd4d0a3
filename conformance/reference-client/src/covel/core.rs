//! Opening a session, the subscription and its cursor, and actions.
//!
//! [`Core::handle`] takes one [`Input`] and gives the [`Command`]s that follow from it. Nothing here does I/O or
//! reads a clock.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
    time::Duration,
};

use serde_json::{Value, json};
use turnwire_spec::covel::limits::{RECONNECT_FIRST, RECONNECT_MAX, REFUSALS_TO_GIVE_UP};

use super::{
    control::{Call, Keeping},
    debug::Trace,
    history::History,
    inputs::{Ask, Command, Input, Person, Timer},
    media::Media,
    plugins::PluginCalls,
    shown::{HandlerWarning, Message, Shown, Status},
    stored::Filling,
    turn::Event,
};

/// The topics that the client asks for. COV-SUB-054 to 056.
pub const TOPICS: &str = "runtime,state,game,plugin,session,system,job";

/// Longest wait for the view before the subscription is opened without its cursor.
pub const VIEW_FIRST: Duration = Duration::from_millis(100);

/// Events that are held back; more are applied as they come.
const HELD: usize = 10_000;

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
    pub(super) lost: bool,
    pub(super) failures: usize,
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
    /// The first view of the visit is still to come.
    pub(super) opening: bool,
    /// The newest question of each kind: answers to older ones are late.
    pub(super) asked: BTreeMap<Ask, u64>,
    pub(super) subscription: u64,
    pub(super) acting: u64,
    timer: u64,
    /// Events that wait until everything that was asked for is there.
    pub(super) held: Vec<Event>,
    /// The view is wanted again as soon as the action is over.
    pub(super) view_wanted: bool,
    /// A view that waits until the hole before it is filled.
    pub(super) filling: Option<Filling>,
    /// The turns of a lost action that is over, until the view says what became of them.
    pub(super) recovering: Vec<String>,
    /// When rows of plugin data were written, by plugin, namespace and key.
    pub(super) row_times: BTreeMap<String, BTreeMap<(String, String), String>>,
    pub(super) worlds: Vec<Value>,
    pub(super) world_id: Option<String>,
    pub(super) plugin_calls: PluginCalls,
    pub(super) media: Media,
    pub(super) trace: Trace,
    /// Handlers that fail: event type and message.
    handlers: Vec<(String, String)>,
    /// Another session is open; only the action goes on.
    pub(super) behind: bool,
    /// The cursor of the first `system.connected`, when the subscription was opened before the view came.
    pub(super) joined_at: Option<String>,
    pub(super) connected_before: bool,
    /// The subscription ended, and this client did not want it.
    lost: bool,
    backoff: Duration,
    refusals: u32,
    pub(super) hidden: bool,
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

    /// The same client, with another visit whose numbers begin after this one.
    pub(super) fn after(&self, number: u64) -> Self {
        Self {
            page: self.page.clone(),
            local: self.local,
            number,
            hidden: self.hidden,
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
            Input::Fetched(number, answer) => self.fetched(number, answer),
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
        self.shown.stage = self.shown.on_stage();
        take(&mut self.commands)
    }

    pub(super) fn newest_number(&self) -> u64 {
        self.number
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    pub(super) fn path(&self, rest: &str) -> String {
        format!("/api/sessions/{}{rest}", self.shown.session)
    }

    pub(super) fn ask(&mut self, ask: Ask, rest: &str) {
        self.ask_at(ask, self.path(rest));
    }

    pub(super) fn ask_at(&mut self, ask: Ask, path: String) {
        let number = self.next_number();
        self.asked.insert(ask.clone(), number);
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
            Person::Call(plugin, action, payload) => self.call(&plugin, &action, payload),
            Person::Decide(allow) => self.decide(allow),
            Person::Resume(suspension, data) => self.resume(&suspension, data),
            Person::Handle(kind, message) => self.handlers.push((kind, message)),
            Person::Debug => self.open_debug_page(),
            Person::Copy(call, request) => self.copy_request(call, request),
            Person::Rebuild(call, request) => self.rebuild_request(call, request),
            Person::Export => self.export(),
        }
    }

    fn open(&mut self, session: &str) {
        self.leave();
        self.shown = Shown::opening(session);
        self.backoff = RECONNECT_FIRST;
        self.refetch();
        self.recall_history();
        self.ask_traces();
        self.opening = true;
        self.timer = self.next_number();
        self.commands
            .push(Command::Pause(self.timer, Timer::Subscribe, VIEW_FIRST));
    }

    /// Everything of this visit is over; what still comes for it is late.
    pub(super) fn leave(&mut self) {
        self.end(self.subscription);
        self.end(self.acting);
        *self = Self {
            commands: take(&mut self.commands),
            ..self.after(self.number + 1)
        };
    }

    /// Closes the stream of this number; 0 is none.
    fn end(&mut self, stream: u64) {
        if stream != 0 {
            self.commands.push(Command::End(stream));
        }
    }

    fn wait(&mut self, time: Duration) {
        self.timer = self.next_number();
        self.commands
            .push(Command::Wait(self.timer, Timer::Subscribe, time));
    }

    // ---- the subscription ----

    /// COV-SUBAG-057 to 063: none while an action of this session runs, or nobody looks.
    pub(super) fn subscribe(&mut self) {
        let away =
            self.hidden || self.behind || self.action.as_ref().is_some_and(|action| !action.lost);
        if self.shown.session.is_empty() || away || self.refusals >= REFUSALS_TO_GIVE_UP {
            return;
        }
        self.end(self.subscription);
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

    pub(super) fn close_subscription(&mut self, state: &'static str) {
        self.end(self.subscription);
        self.subscription = 0;
        self.timer = 0;
        self.shown.connection = state;
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
            if self.asked.contains_key(&Ask::View) && !again {
                self.joined_at = cursor;
            }
        }
        if again && lost {
            // COV-SUSP-058: what was missed may not be replayed. After a pause it is. COV-SLOT-074: diagnostics never
            // are.
            self.refetch();
            self.ask_traces();
        }
    }

    /// COV-SUB-104, 105: another beginning: its cursor, and the stored state.
    fn reset(&mut self, data: &str) {
        self.shown.cursor = cursor_in(data).or(self.shown.cursor.take());
        self.changed_slots.clear();
        self.refetch();
        self.ask(Ask::Session, "");
    }

    /// COV-SUB-103, COV-LIM-054, 055: what comes while the stored state is under way is newer than it, and applied
    /// after it, in order.
    fn arrived(&mut self, event: Event) {
        if self.is_refetching() && self.held.len() < HELD {
            self.held.push(event);
        } else {
            self.apply(&event);
        }
    }

    pub(super) fn apply(&mut self, event: &Event) {
        if !event.in_turn {
            self.call_handlers(event);
            self.diagnosed(event);
        }
        if !self.turn_event(event) {
            self.background_event(event);
        }
        self.recovery_event(event);
    }

    fn ask_traces(&mut self) {
        let path = format!("/api/traces/{}", encoded(&self.shown.session));
        self.ask_at(Ask::Traces, path);
    }

    /// COV-SUBAG-064 to 070: a handler that fails is told of, by name and without words, and nothing else comes of it.
    fn call_handlers(&mut self, event: &Event) {
        let failing = self.handlers.iter().filter(|(kind, _)| *kind == event.kind);
        let warnings = failing.map(|_| HandlerWarning {
            session: self.shown.session.clone(),
            event: event.id.clone(),
            kind: event.kind.clone(),
            error: "HandlerError",
        });
        let warnings: Vec<_> = warnings.collect();
        self.shown.handler_warnings.extend(warnings);
    }

    // ---- actions ----

    /// COV-CMD-040: an action runs that this page has not begun, or no longer follows: it is watched like one whose
    /// stream was lost, and not sent again.
    pub(super) fn adopt(&mut self, view: &Value) {
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
        self.acting = self.next_number();
        let request = format!("turnwire-{}-{}", self.page, self.acting);
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
            self.view_wanted = true;
        }
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
        if self.behind {
            if self.local {
                self.keep_checkpoint();
            }
            return;
        }
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
}

fn cursor_in(data: &str) -> Option<String> {
    let frame: Value = serde_json::from_str(data).ok()?;
    frame["cursor"].as_str().map(str::to_owned)
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
