//! Why a text is no script, for people who write scripts: with the place, in the words of the manual, and without the
//! names of the library that reads.

/// Why a text is no script.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("script{}: {message}", self.place())]
pub struct ScriptError {
    /// From 1; 0 when the place is not known.
    pub line: u64,
    /// From 1; 0 when the place is not known.
    pub column: u64,
    /// What was expected.
    pub message: String,
}

impl ScriptError {
    /// What is wrong with a script as a whole.
    pub(super) fn of_all(message: &str) -> Self {
        Self {
            line: 0,
            column: 0,
            message: message.to_owned(),
        }
    }

    fn place(&self) -> String {
        match self.line {
            0 => String::new(),
            line => format!(", line {line}, column {}", self.column),
        }
    }
}

/// What to do about a YAML script that is too large.
const TOO_LARGE: &str = "a script in YAML has 250000 nodes at most (texts, numbers, lists and maps): \
                         write it in JSON, which has no such limit, or load several scripts";

/// What is wrong, without the place, which is told apart.
fn without_place(message: &str) -> &str {
    message
        .rsplit_once(" at line ")
        .map_or(message, |(told, _)| told)
}

/// What the YAML reader says to programmers, for people who write scripts.
fn in_our_words(message: &str) -> String {
    match message {
        "expected mapping start" => "expected a map, such as `name: value`".to_owned(),
        "expected sequence start" => {
            "expected a list: lines that begin with `-`, or `[one, two]`".to_owned()
        }
        _ if message.starts_with("multiple YAML documents") => {
            "a script is one YAML document, without `---` between parts: put each into a file of its own"
                .to_owned()
        }
        _ => match message.split_once(", set DuplicateKeyPolicy") {
            Some((told, _)) => told.to_owned(),
            None => message.to_owned(),
        },
    }
}

impl ScriptError {
    pub(super) fn of_json(error: &serde_json::Error) -> Self {
        Self {
            line: error.line() as u64,
            column: error.column() as u64,
            message: without_place(&error.to_string()).to_owned(),
        }
    }

    pub(super) fn of_yaml(error: serde_saphyr::Error) -> Self {
        let plain = error.without_snippet();
        let place = plain.location();
        let mut message = in_our_words(without_place(&plain.to_string()));
        if let serde_saphyr::Error::Budget { .. } = plain {
            message = format!("{message}; {TOO_LARGE}");
        }
        Self {
            line: place.map_or(0, |place| place.line()),
            column: place.map_or(0, |place| place.column()),
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::script::Script;

    #[track_caller]
    fn refused(text: &str) -> String {
        Script::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_shape_is_told_in_words_of_the_manual() {
        assert_eq!(
            refused("rules:\n  - reply: hello"),
            "script, line 2, column 5: invalid type: string \"hello\", expected a reply, such as \
             `{text: Hello.}`"
        );
        assert_eq!(
            refused("rules:\n  - reply: {calls: [get_weather]}"),
            "script, line 2, column 21: expected a map, such as `name: value`"
        );
        assert_eq!(
            refused("rules:\n  - reply: {text: a, faults: {stalls: {never: true}}}"),
            "script, line 2, column 39: expected a list: lines that begin with `-`, or `[one, two]`"
        );
        assert_eq!(
            refused("{\"rules\": [{\"reply\": 1}]}"),
            "script, line 1, column 22: invalid type: integer `1`, expected a reply, such as \
             `{text: Hello.}`"
        );
    }

    #[test]
    fn an_error_names_nothing_of_the_library_that_reads() {
        assert_eq!(
            refused("rules: []\n---\nrules: []"),
            "script, line 3, column 1: a script is one YAML document, without `---` between \
             parts: put each into a file of its own"
        );
        assert_eq!(
            refused("rules:\n  - name: x\n    name: y"),
            "script, line 3, column 5: duplicate mapping key: name"
        );
        assert_eq!(
            refused("{\"rules\": [1]}"),
            "script, line 1, column 12: invalid type: integer `1`, expected a rule, with `when` \
             and `reply`"
        );
        assert_eq!(
            refused("{\"rules\": [],}"),
            "script, line 1, column 14: trailing comma"
        );
    }

    #[test]
    fn a_script_that_says_nothing_is_refused() {
        for text in ["", "\n", "# later", "{}"] {
            let told = refused(text);
            assert!(told.contains("a script has `rules`"), "{text:?}: {told}");
        }
        assert!(Script::parse("name: no rules yet").is_ok());
    }

    #[test]
    fn yaml_in_one_line_is_yaml() {
        let script = Script::parse("{rules: [{when: {last_user: hi}, reply: {text: Hello.}}]}");
        assert_eq!(
            script.unwrap(),
            Script::parse("rules: [{when: {last_user: hi}, reply: {text: Hello.}}]").unwrap()
        );
        assert!(Script::parse("{ \"rules\": [] , \"name\": \"json\"}").is_ok());
    }
}
