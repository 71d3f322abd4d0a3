//! The sessions of one client: the one that is open, and those that were left while their action ran.
//!
//! Numbers of commands tell the visits apart: those of a visit begin at its number, shifted by 32 bits.
//!
//! COV-SUBAG-057 to 061: leaving a session ends neither its action nor what is kept of it, and the next session's
//! subscription waits for nothing.

use super::{
    core::Core,
    inputs::{Command, Input, Person},
    shown::Shown,
};

/// A client with its sessions.
#[derive(Debug, Default)]
pub struct Visits {
    open: Core,
    /// Sessions that were left while their action ran.
    behind: Vec<Core>,
    visits: u64,
}

/// Bits of a number that are a visit's own.
const OWN: u32 = 32;

impl Visits {
    /// A client of this page, and whether it keeps its data itself.
    pub fn new(page: String, local: bool) -> Self {
        Self {
            open: Core::new(page, local),
            ..Self::default()
        }
    }

    /// What a person sees.
    pub fn shown(&self) -> &Shown {
        self.open.shown()
    }

    /// Takes in what happened; gives what is to be done.
    pub fn handle(&mut self, input: Input) -> Vec<Command> {
        match input {
            Input::Person(Person::Open(session)) if session != self.shown().session => {
                self.switch(session)
            }
            input => {
                let visit = input.number().map(|number| number >> OWN);
                let behind = self
                    .behind
                    .iter_mut()
                    .find(|core| visit == Some(core.visit()));
                let commands = behind.unwrap_or(&mut self.open).handle(input);
                self.behind.retain(Core::is_acting);
                commands
            }
        }
    }

    fn switch(&mut self, session: String) -> Vec<Command> {
        let back = self
            .behind
            .iter()
            .position(|core| core.shown().session == session);
        let mut commands = Vec::new();
        if back.is_none() && !self.open.is_acting() {
            return self.open.handle(Input::Person(Person::Open(session)));
        }
        let next = match back {
            Some(place) => self.behind.remove(place),
            None => {
                self.visits += 1;
                self.open.after(self.visits << OWN)
            }
        };
        let mut left = std::mem::replace(&mut self.open, next);
        commands.extend(left.go_behind());
        if left.is_acting() {
            self.behind.push(left);
        }
        commands.extend(match back {
            Some(_) => self.open.come_back(),
            None => self.open.handle(Input::Person(Person::Open(session))),
        });
        commands
    }
}

impl Core {
    fn visit(&self) -> u64 {
        self.newest_number() >> OWN
    }

    /// Whether an action runs, or what became of it is unknown.
    fn is_acting(&self) -> bool {
        self.action.is_some()
    }

    /// Another session is opened: only the action goes on. COV-RPC-077: nobody is asked any more.
    fn go_behind(&mut self) -> Vec<Command> {
        self.behind = true;
        self.next = None;
        self.forget_calls();
        self.close_subscription("closed");
        if self.action.as_ref().is_some_and(|action| action.lost) {
            self.action = None;
        }
        std::mem::take(&mut self.commands)
    }

    fn come_back(&mut self) -> Vec<Command> {
        self.behind = false;
        self.shown.connection = "paused";
        self.read_view();
        std::mem::take(&mut self.commands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(client: &mut Visits, person: Person) -> Vec<Command> {
        client.handle(Input::Person(person))
    }

    fn acting(commands: &[Command]) -> u64 {
        let act = |command: &Command| match command {
            Command::Act(number, _) => Some(*number),
            _ => None,
        };
        commands.iter().find_map(act).unwrap()
    }

    fn frame(kind: &str, request: &serde_json::Value) -> String {
        let payload = serde_json::json!({ "committed": true });
        serde_json::json!({
            "type": kind, "requestId": request, "sessionId": "a", "turnId": "t1", "payload": payload,
        })
        .to_string()
    }

    #[test]
    fn an_action_goes_on_behind_another_session_and_is_there_on_the_return() {
        let mut client = Visits::default();
        person(&mut client, Person::Open("a".to_owned()));
        let commands = person(&mut client, Person::Say("hello".to_owned()));
        let action = acting(&commands);
        let left = person(&mut client, Person::Open("b".to_owned()));
        assert!(!left.contains(&Command::End(action)));
        assert_eq!(client.shown().session, "b");

        let started = frame("execution.started", &serde_json::Value::Null);
        client.handle(Input::ActionFrame(action, started));
        person(&mut client, Person::Open("a".to_owned()));
        assert!(client.shown().executing);
        assert_eq!(client.shown().groups.len(), 1);
    }

    #[test]
    fn what_is_over_behind_is_left() {
        let mut client = Visits::default();
        person(&mut client, Person::Open("a".to_owned()));
        let action = acting(&person(&mut client, Person::Say("hello".to_owned())));
        person(&mut client, Person::Open("b".to_owned()));
        client.handle(Input::ActionOver(action, None));
        assert!(client.behind.is_empty());
        person(&mut client, Person::Open("a".to_owned()));
        assert!(!client.shown().executing && client.shown().messages.is_empty());
    }
}
