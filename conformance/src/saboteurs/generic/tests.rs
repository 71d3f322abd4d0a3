//! Each kind of rewrite, shown by its effect on bytes.

use bytes::Bytes;
use serde_json::{Value, json};
use turnwire_spec::sse;

use super::*;
use crate::saboteurs::{Out, saboteur::Step};

fn saboteur(rewrite: Value) -> Generic {
    Generic::new(&serde_json::from_value(rewrite).unwrap())
}

fn asked(method: &str, target: &str, body: &str) -> RequestInfo {
    let request = Request {
        method: method.into(),
        target: target.into(),
        headers: Vec::new(),
        body: body.to_owned().into(),
    };
    RequestInfo { request, number: 0 }
}

const STREAM: &str = "/api/events/stream?sessionId=s1&lastEventId=e:1";

fn event_stream() -> ResponseHead {
    ResponseHead {
        status: 200,
        headers: vec![(
            "content-type".into(),
            "text/event-stream; charset=utf-8".into(),
        )],
    }
}

/// What a subscription with these frames becomes.
fn streamed(rewrite: Value, frames: &str) -> String {
    let info = asked("GET", STREAM, "");
    let Edit::Frames(mut rewriter) = saboteur(rewrite).response(&info, &mut event_stream()).edit
    else {
        return frames.to_owned();
    };
    let mut out = Out::default();
    for frame in &sse::frames(frames.as_bytes()) {
        rewriter.frame(frame, &mut out);
    }
    rewriter.end(&mut out);
    out.transcript()
}

const A: &str = "event: a\nid: e:1\ndata: {\"type\":\"a\",\"n\":1}\n\n";
const B: &str = "event: b\nid: e:2\ndata: {\"type\":\"b\",\"n\":2}\n\n";
const C: &str = "event: c\nid: e:3\ndata: {\"type\":\"c\",\"n\":3}\n\n";

/// What one edit makes of the frame `b` between `a` and `c`.
fn edited(edit: Value) -> String {
    let text = streamed(
        json!({"frames": {"type": ["b"], "do": [edit]}}),
        &format!("{A}{B}{C}"),
    );
    let middle = text.strip_prefix(A).expect("the frame before stays");
    middle.strip_suffix(C).unwrap_or(middle).to_owned()
}

#[test]
fn line_edits_change_the_lines_of_a_frame() {
    let data = "data: {\"type\":\"b\",\"n\":2}\n\n";
    assert_eq!(
        edited(json!({"prepend_line": "retry: {/n}"})),
        format!("retry: 2\n{B}")
    );
    assert_eq!(
        edited(json!({"append_line": "x: {line:id}"})),
        B.replace("\n\n", "\nx: e:2\n\n")
    );
    assert_eq!(
        edited(json!({"drop_line": "id"})),
        format!("event: b\n{data}")
    );
    assert_eq!(
        edited(json!({"set_line": ["id", "{/n}"]})),
        format!("event: b\nid: 2\n{data}")
    );
    assert_eq!(edited(json!({"set_line": ["retry", "5"]})), B);
}

#[test]
fn data_edits_change_the_data() {
    let lines = "event: b\nid: e:2\n";
    assert_eq!(
        edited(json!({"json": [{"remove": "/type"}]})),
        format!("{lines}data: {{\"n\":2}}\n\n")
    );
    assert_eq!(
        edited(json!({"data": "{request:sessionId}\n{index}"})),
        format!("{lines}data: s1\ndata: 0\n\n")
    );
    assert_eq!(
        edited(json!({"unwrap": "/n"})),
        format!("{lines}data: 2\n\n")
    );
    assert_eq!(
        edited(json!({"unwrap": "/type"})),
        format!("{lines}data: b\n\n")
    );
    assert_eq!(edited(json!({"unwrap": "/no"})), B);
}

#[test]
fn frame_edits_drop_repeat_swap_delay_and_surround() {
    assert_eq!(edited(json!("drop")), "");
    assert_eq!(edited(json!({"repeat": 2})), format!("{B}{B}{B}"));
    assert_eq!(edited(json!("swap_with_next")), format!("{C}{B}"));
    assert_eq!(edited(json!({"delay_ms": 1500})), format!("<wait 1.5s>{B}"));
    assert_eq!(
        edited(json!({"before": "data: {\"x\":\"{/n}\"}\n\n"})),
        format!("data: {{\"x\":\"2\"}}\n\n{B}")
    );
    assert_eq!(
        edited(json!({"after": ": {line:event}\n\n"})),
        format!("{B}: b\n\n")
    );
    assert_eq!(edited(json!("end")), format!("{B}<end>"));
    assert_eq!(edited(json!("cut")), format!("{B}<cut>"));
}

#[test]
fn a_swapped_frame_waits_for_an_event_and_at_most_for_the_end() {
    let swap = |types: Value| json!({"frames": {"type": types, "do": ["swap_with_next"]}});
    assert_eq!(
        streamed(swap(json!(["a"])), &format!("{A}: hi\n\n{B}")),
        format!(": hi\n\n{B}{A}")
    );
    assert_eq!(
        streamed(swap(json!(["b"])), &format!("{A}{B}")),
        format!("{A}{B}")
    );
}

#[test]
fn edits_of_one_rewrite_work_in_order_on_the_frame_as_it_was() {
    let edits = json!([{"drop_line": "id"}, {"set_line": ["event", "{line:id}"]}, {"prepend_line": "id: {/n}"}, "drop", {"after": "end {line:event}"}]);
    let text = streamed(json!({"frames": {"type": ["b"], "do": edits}}), B);
    assert_eq!(text, "end b");
}

#[test]
fn frames_are_selected_by_type_data_query_and_count() {
    let all = format!("{A}{B}{C}: ping\n\n");
    let dropped = |selection: Value| {
        let mut frames = json!({"do": ["drop"]});
        frames
            .as_object_mut()
            .unwrap()
            .extend(selection.as_object().unwrap().clone());
        streamed(json!({"frames": frames}), &all)
    };
    let ping = ": ping\n\n";
    assert_eq!(dropped(json!({})), ping);
    assert_eq!(dropped(json!({"type": [":"]})), format!("{A}{B}{C}"));
    assert_eq!(
        dropped(json!({"type": ["*"], "not_type": ["b", ":"]})),
        format!("{B}{ping}")
    );
    assert_eq!(
        dropped(json!({"where": {"properties": {"n": {"minimum": 2}}}})),
        format!("{A}{ping}")
    );
    assert_eq!(dropped(json!({"skip": 1})), format!("{A}{ping}"));
    assert_eq!(dropped(json!({"every": 2})), format!("{B}{ping}"));
    assert_eq!(
        dropped(json!({"skip": 1, "limit": 1})),
        format!("{A}{C}{ping}")
    );
    assert_eq!(
        dropped(json!({"stream": ["subscription"], "when_query": ["lastEventId"]})),
        ping
    );
    assert_eq!(dropped(json!({"stream": ["action"]})), all);
    assert_eq!(dropped(json!({"when_query": ["topics"]})), all);
    assert_eq!(
        dropped(json!({"when_query": ["sessionId=s1", "lastEventId=e:1"]})),
        ping
    );
    assert_eq!(dropped(json!({"when_query": ["sessionId=s"]})), all);
    assert_eq!(dropped(json!({"where_request": {}})), all);
}

#[test]
fn what_is_not_touched_keeps_its_bytes() {
    let odd = b"data:x\r\nid: \xff\nevent\n\r\n";
    let info = asked("GET", STREAM, "");
    let rewrite = saboteur(json!({"frames": {"type": ["b"], "do": ["drop"]}}));
    let Edit::Frames(mut rewriter) = rewrite.response(&info, &mut event_stream()).edit else {
        panic!("no change")
    };
    let mut out = Out::default();
    rewriter.frame(&sse::frames(odd)[0], &mut out);
    assert_eq!(out.steps, [Step::Send(Bytes::from_static(odd))]);
}

#[test]
fn rewrites_of_one_frame_work_one_after_the_other() {
    let rewrite = json!({"all": [
        {"frames": {"type": ["a"], "do": [{"set_line": ["event", "b"]}]}},
        {"frames": {"type": ["b"], "do": [{"drop_line": "id"}]}},
    ]});
    assert_eq!(
        streamed(rewrite, A),
        "event: b\ndata: {\"type\":\"a\",\"n\":1}\n\n"
    );
}

/// Method, target, headers and body of a request after a rewrite.
fn sent(rewrite: Value, info: &RequestInfo) -> (String, String, Vec<(String, String)>, String) {
    let mut request = info.request.clone();
    saboteur(json!({"request": rewrite})).request(info, &mut request);
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    (request.method, request.target, request.headers, body)
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn request_rewrites_change_the_query() {
    let info = asked("GET", STREAM, "");
    let target = |rewrite: Value| sent(rewrite, &info).1;
    assert_eq!(
        target(json!({"drop_query": ["lastEventId"]})),
        "/api/events/stream?sessionId=s1"
    );
    assert_eq!(
        target(json!({"drop_query": ["lastEventId", "sessionId"]})),
        "/api/events/stream"
    );
    assert_eq!(
        target(json!({"set_query": {"lastEventId": "x {request:sessionId}", "topics": "a,b"}})),
        "/api/events/stream?sessionId=s1&lastEventId=x%20s1&topics=a,b"
    );
    assert_eq!(target(json!({"drop_query": ["other"]})), STREAM);
}

#[test]
fn request_rewrites_change_headers_method_and_move_values() {
    let mut info = asked("GET", STREAM, "");
    info.request.headers = vec![pair("X-Session-Token", "t"), pair("accept", "*/*")];
    let accept = || pair("accept", "*/*");
    assert_eq!(
        sent(json!({"drop_header": ["x-session-token"]}), &info).2,
        [accept()]
    );
    assert_eq!(
        sent(json!({"set_header": {"X-Session-Token": "u"}}), &info).2,
        [accept(), pair("X-Session-Token", "u")]
    );
    assert_eq!(sent(json!({"set_method": "POST"}), &info).0, "POST");
    let moved = sent(
        json!({"move": [["query:lastEventId", "header:Last-Event-ID"]]}),
        &info,
    );
    assert_eq!(moved.1, "/api/events/stream?sessionId=s1");
    assert_eq!(moved.2.last(), Some(&pair("Last-Event-ID", "e:1")));
    let moved = sent(
        json!({"move": [["header:x-session-token", "query:sessionId"], ["header:no", "query:no"]]}),
        &info,
    );
    assert_eq!(
        (moved.1.as_str(), moved.2),
        (
            "/api/events/stream?lastEventId=e:1&sessionId=t",
            vec![accept()]
        )
    );
}

#[test]
fn request_rewrites_change_json_bodies() {
    let info = asked("POST", "/api/actions", r#"{"type":"x","n":1}"#);
    assert_eq!(
        sent(json!({"json": [{"add": ["/n", 1]}]}), &info).3,
        r#"{"type":"x","n":2}"#
    );
    let text = asked("POST", "/api/actions", "no json");
    assert_eq!(
        sent(json!({"json": [{"set": ["/n", 1]}]}), &text).3,
        "no json"
    );
}

#[test]
fn request_rewrites_select_and_count() {
    let info = asked("POST", "/api/sessions/s1/messages?x=1", r#"{"type":"x"}"#);
    let hit = |selection: Value| {
        let mut rewrite = json!({"set_method": "PUT"});
        rewrite
            .as_object_mut()
            .unwrap()
            .extend(selection.as_object().unwrap().clone());
        sent(rewrite, &info).0 == "PUT"
    };
    for yes in [
        json!({"method": ["POST"], "path": ["/api/sessions/:id/messages"], "when_query": ["x"]}),
        json!({"where_request": {"required": ["type"]}}),
    ] {
        assert!(hit(yes.clone()), "{yes}");
    }
    for no in [
        json!({"method": ["GET"]}),
        json!({"path": ["/api/sessions/:id"]}),
        json!({"when_query": ["y"]}),
        json!({"where_request": {"required": ["n"]}}),
        json!({"skip": 1}),
    ] {
        assert!(!hit(no.clone()), "{no}");
    }
    let counted = saboteur(json!({"request": {"set_method": "PUT", "skip": 1, "limit": 1}}));
    let methods: Vec<_> = (0..3)
        .map(|_| {
            let mut request = info.request.clone();
            counted.request(&info, &mut request);
            request.method
        })
        .collect();
    assert_eq!(methods, ["POST", "PUT", "POST"]);
}

/// Head and body of a JSON response after a rewrite.
fn answered(rewrite: Value, body: &str) -> (ResponseHead, String, Treatment) {
    let info = asked("GET", "/api/sessions/s1/view?n=7", "");
    let mut head = ResponseHead {
        status: 200,
        headers: vec![pair("Content-Type", "application/json"), pair("x-a", "1")],
    };
    let mut treatment = saboteur(json!({"response": rewrite})).response(&info, &mut head);
    let body = match std::mem::take(&mut treatment.edit) {
        Edit::Whole(change) => change(body.as_bytes().to_vec()),
        _ => body.as_bytes().to_vec(),
    };
    (head, String::from_utf8(body).unwrap(), treatment)
}

#[test]
fn response_rewrites_change_head_and_body() {
    let body = r#"{"id":"s1","list":[1,2]}"#;
    assert_eq!(answered(json!({"status": 500}), body).0.status, 500);
    assert_eq!(
        answered(json!({"drop_header": ["X-A"]}), body).0.headers,
        [pair("Content-Type", "application/json")]
    );
    let set = answered(json!({"set_header": {"content-type": "text/plain"}}), body)
        .0
        .headers;
    assert_eq!(set, [pair("x-a", "1"), pair("content-type", "text/plain")]);
    assert_eq!(
        answered(json!({"body": "{/id} {request:n}"}), body).1,
        "s1 7"
    );
    assert_eq!(
        answered(json!({"json": [{"unwrap": "/list"}]}), body).1,
        "[1,2]"
    );
    assert_eq!(
        answered(json!({"json": [{"unwrap": "/list"}]}), "text").1,
        "text"
    );
    assert_eq!(answered(json!({}), body).1, body);
}

#[test]
fn response_rewrites_say_how_the_body_travels() {
    let travels = |rewrite: Value| answered(rewrite, "{}").2;
    assert!(travels(json!({"buffer": true})).buffer);
    assert!(travels(json!({"hold_open": true})).hold_open);
    assert_eq!(travels(json!({"cut_after": 5})).cut_after, Some(5));
    assert_eq!(travels(json!({"delay_ms": 20})).delay.as_millis(), 20);
    let nothing = travels(json!({}));
    assert!(
        !nothing.buffer
            && !nothing.hold_open
            && nothing.cut_after.is_none()
            && nothing.delay.is_zero()
    );
}

#[test]
fn response_rewrites_select_by_status_query_and_count() {
    let hit = |selection: Value| {
        let mut rewrite = json!({"status": 500});
        rewrite
            .as_object_mut()
            .unwrap()
            .extend(selection.as_object().unwrap().clone());
        answered(rewrite, "{}").0.status == 500
    };
    assert!(hit(
        json!({"path": ["/api/sessions/:id/view"], "when_status": [200, 201], "when_query": ["n"]})
    ));
    for no in [
        json!({"when_status": [404]}),
        json!({"when_query": ["m"]}),
        json!({"method": ["POST"]}),
        json!({"skip": 1}),
    ] {
        assert!(!hit(no.clone()), "{no}");
    }
}

#[test]
fn response_rewrites_add_up() {
    let rewrite = json!({"all": [
        {"response": {"status": 201, "json": [{"set": ["/a", 1]}]}},
        {"response": {"when_status": [200], "buffer": true, "json": [{"wrap": "item"}]}},
    ]});
    let info = asked("GET", "/x", "");
    let mut head = ResponseHead {
        status: 200,
        headers: Vec::new(),
    };
    let treatment = saboteur(rewrite).response(&info, &mut head);
    assert!(treatment.buffer);
    assert_eq!(head.status, 201);
    let Edit::Whole(change) = treatment.edit else {
        panic!("no change")
    };
    assert_eq!(change(b"{}".to_vec()), br#"{"item":{"a":1}}"#);
}

#[test]
fn an_answer_may_stand_in_place_of_the_target() {
    let info = asked("GET", "/api/health?x=1", "");
    let answer = |rewrite: Value| saboteur(json!({"response": rewrite})).answer(&info);
    let plain = answer(json!({"instead": true, "path": ["/api/health"], "body": "{\"x\":\"{request:x}\"}", "hold_open": true})).unwrap();
    assert_eq!(
        (plain.head.status, &plain.body[..], plain.hold_open),
        (200, &b"{\"x\":\"1\"}"[..], true)
    );
    assert_eq!(
        plain.head.headers,
        [pair("content-type", "application/json")]
    );
    let refusal = answer(json!({"instead": true, "status": 404, "set_header": {"content-type": "text/x"}, "body": "no"})).unwrap();
    assert_eq!(
        (refusal.head.status, refusal.head.headers),
        (404, vec![pair("content-type", "text/x")])
    );
    assert_eq!(answer(json!({"instead": true, "path": ["/other"]})), None);
    assert_eq!(answer(json!({"instead": true, "skip": 1})), None);
    assert_eq!(answer(json!({"status": 404})), None);
}

#[test]
fn frames_of_what_is_no_event_stream_stay() {
    let rewrite = saboteur(json!({"frames": {"do": ["drop"]}}));
    let mut head = ResponseHead {
        status: 200,
        headers: vec![pair("content-type", "application/json")],
    };
    assert!(matches!(
        rewrite.response(&asked("GET", STREAM, ""), &mut head).edit,
        Edit::Pass
    ));
}

#[test]
fn a_body_is_sent_several_times_in_one_request() {
    let rewrite = json!({"request": {"path": ["/x"], "repeat_body": 2}});
    let info = asked("POST", "/x", "ab");
    let mut request = info.request.clone();
    saboteur(rewrite).request(&info, &mut request);
    assert_eq!(&request.body[..], b"ababab");
}

#[test]
fn a_request_that_nobody_sent_may_come_later() {
    let rewrite = json!({"extra": {"path": ["/x"], "delay_ms": 30, "send": "GET /y"}});
    let more = saboteur(rewrite).more(&asked("GET", "/x", ""));
    let [more] = &more[..] else {
        panic!("{more:?}");
    };
    assert_eq!(more.request.target, "/y");
    assert_eq!(more.after, std::time::Duration::from_millis(30));
}
