//! Examples: pieces of golden transcripts, as they stand there.

use std::path::Path;

use turnwire_spec::covel::Endpoint;

use crate::ChoreError;

/// Lines of one example, at most; what follows is left out, and said to be.
const LINES: usize = 24;
/// Characters of one line of an example, at most.
const CHARS: usize = 600;

/// All golden transcripts, by suite and name.
#[derive(Debug, Default)]
pub(super) struct Golden {
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    suite: String,
    name: String,
    lines: Vec<String>,
}

impl Golden {
    /// Reads every `*.twire` below a folder.
    ///
    /// # Errors
    ///
    /// [`ChoreError::File`] names what cannot be read.
    pub(super) fn read(folder: &Path) -> Result<Self, ChoreError> {
        let mut files = Vec::new();
        for suite in listed(folder)? {
            if !suite.is_dir() {
                continue;
            }
            for path in listed(&suite)? {
                let name = |path: &Path| {
                    let stem = path.file_stem().unwrap_or_default();
                    stem.to_string_lossy().into_owned()
                };
                let text = std::fs::read_to_string(&path).map_err(|error| fault(&path, &error))?;
                files.push(File {
                    suite: name(&suite),
                    name: name(&path),
                    lines: text.lines().map(str::to_owned).collect(),
                });
            }
        }
        Ok(Self { files })
    }

    /// A golden transcript of this text, for tests.
    #[cfg(test)]
    pub(super) fn of(suite: &str, name: &str, text: &str) -> Self {
        let file = File {
            suite: suite.to_owned(),
            name: name.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
        };
        Self { files: vec![file] }
    }

    /// The first frame of an event stream with this event.
    pub(super) fn event(&self, suite: &str, event: &str) -> String {
        self.shown(suite, |lines| {
            let at = lines.iter().position(|line| {
                said_by_server(line).is_some_and(|text| text == format!("event: {event}"))
            })?;
            let frame = lines[at..].iter();
            Some(
                frame
                    .take_while(|line| said_by_server(line) != Some(""))
                    .cloned()
                    .collect(),
            )
        })
    }

    /// The first message that holds this text.
    pub(super) fn message(&self, suite: &str, text: &str) -> String {
        self.shown(suite, |lines| {
            let mut found = lines.iter();
            let line = found.find(|line| line.starts_with(['<', '>']) && line.contains(text))?;
            Some(vec![line.clone()])
        })
    }

    /// The first request of an endpoint, with its answer. One that succeeds is preferred.
    pub(super) fn exchange(&self, suite: &str, row: &Endpoint) -> String {
        let asked = |line: &String| {
            let (number, rest) = line.strip_prefix('>')?.split_once(' ')?;
            let (method, target) = rest.split_once(' ')?;
            let path = target.split('?').next().unwrap_or_default();
            let is_own = number.bytes().all(|byte| byte.is_ascii_digit());
            let found = turnwire_spec::covel::endpoint(method, path);
            (is_own
                && found.is_some_and(|found| found.path == row.path && found.method == row.method))
            .then(|| number.to_owned())
        };
        let exchange = |lines: &[String], wants_success: bool| {
            let starts = lines.iter().enumerate();
            let mut found = starts.filter_map(|(at, line)| Some((at, asked(line)?)));
            found.find_map(|(at, number)| {
                let own = of_exchange(&lines[at..], &number);
                let status = own.iter().find_map(|line| {
                    let rest = line.strip_prefix('<')?.strip_prefix(number.as_str())?;
                    rest.trim().parse::<u16>().ok()
                })?;
                (!wants_success || status < 300).then_some(own)
            })
        };
        let good = self.shown(suite, |lines| exchange(lines, true));
        if good.is_empty() {
            self.shown(suite, |lines| exchange(lines, false))
        } else {
            good
        }
    }

    /// The first answer with this code.
    pub(super) fn code(&self, suite: &str, code: &str) -> String {
        self.message(suite, &format!("\"code\":\"{code}\""))
    }

    fn shown(&self, suite: &str, cut: impl Fn(&[String]) -> Option<Vec<String>>) -> String {
        let files = self.files.iter().filter(|file| file.suite == suite);
        let found = files.filter_map(|file| Some((file, cut(&file.lines)?)));
        found
            .min_by_key(|(_, lines)| lines.len())
            .map_or_else(String::new, |(file, lines)| {
                let mut text = String::from("```text\n");
                for line in lines.iter().take(LINES) {
                    let short: String = line.chars().take(CHARS).collect();
                    text.push_str(&short);
                    text.push_str(if short.len() < line.len() {
                        " ...\n"
                    } else {
                        "\n"
                    });
                }
                if lines.len() > LINES {
                    text.push_str("...\n");
                }
                format!("{text}```\n\nFrom `golden/{suite}/{}.twire`.\n", file.name)
            })
    }
}

/// The lines of one exchange: those with its number, from its request to its end.
fn of_exchange(lines: &[String], number: &str) -> Vec<String> {
    let is_own = |line: &&String| {
        let rest = line.strip_prefix(['<', '>']);
        rest.and_then(|rest| rest.strip_prefix(number))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
    };
    let first = lines.iter().take(1);
    let again = |line: &&String| {
        let after = line
            .strip_prefix('>')
            .and_then(|rest| rest.strip_prefix(number));
        let word = after.and_then(|rest| rest.trim_start().split(' ').next());
        let is_method =
            word.is_some_and(|word| ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&word));
        !is_method
    };
    let others = lines.iter().skip(1).take_while(again).filter(is_own);
    first.chain(others).cloned().collect()
}

/// What a server's line says; `None` for any other line.
fn said_by_server(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('<')?;
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest {
        "" => Some(""),
        rest => rest.strip_prefix(' '),
    }
}

fn listed(folder: &Path) -> Result<Vec<std::path::PathBuf>, ChoreError> {
    let entries = std::fs::read_dir(folder).map_err(|error| fault(folder, &error))?;
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.retain(|path| path.is_dir() || path.extension().is_some_and(|it| it == "twire"));
    paths.sort();
    Ok(paths)
}

fn fault(path: &Path, error: &std::io::Error) -> ChoreError {
    ChoreError::File {
        path: path.display().to_string(),
        why: error.to_string(),
    }
}
