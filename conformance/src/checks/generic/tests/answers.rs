//! Answers on other channels: what a target says to several, however fast each is.

use super::*;
use crate::transcript::text;

/// That of CWS-067.
fn broadcast() -> Value {
    json!({"answers": {
        "when": {"type": ["chat:active"], "label": "ok-*"},
        "then": {"type": ["chat:active"]},
        "equal": [
            ["/payload/sessionId", "/payload/sessionId"],
            ["/payload/running", "/payload/running"],
        ],
        "elsewhere": true,
        "within_ms": 300,
    }})
}

/// Two sockets; the first has a turn. What stands in `after` passes at the end.
fn two_sockets(lines: &[&str]) -> Transcript {
    let open = |id: u32| format!(">{id} GET /ws\n<{id} 101\n");
    let text = format!(
        "twire 1\nsuite: chat-ws\nscale: 0.01\n\n{}{}label ok-project\n{}\n",
        open(1),
        open(2),
        lines.join("\n"),
    );
    text::parse(&text).unwrap()
}

const SENDS: &str = r#">1~ text {"type":"chat:send","payload":{"message":"m"}}"#;
const STARTS: &str =
    r#"<1~ text {"type":"chat:active","payload":{"sessionId":"s","running":true}}"#;
const HEARS: &str = r#"<2~ text {"type":"chat:active","payload":{"sessionId":"s","running":true}}"#;

const ENDS: &str = r#"<1~ text {"type":"chat:active","payload":{"sessionId":"s","running":false}}"#;
const HEARS_END: &str =
    r#"<2~ text {"type":"chat:active","payload":{"sessionId":"s","running":false}}"#;

#[test]
fn a_broadcast_counts_whichever_socket_is_the_slower_one() {
    for lines in [
        [SENDS, "@+1s", STARTS, "@+9s", HEARS, "end 2 complete"],
        [SENDS, "@+1s", HEARS, "@+9s", STARTS, "end 2 complete"],
    ] {
        let (judged, faults) = counts(broadcast(), &two_sockets(&lines));
        assert!(judged > 0 && faults == 0, "{lines:?}");
    }
}

#[test]
fn what_was_told_of_one_turn_is_not_told_of_the_next() {
    let first = [SENDS, "@+1s", STARTS, HEARS, "@+1s", ENDS, HEARS_END];
    let next = [
        "@+1s",
        SENDS,
        "@+1s",
        STARTS,
        "@+1s",
        ENDS,
        "@+5s",
        "end 2 complete",
    ];
    let lines = [&first[..], &next[..]].concat();
    let (_, faults) = counts(broadcast(), &two_sockets(&lines));
    assert_eq!(faults, 1, "the end of the second turn");
}

#[test]
fn what_is_told_again_when_the_next_turn_was_asked_for_is_of_the_turn_before() {
    let first = [SENDS, "@+1s", STARTS, HEARS, "@+1s", ENDS, HEARS_END];
    let next = ["@+1s", SENDS, ENDS, "@+5s", "end 2 complete"];
    let lines = [&first[..], &next[..]].concat();
    let (_, faults) = counts(broadcast(), &two_sockets(&lines));
    assert_eq!(faults, 0);
}

#[test]
fn a_socket_that_was_not_open_for_long_enough_shows_nothing() {
    for end in [
        "end 2 closed-by-harness",
        "end 2 broken reset",
        "end 2 complete",
    ] {
        let lines = [SENDS, "@+1s", STARTS, "@+3s", end];
        assert_eq!(counts(broadcast(), &two_sockets(&lines)), (0, 0), "{end}");
    }
    let lines = [SENDS, "@+1s", STARTS, "@+5s", "end 2 closed-by-harness"];
    assert_eq!(counts(broadcast(), &two_sockets(&lines)), (1, 1));
}
