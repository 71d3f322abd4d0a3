//! One requirement, explained: where it stands, how it is checked, what breaks it, how it last went.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    RequirementReport,
    layout::{Paint, paragraph},
};

/// What `turnwire explain` prints.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its suite.
    pub suite: String,
    /// Its area.
    pub area: String,
    /// `must`, `should` or `may`.
    pub level: String,
    /// Who has to behave so.
    pub binds: String,
    /// Where it can be seen.
    pub observe: String,
    /// What must hold.
    pub statement: String,
    /// Where it is stated: a range of lines of a seed document, or another source.
    pub source: String,
    /// Those lines, when the document is embedded.
    pub quote: Vec<QuotedLine>,
    /// How it is decided, in prose.
    pub check: String,
    /// The data of the generic check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Value>,
    /// The functions that judge it.
    pub functions: Vec<String>,
    /// The smallest fault that breaks it, in prose.
    pub sabotage: String,
    /// The data of the generic saboteur.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Value>,
    /// A coded saboteur breaks it.
    pub coded_saboteur: bool,
    /// Neighbours that its sabotage turns red as well.
    pub also: Vec<String>,
    /// The capability that a target must have for it to be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// Scenarios that may show it.
    pub scenarios: Vec<ExplainedScenario>,
    /// Why no black-box check of it can exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiver: Option<String>,
    /// The Rust test that covers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// Its last verdict on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastVerdict>,
    /// Whether the last `turnwire prove` on this machine proved it; absent when it never ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proven: Option<bool>,
}

/// A line of a seed document.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct QuotedLine {
    /// Its number, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
}

/// A scenario that may show a requirement.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct ExplainedScenario {
    /// Its name.
    pub name: String,
    /// What is done.
    pub about: String,
}

/// The last verdict on a requirement.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastVerdict {
    /// Name of the target.
    pub target: String,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// The verdict.
    pub verdict: RequirementReport,
}

/// Longest quote, in lines.
const QUOTED: usize = 60;

impl Explained {
    /// The explanation as text.
    pub fn render(&self, colour: bool) -> String {
        let paint = Paint(colour);
        let mut out = format!("{} {}\n", paint.strong(&self.id), self.title);
        let Self {
            suite,
            area,
            level,
            binds,
            observe,
            ..
        } = self;
        let _ = writeln!(
            out,
            "{level}, binds the {binds}, seen on {observe}; suite {suite}, area {area}"
        );
        out.push('\n');
        out.push_str(&paragraph(&self.statement, "  "));
        self.render_source(&mut out, paint);
        self.render_check(&mut out, paint);
        self.render_sabotage(&mut out, paint);
        self.render_last(&mut out, paint);
        out
    }

    fn render_source(&self, out: &mut String, paint: Paint) {
        heading(out, paint, &format!("Source: {}", self.source));
        for QuotedLine { line, text } in self.quote.iter().take(QUOTED) {
            for (index, part) in paragraph(text, "").lines().enumerate() {
                let number = if index == 0 {
                    line.to_string()
                } else {
                    String::new()
                };
                let bar = paint.faint(&format!("{number:>5} |"));
                let _ = writeln!(out, "  {bar} {part}");
            }
        }
        if let Some(more) = self
            .quote
            .len()
            .checked_sub(QUOTED)
            .filter(|more| *more > 0)
        {
            let _ = writeln!(out, "        … {more} lines more");
        }
    }

    fn render_check(&self, out: &mut String, paint: Paint) {
        heading(out, paint, "How it is checked");
        out.push_str(&paragraph(&self.check, "  "));
        if let Some(needs) = &self.needs {
            let _ = writeln!(out, "  needs the capability {needs}");
        }
        data(out, "rule", self.rule.as_ref());
        for function in &self.functions {
            let _ = writeln!(out, "  function {function}");
        }
        for ExplainedScenario { name, about } in &self.scenarios {
            let _ = writeln!(out, "  scenario {name}: {about}");
        }
        if let Some(waiver) = &self.waiver {
            out.push_str(&paragraph(waiver, "  waived: "));
        }
        if let Some(test) = &self.test {
            let _ = writeln!(out, "  covered by the Rust test {test}");
        }
        if self.rule.is_none() && self.functions.is_empty() && self.waiver.is_none() {
            out.push_str("  open: it has no check yet\n");
        }
    }

    fn render_sabotage(&self, out: &mut String, paint: Paint) {
        heading(out, paint, "What breaks it");
        out.push_str(&paragraph(&self.sabotage, "  "));
        data(out, "rewrite", self.rewrite.as_ref());
        if self.coded_saboteur {
            out.push_str(
                "  a saboteur with logic of its own does it, see conformance/src/saboteurs\n",
            );
        } else if self.rewrite.is_none() && self.waiver.is_none() {
            out.push_str("  open: it has no saboteur yet\n");
        }
        if !self.also.is_empty() {
            let _ = writeln!(out, "  also turns red: {}", self.also.join(" "));
        }
    }

    fn render_last(&self, out: &mut String, paint: Paint) {
        heading(out, paint, "Last verdict");
        match &self.last {
            None => out.push_str("  never run here; run `turnwire demo`\n"),
            Some(LastVerdict {
                target,
                started,
                verdict,
            }) => {
                let word = verdict.state.word();
                let word = if verdict.red {
                    paint.bad(word)
                } else {
                    word.to_owned()
                };
                let _ = writeln!(
                    out,
                    "  {word} on {target}, {started}, {} observations",
                    verdict.judged
                );
                if let Some(why) = &verdict.why {
                    out.push_str(&paragraph(why, "  "));
                }
                for evidence in &verdict.evidence {
                    let _ = writeln!(
                        out,
                        "  expected {}, got {}",
                        evidence.expected, evidence.got
                    );
                }
            }
        }
        match self.proven {
            None => out.push_str("  never proven here; run `turnwire prove`\n"),
            Some(true) => {
                out.push_str("  proven: green on a conformant peer, red on its saboteur\n")
            }
            Some(false) => out.push_str("  not proven by the last `turnwire prove`\n"),
        }
    }
}

fn heading(out: &mut String, paint: Paint, text: &str) {
    let _ = writeln!(out, "\n{}", paint.strong(text));
}

/// Data of the catalogue, as YAML.
fn data(out: &mut String, name: &str, value: Option<&Value>) {
    let Some(value) = value else { return };
    let yaml = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
    let _ = writeln!(out, "  {name}:");
    for line in yaml.lines().filter(|line| !line.trim().is_empty()) {
        let _ = writeln!(out, "    {line}");
    }
}
