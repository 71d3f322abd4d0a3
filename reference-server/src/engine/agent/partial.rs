//! Reads JSON that is still being written, as far as [`segments`](super::segments) needs it.
//!
//! Positions are bytes. Everything is read from the beginning of what is given; callers drop what is done with.

/// A segment as far as it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Partial {
    /// Its text, up to the last whole character.
    pub(super) text: String,
    /// Its kind, once that is whole.
    pub(super) kind: Option<String>,
    /// Its speaker, once that is whole.
    pub(super) speaker: Option<String>,
    /// Where it ends, once it is whole.
    pub(super) end: Option<usize>,
}

/// Where the list that is the member `name` of the object begins, behind its bracket, once it has.
pub(super) fn list_of(json: &str, name: &str) -> Option<usize> {
    let mut at = skip_space(json, 0);
    at = behind(json, at, '{')?;
    loop {
        at = skip_space(json, at);
        let (key, end) = string(json, at)?;
        at = skip_space(json, end?);
        at = skip_space(json, behind(json, at, ':')?);
        if key == name {
            return behind(json, at, '[');
        }
        at = skip_space(json, value(json, at)?);
        at = behind(json, at, ',')?;
    }
}

/// The next object of a list, from the first place behind the last one. None when the list has ended, or none has begun.
pub(super) fn object(json: &str) -> Option<Partial> {
    let mut at = skip_space(json, 0);
    at = skip_space(json, behind(json, at, ',').unwrap_or(at));
    at = behind(json, at, '{')?;
    let mut found = Partial::default();
    found.end = members(json, at, &mut found);
    Some(found)
}

/// Reads members up to the end of their object; none when it has not come.
fn members(json: &str, mut at: usize, found: &mut Partial) -> Option<usize> {
    loop {
        at = skip_space(json, at);
        if let Some(end) = behind(json, at, '}') {
            return Some(end);
        }
        at = skip_space(json, behind(json, at, ',').unwrap_or(at));
        let (key, end) = string(json, at)?;
        at = skip_space(json, end?);
        at = skip_space(json, behind(json, at, ':')?);
        if let Some((text, end)) = string(json, at) {
            match key.as_str() {
                "text" => found.text = text,
                "kind" if end.is_some() => found.kind = Some(text),
                "speaker" if end.is_some() => found.speaker = Some(text),
                _ => {}
            }
            at = end?;
        } else {
            at = value(json, at)?;
        }
    }
}

fn skip_space(json: &str, at: usize) -> usize {
    let rest = json.get(at..).unwrap_or_default();
    json.len() - rest.trim_start().len()
}

/// The place behind this character, when it stands here.
fn behind(json: &str, at: usize, wanted: char) -> Option<usize> {
    json.get(at..)?
        .starts_with(wanted)
        .then(|| at + wanted.len_utf8())
}

/// A string as far as it is written, and where it ends, once it has; none when no string begins here.
fn string(json: &str, at: usize) -> Option<(String, Option<usize>)> {
    let start = behind(json, at, '"')?;
    let mut text = String::new();
    let mut at = start;
    loop {
        let Some(letter) = json.get(at..)?.chars().next() else {
            return Some((text, None));
        };
        match letter {
            '"' => return Some((text, Some(at + 1))),
            '\\' => match escape(json, at) {
                None => return Some((text, None)),
                Some((letter, end)) => {
                    text.push(letter);
                    at = end;
                }
            },
            _ => {
                text.push(letter);
                at += letter.len_utf8();
            }
        }
    }
}

/// The character of an escape, and where it ends; none when it is not whole.
fn escape(json: &str, at: usize) -> Option<(char, usize)> {
    let letter = json.get(at + 1..)?.chars().next()?;
    let plain = match letter {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return unicode(json, at),
        other => other,
    };
    Some((plain, at + 1 + letter.len_utf8()))
}

/// `\uXXXX`, or two of them for one character beyond the first plane.
fn unicode(json: &str, at: usize) -> Option<(char, usize)> {
    let unit = |at: usize| u16::from_str_radix(json.get(at + 2..at + 6)?, 16).ok();
    let first = unit(at)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((
            char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
            at + 6,
        ));
    }
    // The second half may be still to come.
    json.get(at + 6..at + 12)?;
    let pair = [first, unit(at + 6).unwrap_or_default()];
    let letter = char::decode_utf16(pair).next().and_then(Result::ok);
    Some(
        letter.map_or((char::REPLACEMENT_CHARACTER, at + 6), |letter| {
            (letter, at + 12)
        }),
    )
}

/// Where any value ends, once it has.
fn value(json: &str, mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        let letter = json.get(at..)?.chars().next()?;
        match letter {
            '"' => {
                at = string(json, at)?.1?;
                if depth == 0 {
                    return Some(at);
                }
                continue;
            }
            '{' | '[' => depth += 1,
            '}' | ']' if depth <= 1 => return Some(if depth == 0 { at } else { at + 1 }),
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => return Some(at),
            _ => {}
        }
        at += letter.len_utf8();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_as_far_as_it_is_written() {
        let whole = r#" , {"n": 1, "kind": "a", "text": "b\nc", "x": {"y": "}"}} , {"#;
        let found = object(whole).unwrap();

        assert_eq!(found.text, "b\nc");
        assert_eq!(found.end, Some(whole.len() - " , {".len()));
        for end in 0..whole.len() {
            if let Some(part) = object(&whole[..end]) {
                assert!(found.text.starts_with(&part.text), "{end}");
            }
        }
        assert_eq!(object("]"), None);
    }

    #[test]
    fn a_list_is_found_behind_other_members() {
        let json = r#"{"a": "segments", "b": [{"segments": []}], "segments": [1"#;
        assert_eq!(list_of(json, "segments"), Some(json.len() - 1));
        assert_eq!(list_of(&json[..40], "segments"), None);
    }
}
