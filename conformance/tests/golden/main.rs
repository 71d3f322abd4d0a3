//! The golden transcripts: made from live runs, compared with live runs, judged by the same checks.
//!
//! - [`machine`]: plays a story against the reference server or the mock;
//! - [`client`]: what is kept of the transcript of a client;
//! - [`naming`]: a live transcript as a template: ids, times and ports become placeholders;
//! - [`stories`]: what is shown; one story a file;
//! - [`files`]: what holds for every file, whoever made it.
//!
//! `cargo xtask golden` sets `TURNWIRE_BLESS`, and then a file that no longer matches is written again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod client;
mod files;
mod machine;
mod naming;
mod stories;

use machine::Story;
use stories::STORIES;

/// Stories that are played at the same time.
const TOGETHER: usize = 6;

/// Plays all stories; gives what is wrong.
async fn play_all() -> Vec<String> {
    let mut faults = Vec::new();
    let all: Vec<&'static Story> = STORIES.iter().copied().flatten().collect();
    for some in all.chunks(TOGETHER) {
        let playing: Vec<_> = some
            .iter()
            .map(|story| tokio::spawn(machine::prove(story)))
            .collect();
        for (story, played) in some.iter().zip(playing) {
            let ended = played.await;
            let fault = match ended {
                Ok(Ok(())) => continue,
                Ok(Err(fault)) => fault,
                Err(panic) => panic.to_string(),
            };
            faults.push(format!("{}/{}: {fault}", story.suite, story.name));
        }
    }
    faults
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_is_told_by_its_golden_file() {
    let faults = play_all().await;
    files::write_examples();
    assert!(
        faults.is_empty(),
        "{} golden files do not match; see `cargo xtask golden`\n\n{}",
        faults.len(),
        faults.join("\n\n")
    );
}
