//! `turnwire adapter` as people use it.

use super::support::{Ended, turnwire};

/// Our own gateway with one case, split here.
fn split(at: &str) -> Ended {
    let case = ["--suite", "openai-chat", "--case", "line-ends/crlf"];
    let args: Vec<_> = ["adapter"].into_iter().chain(case).collect();
    turnwire(&[&args[..], &["--quiet", "--split", at]].concat())
}

#[test]
fn a_split_within_the_answer_is_played() {
    let ended = split("100");
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_split_that_is_beyond_every_answer_is_wrong_usage() {
    let ended = split("1000000");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let told = "--split 1000000 splits nothing: the longest answer that was played has ";
    assert!(ended.stderr.contains(told), "{ended:?}");
    // The length itself is no place within, and neither is the start.
    let length = ended.stderr.split(told).nth(1);
    let length = length.and_then(|rest| rest.split(' ').next()).unwrap();
    let last: usize = length.parse().unwrap();
    assert_eq!(split(length).code, Some(2));
    assert_eq!(split(&(last - 1).to_string()).code, Some(0));
    assert_eq!(split("0").code, Some(2));
}
