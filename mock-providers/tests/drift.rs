//! Our schemas of what services send, against the typed models of the official SDKs.
//!
//! `sdks/models.py` prints the models of the pinned versions as JSON Schemas. What we demand and an SDK does not
//! know is a fault, and so is a member that an SDK types as required and we do not; [`KNOWN`] lists the exceptions,
//! each with its reason. What an SDK has and we do not name is no fault, because our schemas are open; it is kept
//! in a snapshot, so that a new version of an SDK shows as a difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use turnwire_spec::llm::schemas;

/// Faults that are meant, and why.
const KNOWN: &[(&str, &str)] = &[
    (
        "anthropic-messages.event: the SDK has no type \"error\"",
        "the SDK raises it as an exception; the documentation describes it as an event",
    ),
    (
        "anthropic-messages.model/lifecycle: the SDK requires it",
        "newer than the services that imitate the wire, and no client needs it",
    ),
    (
        "openai-responses.event[response.*]/response/usage/input_tokens_details/cache_write_tokens: \
         the SDK requires it",
        "newer than the services that imitate the wire, and no client needs it",
    ),
    (
        "openai-responses.response/usage/input_tokens_details/cache_write_tokens: the SDK requires it",
        "newer than the services that imitate the wire, and no client needs it",
    ),
];

/// Events of Responses that hold the whole response; they are compared under one name.
const WHOLE: [&str; 6] = [
    "[response.created]",
    "[response.queued]",
    "[response.in_progress]",
    "[response.completed]",
    "[response.incomplete]",
    "[response.failed]",
];

/// The line, under one name for all events that hold the whole response.
fn line(line: String) -> String {
    let whole = WHOLE.iter().find(|whole| line.contains(**whole));
    match whole {
        Some(whole) => line.replace(whole, "[response.*]"),
        None => line,
    }
}

/// The models of the SDKs, by the name of our schema.
fn models() -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks");
    let python = folder.join(".venv/bin/python");
    assert!(
        python.exists(),
        "the SDKs are not installed: `cargo xtask needs` installs them"
    );
    let said = Command::new(python)
        .arg(folder.join("models.py"))
        .output()
        .unwrap();
    assert!(
        said.status.success(),
        "models.py: {}",
        String::from_utf8_lossy(&said.stderr)
    );
    serde_json::from_slice(&said.stdout).unwrap()
}

/// What a comparison finds.
#[derive(Default)]
struct Found {
    faults: BTreeSet<String>,
    additions: BTreeSet<String>,
}

impl Found {
    fn fault(&mut self, text: String) {
        self.faults.insert(line(text));
    }

    fn addition(&mut self, text: String) {
        self.additions.insert(line(text));
    }
}

/// One model of an SDK, with the definitions that it refers to.
struct Sdk<'a> {
    root: &'a Value,
}

impl<'a> Sdk<'a> {
    /// The schemas that a schema stands for: references followed, unions taken apart, null left out.
    fn kinds(&self, schema: &'a Value) -> Vec<&'a Value> {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.root.pointer(reference.trim_start_matches('#'));
            return self.kinds(target.unwrap());
        }
        let union = ["anyOf", "oneOf", "allOf"]
            .iter()
            .find_map(|word| schema[*word].as_array());
        match union {
            Some(union) => union.iter().flat_map(|kind| self.kinds(kind)).collect(),
            None if schema["type"] == "null" => Vec::new(),
            None => vec![schema],
        }
    }

    fn all(&self, schemas: impl IntoIterator<Item = &'a Value>) -> Vec<&'a Value> {
        schemas
            .into_iter()
            .flat_map(|schema| self.kinds(schema))
            .collect()
    }
}

/// The words that a schema allows, when it lists them.
fn words(schema: &Value) -> Option<BTreeSet<String>> {
    let list = schema["enum"]
        .as_array()
        .cloned()
        .or_else(|| schema.get("const").map(|word| vec![word.clone()]))?;
    Some(
        list.iter()
            .filter_map(|word| Some(word.as_str()?.to_owned()))
            .collect(),
    )
}

fn names(list: &Value) -> BTreeSet<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn compare<'a>(path: &str, ours: &Value, theirs: &[&'a Value], sdk: &Sdk<'a>, found: &mut Found) {
    if let Some(kinds) = ours["anyOf"].as_array() {
        kinds
            .iter()
            .filter(|kind| kind["type"] != "null")
            .for_each(|kind| compare(path, kind, theirs, sdk, found));
        return;
    }
    compare_words(path, ours, theirs, found);
    compare_tagged(path, ours, theirs, sdk, found);
    compare_members(path, ours, theirs, sdk, found);
    if ours.get("items").is_some() {
        let items = sdk.all(theirs.iter().filter_map(|kind| kind.get("items")));
        compare(&format!("{path}/*"), &ours["items"], &items, sdk, found);
    }
}

fn compare_words(path: &str, ours: &Value, theirs: &[&Value], found: &mut Found) {
    let Some(own) = words(ours) else {
        return;
    };
    // A kind without a list takes any word.
    let Some(known) = theirs
        .iter()
        .map(|kind| words(kind))
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let known: BTreeSet<String> = known.into_iter().flatten().collect();
    for word in own.difference(&known) {
        found.fault(format!("{path}: the SDK has no {word:?}"));
    }
    for word in known.difference(&own) {
        found.addition(format!("{path} = {word:?}"));
    }
}

fn compare_tagged<'a>(
    path: &str,
    ours: &Value,
    theirs: &[&'a Value],
    sdk: &Sdk<'a>,
    found: &mut Found,
) {
    let Some(kinds) = ours["allOf"].as_array() else {
        return;
    };
    let tag_of = |kind: &Value| words(&kind["properties"]["type"]).unwrap_or_default();
    let mut own = BTreeSet::new();
    for kind in kinds {
        let value = kind["if"]["properties"]["type"]["const"].as_str().unwrap();
        own.insert(value.to_owned());
        let same: Vec<&Value> = theirs
            .iter()
            .copied()
            .filter(|kind| tag_of(kind).contains(value))
            .collect();
        if same.is_empty() {
            found.fault(format!("{path}: the SDK has no type {value:?}"));
        } else {
            compare(
                &format!("{path}[{value}]"),
                &kind["then"],
                &same,
                sdk,
                found,
            );
        }
    }
    let known: BTreeSet<String> = theirs.iter().flat_map(|kind| tag_of(kind)).collect();
    for value in known.difference(&own) {
        found.addition(format!("{path}[{value}]"));
    }
}

fn compare_members<'a>(
    path: &str,
    ours: &Value,
    theirs: &[&'a Value],
    sdk: &Sdk<'a>,
    found: &mut Found,
) {
    // A tagged object names its members kind by kind.
    let Some(own) = ours["properties"]
        .as_object()
        .filter(|_| ours.get("allOf").is_none())
    else {
        return;
    };
    let objects: Vec<&'a Value> = theirs
        .iter()
        .copied()
        .filter(|kind| kind["properties"].is_object())
        .collect();
    if objects.is_empty() {
        // The SDK takes any object here.
        return;
    }
    for (name, member) in own {
        let same: Vec<&Value> = objects
            .iter()
            .filter_map(|kind| kind["properties"].get(name))
            .collect();
        if same.is_empty() {
            found.fault(format!("{path}/{name}: the SDK has no such member"));
        } else {
            compare(
                &format!("{path}/{name}"),
                member,
                &sdk.all(same),
                sdk,
                found,
            );
        }
    }
    let required = names(&ours["required"]);
    for kind in &objects {
        for name in names(&kind["required"]).difference(&required) {
            // The tag of a kind stands in the schema around it.
            if *name != "type" || own.contains_key("type") {
                found.fault(format!("{path}/{name}: the SDK requires it"));
            }
        }
        for name in kind["properties"]
            .as_object()
            .into_iter()
            .flat_map(|members| members.keys())
        {
            if !own.contains_key(name) && name != "type" {
                found.addition(format!("{path}/{name}"));
            }
        }
    }
}

fn found() -> Found {
    let mut found = Found::default();
    for (name, model) in &models() {
        let (schema, pointer) = name.split_once('#').unwrap_or((name, ""));
        let ours = schemas::named(schema).unwrap();
        let sdk = Sdk { root: model };
        let theirs = sdk.kinds(model);
        compare(
            schema,
            ours.pointer(pointer).unwrap(),
            &theirs,
            &sdk,
            &mut found,
        );
    }
    found
}

#[test]
fn our_schemas_demand_nothing_that_the_official_sdks_do_not_know() {
    let found = found();
    let known: BTreeSet<&str> = KNOWN.iter().map(|(fault, _)| *fault).collect();
    let faults: BTreeSet<&str> = found.faults.iter().map(String::as_str).collect();
    let new: Vec<_> = faults.difference(&known).collect();
    assert!(new.is_empty(), "faults: {new:#?}");
    let stale: Vec<_> = known.difference(&faults).collect();
    assert!(stale.is_empty(), "no fault any more: {stale:#?}");
}

#[test]
fn what_the_official_sdks_have_and_we_do_not_name_is_known() {
    let additions: Vec<String> = found().additions.into_iter().collect();
    insta::assert_snapshot!("additions", additions.join("\n"));
}

#[test]
fn a_member_a_word_and_a_requirement_that_differ_are_found() {
    let sdk: Value = serde_json::json!({
        "properties": {
            "id": { "type": "string" },
            "reason": { "anyOf": [{ "enum": ["stop", "length"] }, { "type": "null" }] },
            "more": { "type": "string" },
        },
        "required": ["id", "more"],
    });
    let ours = serde_json::json!({
        "properties": { "id": {}, "reason": { "enum": ["stop", "halt", null] }, "other": {} },
        "required": ["id"],
    });
    let mut found = Found::default();
    compare("x", &ours, &[&sdk], &Sdk { root: &sdk }, &mut found);
    let lines = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join("\n");
    assert_eq!(
        lines(found.faults),
        "x/more: the SDK requires it\nx/other: the SDK has no such member\nx/reason: the SDK has no \"halt\""
    );
    assert_eq!(lines(found.additions), "x/more\nx/reason = \"length\"");
}
