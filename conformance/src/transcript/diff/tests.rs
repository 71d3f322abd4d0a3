//! Transcripts that say the same, and those that do not.

use crate::{report::difference, transcript::text::Template};

fn diff(a: &str, b: &str) -> super::Diff {
    let read = |text| Template::parse(text).unwrap();
    super::templates(&read(a), &read(b))
}

fn shown(a: &str, b: &str) -> String {
    difference::render(&diff(a, b), "a.twire", "b.twire", false)
}

const TURN: &str = r#"
> POST /api/sessions
> {"plugins":["story"],"id":null}
< 201
<: content-type: application/json
<: date: Mon, 30 Nov 2026 00:19:59 GMT
< {"id":"session-1d6a8f75","createdAt":"2026-11-30T00:19:59.958Z"}
end complete

> GET /api/events/stream?sessionId=session-1d6a8f75
< 200
< event: system.connected
< data: {"sessionId":"session-1d6a8f75","cursor":"epoch-ef1b329ba09e4d22:0"}
<
< event: narrative.delta
< data: {"text":"The door","seq":1}
< id: epoch-ef1b329ba09e4d22:1
<
< event: narrative.completed
< data: {"text":"The door opens.","seq":2,"durationMs":12}
< id: epoch-ef1b329ba09e4d22:2
<
"#;

/// The same turn on another day.
fn other_day() -> String {
    TURN.replace("1d6a8f75", "77777777")
        .replace("ef1b329ba09e4d22", "0123456789abcdef")
        .replace("2026-11-30T00:19:59.958Z", "2027-01-01T10:00:00.000Z")
        .replace("\"durationMs\":12", "\"durationMs\":345.5")
        .replace(
            "\"plugins\":[\"story\"],\"id\":null",
            "\"id\":null,\"plugins\":[\"story\"]",
        )
        .replace(
            "Mon, 30 Nov 2026 00:19:59 GMT",
            "Fri, 01 Jan 2027 10:00:00 GMT",
        )
}

#[test]
fn ids_times_durations_and_the_order_of_members_make_no_difference() {
    let diff = diff(TURN, &other_day());
    assert!(diff.same, "{:#?}", diff.differences);
    assert_eq!((diff.exchanges, diff.ids.len()), (2, 2));
}

#[test]
fn heartbeats_comments_and_chunks_make_no_difference() {
    let beats = TURN.replace(
        "< event: narrative.delta",
        "< :\n<\n< event: system.heartbeat\n< data: {}\n<\n@+3ms\n< event: narrative.delta",
    );
    assert!(diff(TURN, &beats).same);
}

#[test]
fn an_id_that_stands_for_two_is_a_difference() {
    let mixed = other_day().replace(
        "< id: epoch-0123456789abcdef:2",
        "< id: epoch-fedcba9876543210:2",
    );
    insta::assert_snapshot!(shown(TURN, &mixed), @r"
    - a.twire
    + b.twire

    GET /api/events/stream?sessionId=session-1d6a8f75 (exchange 2 and 2)
      ~ frame 2, line 19
          id: epoch-ef1b329ba09e4d22:2 -> epoch-fedcba9876543210:2

    different: 1 changed; 2 exchanges with 10 pieces alike, 2 ids paired
    ");
}

#[test]
fn a_value_that_changed_is_told_with_its_place() {
    let changed = other_day().replace(
        "\"text\":\"The door opens.\"",
        "\"text\":\"It stays shut.\",\"more\":true",
    );
    insta::assert_snapshot!(shown(TURN, &changed), @r#"
    - a.twire
    + b.twire

    GET /api/events/stream?sessionId=session-1d6a8f75 (exchange 2 and 2)
      ~ frame 2, line 19
          data /text: "The door opens." -> "It stays shut."
          data /more: nothing -> true

    different: 1 changed; 2 exchanges with 10 pieces alike, 2 ids paired
    "#);
}

#[test]
fn frames_and_exchanges_that_only_one_side_has_are_told() {
    let without = other_day().replace(
        "< event: narrative.delta\n< data: {\"text\":\"The door\",\"seq\":1}\n< id: epoch-0123456789abcdef:1\n<\n",
        "",
    ) + "\n> GET /api/health\n< 200\n";
    insta::assert_snapshot!(shown(TURN, &without), @r#"
    - a.twire
    + b.twire

    GET /api/events/stream?sessionId=session-1d6a8f75 (exchange 2)
      - frame 1, line 15: event: narrative.delta⏎data: {"seq":1,"text":"The door"}⏎id: epoch-ef1b329ba09e4d22:1
      + exchange 3, line 20: GET /api/health

    different: 1 missing, 1 extra; 2 exchanges with 10 pieces alike, 2 ids paired
    "#);
}

#[test]
fn exchanges_in_another_order_moved() {
    let a = "> GET /a\n< 200\n\n> GET /b\n< 200\n";
    let b = "> GET /b\n< 200\n\n> GET /a\n< 500\n";
    insta::assert_snapshot!(shown(a, b), @r"
    - a.twire
    + b.twire

      ~ exchange 1, line 1 is exchange 2 there: GET /a
    GET /a (exchange 1 and 2)
      ~ head 0, line 2
          200 -> 500

    different: 1 changed, 1 moved; 2 exchanges with 5 pieces alike, 0 ids paired
    ");
}

#[test]
fn placeholders_stand_for_one_text_each_and_groups_have_no_order() {
    let golden = "> GET /x\n< 200\n< event: connected\n< data: {\"cursor\":\"{{epoch}}:{{seq}}\"}\n<\nunordered {\n< event: a\n< id: {{epoch}}:{{_}}\n<\n< event: b\n<\n}\n";
    let live = |epoch: &str| {
        format!(
            "> GET /x\n< 200\n< event: connected\n< data: {{\"cursor\":\"e1:5\"}}\n<\n< event: b\n<\n< event: a\n< id: {epoch}:6\n<\n"
        )
    };
    let same = diff(golden, &live("e1"));
    assert!(same.same, "{:#?}", same.differences);
    assert!(!diff(golden, &live("e2")).same);
    let turned = diff(&live("e1"), golden);
    assert!(turned.same, "{:#?}", turned.differences);
}

#[test]
fn a_transcript_is_the_same_as_itself_and_an_edit_is_seen_both_ways() {
    assert!(diff(TURN, TURN).same);
    let edited = TURN.replace("\"seq\":2", "\"seq\":3");
    assert!(!diff(TURN, &edited).same);
    assert!(!diff(&edited, TURN).same);
}

#[test]
fn what_comes_after_a_client_left_is_no_difference_and_what_came_before_is() {
    let ended = "> GET /x\n< 200\n< event: a\n<\n< event: b\n<\nend complete\n";
    let left = "> GET /x\n< 200\n< event: a\n<\nend closed-by-harness\n";
    assert!(diff(ended, left).same);
    assert!(diff(left, ended).same);
    assert!(!diff(ended, &left.replace("event: a", "event: c")).same);
    assert!(!diff(ended, &left.replace("closed-by-harness", "complete")).same);
}

#[test]
fn a_difference_shows_no_secret() {
    let said = |token: &str| {
        format!(
            "> POST /a?session_token=of-the-query-1\n< 201\n< {{\"ownerToken\":\"{token}\",\"x\":\"{token}\"}}\nend complete\n"
        )
    };
    let extra = "\n> POST /b\n> {\"password\":\"of-the-body-1\"}\n< 200\n< ok of-the-query-1\nend complete\n";
    let (a, b) = (
        said("of the answer, one"),
        said("of the answer, two") + extra,
    );
    let found = diff(&a, &b);
    assert!(found.differences.len() >= 2, "{found:#?}");
    let json = serde_json::to_string(&found).unwrap();
    let human = shown(&a, &b);
    for text in [json, human] {
        assert!(
            !text.contains("of-the-") && !text.contains("of the answer"),
            "{text}"
        );
        assert!(text.contains("/ownerToken"), "{text}");
    }
}
