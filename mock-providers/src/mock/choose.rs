//! The rule that takes a request, or why none does.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::LoadedScript;
use crate::journal::Used;
use crate::matching::{self, Facts, Mismatch};
use crate::script::{Body, Part, Reply, Rule, Script};

/// A loaded script.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, serde::Serialize)]
pub struct ScriptId(u64);

impl ScriptId {
    /// The id with this number, as the control API writes it.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The number, as the control API writes it.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// All loaded scripts.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    list: Vec<Loaded>,
    next: u64,
    /// Requests that no rule took.
    unmatched: u64,
}

#[derive(Debug)]
struct Loaded {
    id: ScriptId,
    name: Arc<str>,
    rules: Vec<Own>,
    vars: BTreeMap<String, String>,
}

/// A rule of a script.
#[derive(Debug)]
struct Own {
    rule: Arc<Rule>,
    /// What it is called: its name, or its place in the script.
    name: Arc<str>,
    /// How often it answered.
    used: u64,
}

impl Own {
    fn new(rule: Rule, place: usize) -> Self {
        let name = if rule.name.is_empty() {
            format!("#{place}").into()
        } else {
            rule.name.as_str().into()
        };
        Self {
            rule: Arc::new(rule),
            name,
            used: 0,
        }
    }
}

/// A rule that takes a request, before its use is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    script: usize,
    place: usize,
    reply: usize,
}

/// The reply that was chosen.
#[derive(Debug)]
pub(super) struct Chosen {
    rule: Arc<Rule>,
    reply: usize,
    pub(super) used: Used,
}

impl Chosen {
    /// The rule, the place of its reply, and how it was used.
    pub(super) fn into_parts(self) -> (Arc<Rule>, usize, Used) {
        (self.rule, self.reply, self.used)
    }

    pub(super) fn reply(&self) -> Option<&Reply> {
        self.rule.replies.get(self.reply)
    }
}

impl Scripts {
    pub(super) fn load(&mut self, script: Script) -> ScriptId {
        let id = ScriptId(self.next);
        self.next += 1;
        self.list.push(Loaded {
            id,
            name: script.name.into(),
            rules: script
                .rules
                .into_iter()
                .enumerate()
                .map(|(place, rule)| Own::new(rule, place))
                .collect(),
            vars: script.state,
        });
        id
    }

    pub(super) fn unload(&mut self, id: ScriptId) -> bool {
        let before = self.list.len();
        self.list.retain(|script| script.id != id);
        self.list.len() < before
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.unmatched = 0;
    }

    pub(super) fn list(&self) -> Vec<LoadedScript> {
        let rules = |script: &Loaded| {
            let rules = script.rules.iter();
            rules
                .map(|own| (own.name.as_ref().to_owned(), own.used))
                .collect()
        };
        self.list
            .iter()
            .map(|script| LoadedScript {
                id: script.id,
                name: script.name.as_ref().to_owned(),
                rules: rules(script),
            })
            .collect()
    }

    /// Finds the rule that answers. With `named`, only rules that name a path are asked.
    pub(super) fn find(&self, facts: &Facts<'_>, named: bool) -> Option<(Found, Arc<Rule>)> {
        let mut best: Option<(&Arc<Rule>, Found)> = None;
        for (at, script) in self.list.iter().enumerate() {
            for (place, Own { rule, used, .. }) in script.rules.iter().enumerate() {
                if best
                    .as_ref()
                    .is_some_and(|(best, _)| rule.priority <= best.priority)
                    || (named && rule.when.path.is_none())
                {
                    continue;
                }
                if let Some(reply) = rule.nth_reply(*used)
                    && matching::matches(&rule.when, facts, &script.vars)
                {
                    best = Some((
                        rule,
                        Found {
                            script: at,
                            place,
                            reply,
                        },
                    ));
                }
            }
        }
        best.map(|(rule, found)| (found, rule.clone()))
    }

    /// Counts the use of a rule that was just found, with the lock still held.
    pub(super) fn take(&mut self, found: Found) -> Option<Chosen> {
        self.list
            .get_mut(found.script)?
            .take(found.place, found.reply)
    }

    /// Counts a request that no rule takes; returns how many there were before.
    pub(super) fn count_unmatched(&mut self) -> u64 {
        let before = self.unmatched;
        self.unmatched += 1;
        before
    }

    /// Whether a reply of some script has this signature or these encrypted bytes.
    pub(super) fn made(&self, signature: &str) -> bool {
        let rules = self.list.iter().flat_map(|script| &script.rules);
        let parts = rules
            .flat_map(|own| &own.rule.replies)
            .filter_map(|reply| match &reply.body {
                Body::Answer(answer) => Some(&answer.parts),
                _ => None,
            });
        let is = |own: &Option<String>| own.as_deref() == Some(signature);
        parts.flatten().any(|part| match part {
            Part::Reasoning(reasoning) => is(&reasoning.signature) || is(&reasoning.encrypted),
            Part::Calls(calls) => calls.list.iter().any(|call| is(&call.signature)),
            _ => false,
        })
    }

    /// Says why no rule takes a request: the rule that was most likely meant, and what it misses.
    pub(super) fn nearest(&self, facts: &Facts<'_>) -> String {
        let all = self.list.iter().flat_map(|script| {
            let near = |own| Near::of(script, own, facts);
            script.rules.iter().map(near)
        });
        match all.min_by_key(Near::key) {
            Some(near) => near.told(),
            None => "turnwire mock: no script is loaded".to_owned(),
        }
    }
}

/// A rule that does not take a request.
struct Near<'a> {
    script: &'a Loaded,
    own: &'a Own,
    missed: Vec<Mismatch>,
}

impl<'a> Near<'a> {
    fn of(script: &'a Loaded, own: &'a Own, facts: &Facts<'_>) -> Self {
        let missed = matching::mismatches(&own.rule.when, facts, &script.vars);
        Self {
            script,
            own,
            missed,
        }
    }

    fn used_up(&self) -> bool {
        self.own.rule.nth_reply(self.own.used).is_none()
    }

    /// Less is nearer: a rule that would take the request, were it not used up; then the one that meets more of its
    /// conditions; then the one that misses less; then the one whose texts are more alike; then one that is not used
    /// up, and the first.
    fn key(&self) -> (bool, Reverse<usize>, usize, u32, bool) {
        let met = matching::conditions(&self.own.rule.when).saturating_sub(self.missed.len());
        let far = self.missed.iter().map(|missed| missed.far).sum();
        let missed = self.missed.len();
        (missed > 0, Reverse(met), missed, far, self.used_up())
    }

    fn told(&self) -> String {
        let mut text = format!(
            "turnwire mock: no rule takes this request; the nearest is rule {:?} of script {:?}",
            self.own.name, self.script.name
        );
        if self.used_up() {
            let _ = write!(
                text,
                "; it is used up ({} times; with `after: repeat` or `after: cycle` it would go on)",
                self.own.used
            );
        }
        for miss in &self.missed {
            let _ = write!(
                text,
                "; {}: wanted {}, got {}",
                miss.condition, miss.wanted, miss.got
            );
            if miss.far == 0 {
                text.push_str(" (the case of letters counts)");
            }
        }
        text
    }
}

impl Loaded {
    /// Counts a use of a rule, and sets the variables that its reply sets.
    fn take(&mut self, place: usize, reply: usize) -> Option<Chosen> {
        let own = self.rules.get_mut(place)?;
        let used = Used {
            script: self.name.clone(),
            rule: own.name.clone(),
            nth: own.used,
        };
        own.used += 1;
        let rule = own.rule.clone();
        for (name, value) in rule.replies.get(reply).iter().flat_map(|reply| &reply.set) {
            self.vars.insert(name.clone(), value.clone());
        }
        Some(Chosen { rule, reply, used })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use serde_json::{Value, json};
    use turnwire_spec::llm::Wire;

    use super::*;
    use crate::script::When;
    use crate::wires;
    use crate::wires::route::{Form, Target};

    /// The rule that is called the nearest to a request with this text.
    fn nearest(scripts: &Scripts, text: &str, more: &Value) -> String {
        let target = Target {
            wire: Wire::OpenaiChat,
            model: None,
            form: Form::Plain,
        };
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": text}]});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let headers = HeaderMap::new();
        let facts = Facts {
            wire: target.wire,
            method: "POST",
            path: "/v1/chat/completions",
            headers: &headers,
            body: &body,
            talk: wires::read(&target, &body),
        };
        scripts.nearest(&facts)
    }

    fn scripts(rules: impl IntoIterator<Item = Rule>) -> Scripts {
        let mut scripts = Scripts::default();
        scripts.load(rules.into_iter().fold(Script::new("s"), Script::rule));
        scripts
    }

    #[track_caller]
    fn names(told: &str, rule: &str) {
        let named = format!("the nearest is rule {rule:?} of");
        assert!(told.contains(&named), "{told}");
    }

    #[test]
    fn a_text_that_is_nearly_right_is_nearest() {
        let scripts = scripts([
            Rule::on("weather").reply("a"),
            Rule::on("outage").reply("b"),
        ]);
        names(
            &nearest(&scripts, "is there an outag", &Value::Null),
            "outage",
        );
        names(&nearest(&scripts, "wether", &Value::Null), "weather");
        let told = nearest(&scripts, "Outage", &Value::Null);
        names(&told, "outage");
        assert!(told.ends_with("(the case of letters counts)"), "{told}");
    }

    #[test]
    fn a_rule_that_would_match_and_is_used_up_is_nearest() {
        let mut scripts = scripts([
            Rule::on("outrage").reply("a"),
            Rule::on("outage").reply("b").once(),
        ]);
        scripts.list[0].rules[1].used = 1;
        let told = nearest(&scripts, "outage", &Value::Null);
        names(&told, "outage");
        assert!(told.contains("it is used up (1 times"), "{told}");
    }

    #[test]
    fn of_rules_that_miss_something_the_one_that_meets_more_is_nearest() {
        let both = When::new().json("$.seed", 1).json("$.n", 2);
        let scripts = scripts([
            Rule::on("outage").reply("a"),
            Rule::new("both").when(both).reply("b"),
            Rule::new("none")
                .when(When::new().json("$.n", 3))
                .reply("c"),
        ]);
        let told = nearest(&scripts, "hello", &json!({"seed": 1}));
        names(&told, "both");
        assert!(told.ends_with("json $.n: wanted 2, got nothing"), "{told}");
    }
}
