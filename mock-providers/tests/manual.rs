//! The manual's page on the mock: its scripts load, and it names everything that a script can say.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use turnwire_mock::Script;

const PAGE: &str = include_str!("../../docs/src/mock.md");

/// What stands between these fences.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let parts: Vec<_> = PAGE.split(fence.as_str()).skip(1).collect();
    let parts = parts.into_iter();
    parts.filter_map(|part| part.split("```").next()).collect()
}

#[test]
fn every_script_of_the_page_loads() {
    let scripts = blocks("yaml");
    assert!(scripts.len() > 6, "{}", scripts.len());
    for script in scripts {
        let read = Script::parse(script).unwrap_or_else(|error| panic!("{error}\n{script}"));
        assert!(!read.rules.is_empty(), "{script}");
    }
}

#[test]
fn the_example_that_the_help_names_loads() {
    let example = include_str!("../examples/weather.yaml");
    assert_eq!(Script::parse(example).unwrap().rules.len(), 3);
    assert!(PAGE.contains("mock-providers/examples/weather.yaml"));
}

/// A member or word that no script has.
const UNKNOWN: &str = "zz_zz: 1";
const UNKNOWN_WORD: &str = "zz_zz";

/// Places of a reply, with `@` where the unknown member or word goes.
const REPLY_MEMBERS: &[&str] = &[
    "@",
    "parts: [{@}]",
    "parts: [{event: {@}}]",
    "parts: [{keepalive: {@}}]",
    "reasoning: {@}",
    "calls: {list: [], @}",
    "calls: [{@}]",
    "finish: {@}",
    "usage: {@}",
    "chunk: {@}",
    "framing: {@}",
    "framing: {done: {@}}",
    "variation: {@}",
    "edits: [{@}]",
    "edits: [{on: {@}}]",
    "edits: [{before: [{@}]}]",
    "error: {@}",
    "error: {status: 500, retry_after: {@}}",
    "raw: {@}",
    "socket: {@}",
    "timing: {@}",
    "faults: {@}",
    "faults: {insert: [{@}]}",
    "faults: {stalls: [{@}]}",
    "faults: {cut: {@}}",
    "faults: {cut: {after: {@}}}",
];
const REPLY_WORDS: &[&str] = &[
    "parts: [{keepalive: @}]",
    "finish: @",
    "usage: @",
    "chunk: @",
    "service: @",
    "framing: {line_end: @}",
    "framing: {done: @}",
    "framing: {escape: @}",
    "variation: {reasoning_field: @}",
    "variation: {usage: @}",
    "variation: {tool_index: @}",
    "variation: {tool_id: @}",
    "variation: {tool_args: @}",
    "variation: {finish: @}",
    "variation: {role: @}",
    "variation: {content: @}",
    "variation: {extra_fields: @}",
    "variation: {failure: @}",
    "variation: {signature: @}",
    "error: {status: 500, form: @}",
    "socket: {then: @}",
    "faults: {cut: {after: {bytes: 1}, how: @}}",
];
const RULE_MEMBERS: &[&str] = &[
    "@",
    "when: {@}",
    "when: {last_user: {@}}",
    "when: {tool_result: {@}}",
];
const RULE_WORDS: &[&str] = &["after: @", "echo: @", "when: {wire: @}"];

/// All that could stand in place of what is unknown in these scripts, as the errors tell it.
fn known() -> Vec<(String, String)> {
    let filled = |places: &[&str], with: &str| -> Vec<String> {
        let fill = |place: &&str| place.replace('@', with);
        places.iter().map(fill).collect()
    };
    let replies = [
        filled(REPLY_MEMBERS, UNKNOWN),
        filled(REPLY_WORDS, UNKNOWN_WORD),
    ]
    .concat();
    let replies = replies.iter().map(|reply| format!("reply: {{{reply}}}"));
    let rules = [
        filled(RULE_MEMBERS, UNKNOWN),
        filled(RULE_WORDS, UNKNOWN_WORD),
    ]
    .concat();
    let rules = rules.into_iter().chain(replies);
    let scripts = rules.map(|rule| format!("rules: [{{{rule}}}]"));
    let scripts = scripts.chain([UNKNOWN.to_owned()]);
    scripts
        .flat_map(|script| {
            let error = Script::parse(&script).expect_err(&script);
            assert!(error.message.contains("zz_zz"), "{script}: {error}");
            let (_, expected) = error.message.split_once("expected ").unwrap_or_default();
            let expected = expected.trim_start_matches("one of ").replace(" or ", ", ");
            let names: Vec<_> = expected
                .split(", ")
                .map(|name| name.trim_matches('`').to_owned())
                .collect();
            assert!(!names.is_empty(), "{script}: {error}");
            let named = names.into_iter().map(|name| (script.clone(), name));
            named.collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn the_page_names_everything_that_a_script_can_say() {
    let known = known();
    assert!(known.len() > 200, "{}", known.len());
    let missing: Vec<_> = known
        .iter()
        .filter(|(_, name)| {
            // Alone, as a member within an example of code, or as a member with a value.
            let forms = [
                format!("`{name}`"),
                format!("`{{{name}: "),
                format!("`{name}: "),
            ];
            let listed = [
                format!("{{{name},"),
                format!(", {name},"),
                format!(", {name}}}"),
            ];
            !forms
                .iter()
                .chain(&listed)
                .any(|form| PAGE.contains(form.as_str()))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
