//! Each error says where it is, what the grammar allows there and what stands there.

use crate::transcript::text::parse;

fn error(text: &str) -> String {
    match parse(text) {
        Ok(transcript) => format!("no error: {transcript:?}"),
        Err(error) => error.in_file("golden/a.twire"),
    }
}

#[test]
fn errors_of_the_header() {
    let texts = [
        "twire 2\n",
        "suite: a\ntwire 1\n",
        "suite: a\nsuite: b\n",
        "sweet: a\n",
        "scale: fast\n",
        "scale: NaN\n",
        "started: yesterday\n",
        "scenario: \\xff\n",
        "> GET /\nsuite: a\n",
    ];
    insta::assert_snapshot!(texts.map(error).join("\n"));
}

#[test]
fn errors_of_single_lines() {
    let texts = [
        "label a\nlable b\n",
        "@12\n",
        "@+12.5h\n",
        "@5ms\n@4.999ms\n",
        "@+99999999999999s\n",
        "@18446744073s\n@+18446744073s\n@+1s\n",
        "target restarted\n",
        "target stopped now\n",
        "state {\"a\":}\n",
        "state\n",
        ">7x GET /\n",
        ">99999999999 GET /\n",
        ">\n",
        "> GET /with space\n",
        "label \\xff\n",
    ];
    insta::assert_snapshot!(texts.map(error).join("\n"));
}

#[test]
fn errors_of_what_stands_in_the_wrong_place() {
    let texts = [
        "< 200\n",
        "end complete\n",
        "> GET /\n< data: 1\n",
        "> GET /\n<event: x\n",
        "> GET /\n< 70000\n",
        "> GET /\n@+1ms\n>: accept: */*\n",
        "> GET /\n< 200\n< {}\n<: too: late\n",
        "> GET /\n< 200\n<: no colon\n",
        "> GET /\n\n>1 GET /\n",
        "> GET /\n< 200\n>| late\n",
        "> GET /\n<2: a: b\n",
        "> GET /\nend finished\n",
        "> GET /\n<~ txt hello\n",
        "> GET /\n<~ close soon\n",
        "}\n",
        "unordered {\nunordered {\n",
        "unordered\n",
        "unordered {\n> GET /\n",
    ];
    insta::assert_snapshot!(texts.map(error).join("\n"));
}
