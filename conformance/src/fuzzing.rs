//! Properties of the parsers, for cargo-fuzz (`fuzz/`) and for proptest below: one text each, stated once.
//!
//! A property takes any bytes and gives what is broken, in words. Those of the SSE codec are in
//! [`turnwire_spec::sse::properties`].

use turnwire_spec::cursor::Cursor;

use crate::transcript::{
    Transcript, diff, har,
    text::{self, Template},
};

/// A cursor that is read is written as one that is read the same.
///
/// # Errors
///
/// What does not hold.
pub fn cursor(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(());
    };
    let Ok(cursor) = Cursor::parse(text) else {
        return Ok(());
    };
    let written = cursor.to_string();
    match Cursor::parse(&written) {
        Ok(again) if again.epoch == cursor.epoch && again.seq == cursor.seq => Ok(()),
        other => Err(format!(
            "{text:?} is written as {written:?}, which is {other:?}"
        )),
    }
}

/// A transcript that is read is written as one that reads back the same, once its secrets are replaced; and it is
/// not different from itself.
///
/// # Errors
///
/// What does not hold.
pub fn transcript(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(());
    };
    let Ok(template) = Template::parse(text) else {
        return Ok(());
    };
    let read = template.lower();
    if let Ok(transcript) = &read {
        written_and_read(transcript)?;
        let itself = diff::transcripts(transcript, transcript);
        if !itself.same && !text.contains("{{") {
            return Err(format!("it differs from itself: {:?}", itself.differences));
        }
    }
    // Whatever the placeholders are, an example is no worse than the template.
    match (read, template.example().lower()) {
        (Ok(_), Err(error)) => Err(format!("its example cannot be read: {error}")),
        _ => Ok(()),
    }
}

/// A HAR file is imported, in the order of time, as a transcript that can be written; or it is refused.
///
/// # Errors
///
/// What does not hold.
pub fn har(bytes: &[u8]) -> Result<(), String> {
    let Ok(transcript) = har::parse(bytes) else {
        return Ok(());
    };
    let entries = &transcript.entries;
    let pairs = entries.iter().zip(entries.iter().skip(1));
    if pairs.into_iter().any(|(a, b)| a.at > b.at) {
        return Err("time goes backwards".to_owned());
    }
    written_and_read(&transcript)
}

fn written_and_read(transcript: &Transcript) -> Result<(), String> {
    let read = |text: &str| {
        text::parse(text).map_err(|error| format!("what is written cannot be read: {error}"))
    };
    let once = read(&text::write(transcript))?;
    if once.entries.len() != transcript.entries.len() {
        return Err("facts are lost".to_owned());
    }
    let twice = read(&text::write(&once))?;
    if once == twice {
        Ok(())
    } else {
        Err("what is written twice is not the same".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;

    /// Pieces of which broken streams and transcripts are made.
    const PIECES: &[&str] = &[
        "data: {}",
        "event: x",
        "id: e:1",
        ":",
        "\n",
        "\r",
        "\r\n",
        "> GET /",
        "< 200",
        "<: a: b",
        "end broken x",
        "@+1ms",
        "label a",
        "# n",
        "unordered {",
        "}",
        "{{a}}",
        "\\x41",
        "\u{feff}",
        ">2~ text {}",
        "<$ l",
        "state 1",
        "{\"log\":{\"entries\":[",
        "]}}",
        "\"startedDateTime\":",
        "{",
        "}",
        ",",
        "null",
        "1e999",
        "session-1d6a8f75",
    ];

    fn broken() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => (0..PIECES.len()).prop_map(|index| PIECES[index].as_bytes().to_vec()),
            1 => vec(any::<u8>(), 0..4),
        ];
        vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    /// A golden file with an edit.
    fn edited() -> impl Strategy<Value = Vec<u8>> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../golden/covel-sse");
        let files: Vec<Vec<u8>> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| fs::read(entry.ok()?.path()).ok())
            .filter(|file| file.len() < 6000)
            .collect();
        (any::<Index>(), any::<Index>(), 0..30_usize, broken()).prop_map(
            move |(file, at, cut, put)| {
                let Some(file) = (!files.is_empty()).then(|| file.get(&files)) else {
                    return put;
                };
                let at = at.index(file.len().max(1)).min(file.len());
                let end = (at + cut).min(file.len());
                [&file[..at], &put, &file[end..]].concat()
            },
        )
    }

    fn holds(property: fn(&[u8]) -> Result<(), String>, bytes: &[u8]) -> Result<(), TestCaseError> {
        property(bytes).map_err(|broken| {
            TestCaseError::fail(format!("{broken}\n{}", String::from_utf8_lossy(bytes)))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn cursors(bytes in prop_oneof![broken(), "[a-z:0-9]{0,12}".prop_map(String::into_bytes)]) { holds(cursor, &bytes)?; }

        #[test]
        fn transcripts(bytes in prop_oneof![broken(), edited()]) { holds(transcript, &bytes)?; }

        #[test]
        fn har_files(bytes in broken()) { holds(har, &bytes)?; }
    }
}
