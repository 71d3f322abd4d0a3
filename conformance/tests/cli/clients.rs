//! Clients under test: programs in any language, and nobody at all.

use crate::support::{Ended, Place};

/// Python with this program, whose `HERE` says where the harness is.
fn python(program: &str) -> Vec<String> {
    let before = "import os, urllib.request\nHERE = os.environ['TURNWIRE_URL']\n";
    ["python3", "-c", &format!("{before}{program}")]
        .map(str::to_owned)
        .to_vec()
}

/// Checks this command as a client, with these options.
fn client(options: &[&str], command: &[String]) -> Ended {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    Place::new().run(&[&["client"], options, &["--quiet", "--"], &command].concat())
}

#[test]
fn a_run_in_which_nothing_was_exercised_is_not_conformant() {
    // It is there, and does nothing that its suite is about.
    let silent = vec!["true".to_owned()];
    let runs: [(&[&str], &Vec<String>); 2] = [
        (&["--suite", "sse", "--scenario", "redirects"], &silent),
        (
            &["--suite", "covel-sse", "--scenario", "client-slots"],
            &silent,
        ),
    ];
    for (options, command) in runs {
        let ended = client(options, command);
        assert_eq!(ended.code, Some(4), "{options:?} {ended:?}");
        assert!(
            ended
                .stdout
                .contains("nothing exercised, which says nothing about the target"),
            "{}",
            ended.stdout
        );
    }
}

#[test]
fn a_request_that_the_protocol_does_not_know_is_told_of_the_client_and_not_of_the_harness() {
    let asks = python(
        "session = os.environ.get('TURNWIRE_SESSION', '')
for path in ['/api/nonsense', f'/api/sessions/{session}/opinion']:
    try: urllib.request.urlopen(HERE + path)
    except urllib.error.HTTPError as error: assert error.code == 404
view = urllib.request.urlopen(f'{HERE}/api/sessions/{session}/view').read()
urllib.request.urlopen(f'{HERE}/api/events/stream?sessionId={session}').read()",
    );
    let options = ["--suite", "covel-sse", "--scenario", "client-subscription"];
    let ended = client(&options, &asks);
    // It is a poor client, but the run is about it.
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for line in [
        "observation: request GET /api/nonsense: the protocol has no such endpoint",
        "observation: request GET /api/sessions/:session/opinion: the protocol has no such endpoint",
    ] {
        assert!(ended.stderr.contains(line), "{}", ended.stderr);
    }
    assert!(!ended.stdout.contains("ERROR"), "{}", ended.stdout);
}
