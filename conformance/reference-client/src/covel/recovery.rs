//! An action whose stream was lost, or never came: the server is asked how it stands, and nothing is sent again.

use serde_json::Value;
use turnwire_spec::covel::limits::{POLL_AFTER_FAILURES, POLL_AFTER_SUCCESS};

use super::{
    core::Core,
    inputs::{Ask, Command, Timer},
    shown::Message,
};

impl Core {
    pub(super) fn ask_execution(&mut self) {
        if !self.hidden && !self.asked.contains_key(&Ask::Execution) {
            self.ask(Ask::Execution, "/execution");
        }
    }

    /// The stream is gone before it said how the action ended. Nothing is sent again; the server is asked.
    pub(super) fn action_lost(&mut self, status: Option<u16>) {
        let Some(action) = &mut self.action else {
            return;
        };
        if self.behind {
            // The next visit reads what became of it.
            self.action = None;
            return;
        }
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
    pub(super) fn execution(&mut self, body: Option<Value>) {
        let Some(action) = self.action.as_mut().filter(|action| action.lost) else {
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
        if !over {
            return self
                .commands
                .push(Command::Wait(self.acting, Timer::Poll, wait));
        }
        // What became of its texts, the view says; the person may go on meanwhile.
        self.lost_is_over();
        self.read_view();
        self.say_next();
    }

    fn lost_is_over(&mut self) {
        if let Some(action) = self.action.take() {
            self.recovering.extend(action.turns);
        }
        self.acting = 0;
        self.shown.executing = false;
        self.shown.advance = None;
    }

    /// The view that followed a lost action says what became of it.
    pub(super) fn settle_recovered(&mut self, view: &Value) {
        let lost = self.action.as_ref().filter(|action| action.lost);
        let turns: Vec<_> = lost.map_or(&[][..], |action| &action.turns).to_vec();
        let (is_lost, turns) = (lost.is_some(), [turns, self.recovering.clone()].concat());
        if !is_lost && turns.is_empty() {
            return;
        }
        let state = view["execution"]["state"].as_str().unwrap_or_default();
        let ended = state != "running";
        let failed = matches!(state, "failed" | "interrupted");
        self.settle_lost(&turns, ended, failed);
        if !ended || self.asked.contains_key(&Ask::Execution) {
            return;
        }
        self.recovering.clear();
        self.shown.retry_offered = view["execution"]["retry"].is_object();
        if is_lost {
            self.lost_is_over();
            self.recovering.clear();
            self.say_next();
        }
    }

    /// What the person wanted to say while the action ran.
    pub(super) fn say_next(&mut self) {
        if let Some(text) = self.next.take() {
            self.begin(text);
        }
    }
}
