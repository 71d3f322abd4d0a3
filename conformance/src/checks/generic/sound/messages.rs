//! Whether rules and rewrites about messages can be executed at all. That their kinds exist is looked after in the
//! catalogue itself.

use turnwire_spec::catalogue::{
    messages::{ChannelRule, MessageRewrite, MessageRule, Selection, StateRule},
    rewrite::Rewrite,
    rule::Rule,
};

use super::{bad_pointers, idle, schemas};

/// What is wrong with a rule about messages, channels, answers or reports.
pub(super) fn rule_faults(rule: &Rule) -> Vec<String> {
    match rule {
        Rule::Messages(rule) => message_rule(rule),
        Rule::Channels(rule) => channel_rule(rule),
        Rule::Answers(rule) => {
            let mut faults = selection("when", &rule.when);
            faults.extend(selection("then", &rule.then));
            faults.extend(rule.until.iter().flat_map(|it| selection("until", it)));
            faults.extend(schemas([("data", &rule.data)]));
            let sources = rule.equal.iter().flat_map(|(left, right)| [left, right]);
            faults.extend(bad_sources(sources));
            faults
        }
        Rule::States(rule) => {
            let demandless = StateRule {
                label: rule.label.clone(),
                every: rule.every,
                ..StateRule::default()
            };
            let mut faults = idle("states", "demands", *rule == demandless);
            faults.extend(schemas([("state", &rule.state)]));
            faults
        }
        _ => Vec::new(),
    }
}

/// What is wrong with a rewrite of messages.
pub(super) fn rewrite_faults(rewrite: &Rewrite) -> Vec<String> {
    match rewrite {
        Rewrite::Messages(rewrite) => {
            let MessageRewrite {
                where_data, edits, ..
            } = rewrite;
            let mut faults = idle("messages", "changes", edits.is_empty());
            faults.extend(schemas([("where", where_data)]));
            faults
        }
        _ => Vec::new(),
    }
}

fn message_rule(rule: &MessageRule) -> Vec<String> {
    let Selection {
        from,
        types,
        not_type,
        label,
        where_data,
    } = rule.selection();
    let demandless = MessageRule {
        from,
        types,
        not_type,
        label,
        where_data,
        ..MessageRule::default()
    };
    let mut faults = idle("messages", "demands", *rule == demandless);
    faults.extend(schemas([("where", &rule.where_data), ("data", &rule.data)]));
    let pairs = rule.equal.iter().flat_map(|(left, right)| [left, right]);
    faults.extend(bad_sources(pairs.chain(&rule.constant).chain(&rule.unique)));
    faults.extend(bad_pointers(rule.clock.iter().chain(&rule.rising)));
    faults
}

fn channel_rule(rule: &ChannelRule) -> Vec<String> {
    let demandless = ChannelRule {
        from: rule.from,
        label: rule.label.clone(),
        path: rule.path.clone(),
        ..ChannelRule::default()
    };
    idle("channels", "demands", *rule == demandless)
}

fn selection(what: &str, selection: &Selection) -> Vec<String> {
    let mut faults = schemas([("where", &selection.where_data)]);
    if *selection == Selection::default() {
        faults.push(format!("{what}: it selects everything"));
    }
    faults
}

fn bad_sources<'a>(sources: impl Iterator<Item = &'a String>) -> Vec<String> {
    let bad = sources.filter(|source| !source.starts_with('/') && !source.starts_with('='));
    bad.map(|source| format!("{source:?} is no source in a message"))
        .collect()
}
