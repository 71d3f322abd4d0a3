//! The rule that takes a request, or why none does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::LoadedScript;
use crate::journal::Used;
use crate::matching::{self, Facts};
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

    /// Says why no rule takes a request: the rule with the fewest missed conditions, and those.
    pub(super) fn nearest(&self, facts: &Facts<'_>) -> String {
        let all = self.list.iter().flat_map(|script| {
            script.rules.iter().map(move |own| {
                let missed = matching::mismatches(&own.rule.when, facts, &script.vars);
                (script, own, missed)
            })
        });
        let used_up = |own: &Own| own.rule.nth_reply(own.used).is_none();
        let nearest = all.min_by_key(|(_, own, missed)| missed.len() + usize::from(used_up(own)));
        let Some((script, own, missed)) = nearest else {
            return "turnwire mock: no script is loaded".to_owned();
        };
        let mut text = format!(
            "turnwire mock: no rule takes this request; the nearest is rule {:?} of script {:?}",
            own.name, script.name
        );
        if used_up(own) {
            let _ = write!(text, "; it is used up ({} times)", own.used);
        }
        for miss in missed {
            let _ = write!(
                text,
                "; {}: wanted {}, got {}",
                miss.condition, miss.wanted, miss.got
            );
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
