//! The way of a bug report, command by command: the reference server is recorded while the reference client plays a
//! session, the recording passes `check`, and played to the client again it leads to the same state.
//!
//! `docs/src/transcripts.md` has the same as commands.

use std::{fs, time::Duration};

use rustix::process::Signal;
use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use turnwire_client::covel::{Person, edge};

use crate::{servers::Served, support::Place};

/// Much longer than anything takes, however busy the machine is.
const LONG: Duration = Duration::from_secs(90);

/// What the person says, one turn each.
const SAYS: [&str; 2] = ["look around", "open the door"];

/// Creates a session at this address; its id and the token of its owner.
fn create(served: &Served) -> (String, String) {
    let answer = served.request("POST", "/api/sessions", r#"{"plugins":["story"]}"#);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 201"), "{answer}");
    let record: Value = serde_json::from_str(body).unwrap();
    let text = |name: &str| record[name].as_str().unwrap().to_owned();
    (text("id"), text("ownerToken"))
}

/// Waits until what the client shows satisfies `wanted`.
async fn shows(states: &mut watch::Receiver<Value>, wanted: impl Fn(&Value) -> bool) -> Value {
    let waiting = timeout(LONG, states.wait_for(wanted)).await;
    let found = waiting.ok().map(|state| state.unwrap().clone());
    found.unwrap_or_else(|| panic!("the client shows {:#}", *states.borrow()))
}

/// Whether this many turns are over and stored, and the client listens again.
fn rests_after(turns: usize) -> impl Fn(&Value) -> bool {
    move |state| {
        let messages = state["messages"].as_array().map_or(&[][..], Vec::as_slice);
        state["connection"] == "open"
            && state["executing"] == false
            && state["cursor"].is_string()
            && messages.len() >= 2 * turns
            && messages
                .iter()
                .all(|message| message["status"] == "completed")
    }
}

/// The reference client visits a server and plays its turns; what it shows at the end. With `until`, the end is
/// when it shows that.
async fn visit(served: &Served, until: Option<&Value>) -> Value {
    let (session, token) = create(served);
    let (does, person) = mpsc::channel(16);
    let (tell, mut states) = watch::channel(Value::Null);
    let server = edge::Server {
        url: served.url.clone(),
        token: Some(token),
        time_scale: 1.0,
        store: None,
    };
    let showing = tokio::spawn(edge::run(server, person, move |shown| {
        let shown = serde_json::to_value(shown).unwrap();
        tell.send_if_modified(|state| {
            let changed = *state != shown;
            *state = shown;
            changed
        });
    }));
    does.send(Person::Open(session)).await.unwrap();
    shows(&mut states, rests_after(0)).await;
    for (turns, text) in (1..).zip(SAYS) {
        does.send(Person::Say(text.to_owned())).await.unwrap();
        shows(&mut states, rests_after(turns)).await;
    }
    let last = match until {
        Some(until) => shows(&mut states, |state| state == until).await,
        // What else the server has to say about the last turn.
        None => {
            while timeout(Duration::from_secs(2), states.changed())
                .await
                .is_ok()
            {}
            states.borrow().clone()
        }
    };
    drop(does);
    showing.await.unwrap();
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_session_passes_the_checks_and_leads_the_client_to_the_same_state() {
    let place = Place::new();
    let file = place.path().join("session.twire").display().to_string();
    let server = Served::start(&["serve", "--store", "memory"]);
    let recorder = Served::start(&["record", "--upstream", &server.url, "--out", &file]);
    let shown = visit(&recorder, None).await;
    recorder.signal(Signal::INT);
    let (code, _, said, _folder) = recorder.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("JSON member ownerToken"), "{said}");

    let checked = place.run(&["check", &file]);
    assert_eq!(
        checked.code,
        Some(0),
        "{}{}",
        checked.stdout,
        checked.stderr
    );
    assert!(checked.stdout.contains("conformant"), "{}", checked.stdout);

    let replay = Served::start(&["replay", &file, "--to-client", "--lenient"]);
    let again = visit(&replay, Some(&shown)).await;
    assert_eq!(again, shown);
    // What the client has said is heard, also when its last words are still on their way.
    sleep(Duration::from_millis(100)).await;
    replay.signal(Signal::INT);
    let (code, _, said, _folder) = replay.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("unexpected"), "{said}");

    // The state comes from the recording, and from nothing else.
    let text = fs::read_to_string(&file).unwrap();
    let answer = "It answers every message with these words.";
    assert!(text.contains(answer), "{text}");
    assert!(shown["messages"].to_string().contains(answer), "{shown:#}");
}

#[test]
fn a_recording_takes_the_place_of_no_file_unless_it_is_told_to() {
    let place = Place::new();
    let out = place.path().join("a.twire");
    fs::write(&out, "old").unwrap();
    let record = |flags: &[&str]| {
        let words = [
            &["record", "--stdio", "--out", "a.twire"],
            flags,
            &["--", "true"],
        ];
        place.run(&words.concat())
    };
    let refused = record(&[]);
    assert_eq!(refused.code, Some(2));
    let words = "a.twire is there already; say --overwrite to replace it";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&out).unwrap(), "old");
    assert_eq!(record(&["--overwrite"]).code, Some(0));
    assert!(fs::read_to_string(&out).unwrap().starts_with("twire 1\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_recording_for_which_there_is_no_room_is_kept_elsewhere_and_a_device_stays_one() {
    let place = Place::new();
    std::os::unix::fs::symlink("/dev/full", place.path().join("full")).unwrap();
    let mut command = place.command(&["record", "--stdio", "--out", "full", "--", "true"]);
    let ended = command.env("TMPDIR", place.path()).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8(ended.stderr).unwrap();
    let (failed, kept) = said
        .trim_end()
        .split_once("; the recording is in ")
        .unwrap();
    assert!(failed.contains("No space left"), "{said}");
    assert!(fs::read_to_string(kept).unwrap().starts_with("twire 1\n"));
    let kind = std::os::unix::fs::FileTypeExt::is_char_device;
    assert!(kind(&fs::metadata("/dev/full").unwrap().file_type()));
}

#[cfg(unix)]
#[test]
fn a_wrapped_program_that_a_signal_ends_is_told_as_shells_tell_it() {
    let place = Place::new();
    let ended = place.run(&[
        "record",
        "--stdio",
        "--out",
        "a.twire",
        "--",
        "sh",
        "-c",
        "kill -9 $$",
    ]);
    assert_eq!(ended.code, Some(128 + 9), "{}", ended.stderr);
}

#[test]
fn a_server_of_lines_is_not_recorded_as_if_it_spoke_http() {
    let place = Place::new();
    let ended = place.run(&[
        "record",
        "--upstream",
        "tcp://127.0.0.1:9",
        "--out",
        "a.twire",
    ]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("with --stdio"), "{}", ended.stderr);
}
