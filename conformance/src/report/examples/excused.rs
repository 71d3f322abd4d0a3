//! What has no golden example, and why there cannot be one.
//!
//! `golden/not-shown.txt` is made of paragraphs. The first line of one names a suite and says why, after a colon; each
//! line below it, two spaces in, names a kind and a name, as `coverage` prints them. Lines that begin with `#` are
//! remarks.
//!
//! ```text
//! covel-sse: the reference server has no worlds
//!   rejection 404 world_not_found
//! ```
//!
//! An excuse for what has an example, or for what no table knows, is a fault: the tests of the golden files say so.

use super::{Example, known::KINDS};

/// The table as it was when the program was built.
const TABLE: &str = include_str!("../../../../golden/not-shown.txt");

/// Why something has no golden example.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Excuse {
    /// The suite.
    pub suite: String,
    /// What has none.
    pub example: Example,
    /// Why.
    pub why: String,
}

/// All excuses, in the order of the table.
pub fn excuses() -> Vec<Excuse> {
    read(TABLE).unwrap_or_default()
}

/// Reads a table.
///
/// # Errors
///
/// The first line that is neither the head of a paragraph nor an example, with its number.
fn read(text: &str) -> Result<Vec<Excuse>, String> {
    let mut excuses = Vec::new();
    let mut head: Option<(&str, &str)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let fault = || format!("line {number}: {line:?}");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(named) = line.strip_prefix("  ") else {
            head = Some(line.split_once(": ").ok_or_else(fault)?);
            continue;
        };
        let (suite, why) = head.ok_or_else(fault)?;
        excuses.push(Excuse {
            suite: suite.to_owned(),
            example: example(named).ok_or_else(fault)?,
            why: why.to_owned(),
        });
    }
    Ok(excuses)
}

/// Kind and name of what `coverage` calls `KIND NAME`; kinds have spaces, so they are looked up.
pub(super) fn example(text: &str) -> Option<Example> {
    let of_kind = |kind: &&str| {
        let name = text.strip_prefix(*kind)?.strip_prefix(' ')?;
        (!name.is_empty()).then(|| ((*kind).to_owned(), name.to_owned()))
    };
    KINDS.iter().find_map(of_kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read() {
        let excuses = read(TABLE).unwrap();
        assert!(excuses.iter().all(|excuse| excuse.why.len() > 10));
        assert!(!excuses.is_empty());
    }

    #[test]
    fn an_example_belongs_to_the_head_above_it() {
        let excuses = read("# remark\nchat-ws: too long\n  close 1009\n\nsse: other\n").unwrap();
        let expected = Excuse {
            suite: "chat-ws".to_owned(),
            example: ("close".to_owned(), "1009".to_owned()),
            why: "too long".to_owned(),
        };
        assert_eq!(excuses, [expected]);
    }

    #[test]
    fn a_line_that_is_neither_is_named() {
        for (text, number) in [
            ("no head\n", 1),
            ("  close 1009\n", 1),
            ("chat-ws: too long\n  nonsense 1009\n", 2),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(&format!("line {number}:")), "{error}");
        }
    }
}
