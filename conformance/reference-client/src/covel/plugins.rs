//! Calls of plugins and answers to suspensions, and the approvals that the server asks for.
//!
//! Calls of a session go one after the other. A call that needs an approval makes room for the next one while the
//! person is asked (COV-RPC-076), and is sent again as it was once the person has allowed it (COV-RPC-068).

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::{
    core::Core,
    inputs::{Ask, Command},
    shown::Approval,
};

/// The calls of a session.
#[derive(Debug, Default)]
pub(super) struct PluginCalls {
    waiting: VecDeque<PluginCall>,
    /// The call that is under way, and its number.
    sent: Option<(u64, PluginCall)>,
    /// Calls that need an approval, in the order in which the server asked. The first is asked about.
    asking: VecDeque<(PluginCall, Approval)>,
    /// The decision that is under way: its number, and whether the call may go on.
    deciding: Option<(u64, bool)>,
}

/// A call, which may be sent again.
#[derive(Clone, Debug)]
struct PluginCall {
    path: String,
    body: Value,
    /// What the person has allowed for it: plugin and action.
    allowed: BTreeSet<(String, String)>,
}

impl Core {
    /// Calls an action of a plugin.
    pub(super) fn call(&mut self, plugin: &str, action: &str, payload: Value) {
        let mut body = json!({ "kind": "action", "pluginId": plugin, "action": action });
        if !payload.is_null() {
            body["payload"] = payload;
        }
        self.enqueue("/plugin-rpc", body);
    }

    /// Answers a suspension.
    pub(super) fn resume(&mut self, suspension: &str, data: Value) {
        let rest = format!("/suspensions/{}/resume", super::core::encoded(suspension));
        self.enqueue(&rest, json!({ "data": data }));
    }

    fn enqueue(&mut self, rest: &str, body: Value) {
        self.shown.call_error = None;
        self.plugin_calls.waiting.push_back(PluginCall {
            path: self.path(rest),
            body,
            allowed: BTreeSet::new(),
        });
        self.send_next();
    }

    fn send_next(&mut self) {
        if self.plugin_calls.sent.is_some() {
            return;
        }
        if let Some(call) = self.plugin_calls.waiting.pop_front() {
            let number = self.next_number();
            let send = Command::Call(number, call.path.clone(), call.body.clone());
            self.commands.push(send);
            self.plugin_calls.sent = Some((number, call));
        }
    }

    /// A post was answered: a call, or a decision about one.
    pub(super) fn plugin_answered(&mut self, number: u64, answer: Option<(u16, Value)>) {
        if self
            .plugin_calls
            .deciding
            .is_some_and(|(own, _)| own == number)
        {
            return self.decided(answer);
        }
        let Some((_, call)) = self.plugin_calls.sent.take_if(|(own, _)| *own == number) else {
            return;
        };
        match answer {
            Some((202, body)) if body["status"] == "approval-required" => {
                self.approval_required(call, &body);
            }
            Some((200..=299, _)) => {}
            Some((status, body)) => {
                let code = body["code"].as_str().unwrap_or_default();
                self.shown.call_error = Some(format!("the server answered {status} {code}"));
                if status == 409 {
                    // COV-RPC-055: what the call stood on has changed. It is read; the person begins anew.
                    self.ask(Ask::Session, "");
                    self.refetch();
                }
            }
            None => self.shown.call_error = Some("no answer".to_owned()),
        }
        self.send_next();
    }

    /// COV-RPC-069, 070: nothing is asked twice for one call, and nothing of another session.
    fn approval_required(&mut self, call: PluginCall, body: &Value) {
        let pending = &body["pending"];
        let text = |key: &str| pending[key].as_str().unwrap_or_default().to_owned();
        let approval = Approval {
            id: body["approvalId"].as_str().unwrap_or_default().to_owned(),
            plugin_id: text("pluginId"),
            action: text("action"),
        };
        let known = call
            .allowed
            .contains(&(approval.plugin_id.clone(), approval.action.clone()));
        let session = pending["sessionId"].as_str();
        if session.is_some_and(|session| session != self.shown.session) {
            self.shown.call_error = Some("an approval of another session".to_owned());
        } else if known {
            self.shown.call_error = Some("the same approval is asked for again".to_owned());
        } else {
            self.plugin_calls.asking.push_back((call, approval));
            self.ask(Ask::Approvals, "/approvals");
        }
    }

    /// COV-RPC-083: the person decides about what the server lists.
    pub(super) fn approvals(&mut self, body: Option<Value>) {
        let listed = body.unwrap_or_default();
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        let session = self.shown.session.clone();
        let is_listed = |approval: &Approval| {
            items.iter().any(|item| {
                item["approvalId"] == approval.id.as_str()
                    && item["sessionId"].as_str().is_none_or(|own| own == session)
            })
        };
        let before = self.plugin_calls.asking.len();
        self.plugin_calls
            .asking
            .retain(|(_, approval)| is_listed(approval));
        if self.plugin_calls.asking.len() < before {
            self.shown.call_error = Some("an approval is not listed".to_owned());
        }
        self.show_approval();
    }

    /// COV-RPC-067: one at a time.
    fn show_approval(&mut self) {
        self.shown.approval = self
            .plugin_calls
            .asking
            .front()
            .map(|(_, approval)| approval.clone());
    }

    pub(super) fn decide(&mut self, allow: bool) {
        let Some(approval) = self.shown.approval.clone() else {
            return;
        };
        if self.plugin_calls.deciding.is_some() {
            return;
        }
        // Code and runtimes are allowed for the session or not at all.
        let lasts = approval.action == "covel:plugin-server-code"
            || approval.action.starts_with("runtime:");
        let decision = if allow { "allow" } else { "deny" };
        let scope = if lasts { "session" } else { "once" };
        let number = self.next_number();
        self.plugin_calls.deciding = Some((number, allow));
        let path = format!(
            "/api/approvals/{}/decision",
            super::core::encoded(&approval.id)
        );
        let body = json!({ "decision": decision, "scope": scope });
        self.commands.push(Command::Call(number, path, body));
    }

    fn decided(&mut self, answer: Option<(u16, Value)>) {
        let allowed = self
            .plugin_calls
            .deciding
            .take()
            .is_some_and(|(_, allow)| allow);
        let Some((mut call, approval)) = self.plugin_calls.asking.pop_front() else {
            return;
        };
        let done = matches!(answer, Some((200, _)));
        if !done {
            self.shown.call_error = Some("the decision was refused".to_owned());
        } else if allowed {
            call.allowed.insert((approval.plugin_id, approval.action));
            self.plugin_calls.waiting.push_front(call);
        }
        self.show_approval();
        self.send_next();
    }

    /// The session is left: nothing is asked or sent again. COV-RPC-077.
    pub(super) fn forget_calls(&mut self) {
        self.plugin_calls = PluginCalls::default();
        self.asked.remove(&Ask::Approvals);
        self.shown.approval = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::covel::inputs::{Input, Person};

    /// A client with an open session that has called a plugin; and the number of the call.
    fn calling() -> (Core, u64) {
        let mut core = Core::default();
        core.handle(Input::Person(Person::Open("s".to_owned())));
        let call = Person::Call("p".to_owned(), "roll".to_owned(), json!({ "dice": 2 }));
        let commands = core.handle(Input::Person(call));
        (core, sent(&commands).0)
    }

    fn sent(commands: &[Command]) -> (u64, String, Value) {
        let post = |command: &Command| match command {
            Command::Call(number, path, body) => Some((*number, path.clone(), body.clone())),
            _ => None,
        };
        commands.iter().find_map(post).unwrap()
    }

    fn required(id: &str, session: &str) -> Option<(u16, Value)> {
        let pending = json!({ "sessionId": session, "pluginId": "p", "action": "roll" });
        let body = json!({ "status": "approval-required", "approvalId": id, "pending": pending });
        Some((202, body))
    }

    /// Answers the list of approvals that was asked for.
    fn listed(core: &mut Core, commands: &[Command], ids: &[&str]) {
        let number = commands.iter().find_map(|command| match command {
            Command::Get(number, Ask::Approvals, _) => Some(*number),
            _ => None,
        });
        let items = ids
            .iter()
            .map(|id| json!({ "approvalId": id, "sessionId": "s" }));
        let body = json!({ "items": items.collect::<Vec<_>>() });
        let answer = Input::Answer(number.unwrap(), Ask::Approvals, Some((200, body)));
        core.handle(answer);
    }

    #[test]
    fn an_allowed_call_is_sent_again_as_it_was_and_stops_when_asked_again() {
        let (mut core, first) = calling();
        let commands = core.handle(Input::Called(first, required("a1", "s")));
        listed(&mut core, &commands, &["a1"]);
        assert_eq!(core.shown().approval.as_ref().unwrap().id, "a1");

        let (decision, path, _) = sent(&core.handle(Input::Person(Person::Decide(true))));
        assert_eq!(path, "/api/approvals/a1/decision");
        let again = core.handle(Input::Called(decision, Some((200, json!({})))));
        let (second, path, body) = sent(&again);
        assert_eq!(path, "/api/sessions/s/plugin-rpc");
        assert_eq!(body["payload"], json!({ "dice": 2 }));

        assert!(
            core.handle(Input::Called(second, required("a2", "s")))
                .is_empty()
        );
        assert!(core.shown().call_error.is_some());
    }

    #[test]
    fn an_approval_of_another_session_is_asked_of_nobody() {
        let (mut core, first) = calling();
        assert!(
            core.handle(Input::Called(first, required("a1", "t")))
                .is_empty()
        );
        assert!(core.shown().approval.is_none() && core.shown().call_error.is_some());
    }

    #[test]
    fn another_call_goes_out_while_the_person_is_asked() {
        let (mut core, first) = calling();
        let commands = core.handle(Input::Called(first, required("a1", "s")));
        listed(&mut core, &commands, &["a1"]);
        let resume = Person::Resume("s1".to_owned(), json!({}));
        let (_, path, _) = sent(&core.handle(Input::Person(resume)));
        assert_eq!(path, "/api/sessions/s/suspensions/s1/resume");
    }
}
