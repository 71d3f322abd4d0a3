//! A report as text: failures first, each with what to do about it, then counts.

use std::{fmt::Write as _, time::Duration};

use super::{
    EvidenceReport, Outcome, Report, RequirementReport, State, Totals,
    layout::{Align, Paint, paragraph, table},
};

/// The whole report.
pub fn render(report: &Report, colour: bool) -> String {
    let paint = Paint(colour);
    let mut out = String::new();
    for requirement in report
        .requirements
        .iter()
        .filter(|requirement| requirement.red)
    {
        out.push_str(&failure(report, requirement, paint));
        out.push('\n');
    }
    out.push_str(&troubles(report, paint));
    out.push_str(&files(report, paint));
    out.push_str(&unseen(report, paint));
    out.push_str(&areas(report));
    out.push('\n');
    out.push_str(&summary(report, paint));
    out
}

fn failure(report: &Report, requirement: &RequirementReport, paint: Paint) -> String {
    let RequirementReport {
        id, title, state, ..
    } = requirement;
    let (word, shown) = match state {
        State::Fail => ("FAIL", ""),
        State::Pass => ("STALE", " (passes, but is expected to fail)"),
        _ => ("UNSEEN", " (not exercised, but has to be)"),
    };
    let mut out = format!("{} {} {title}{shown}\n", paint.bad(word), paint.strong(id));
    out.push_str(&paragraph(&requirement.statement, "  "));
    if let Some(why) = &requirement.why {
        out.push_str(&paragraph(why, "  why       "));
    }
    for evidence in &requirement.evidence {
        out.push_str(&shown_evidence(evidence, paint));
    }
    let _ = writeln!(out, "  rerun     {}", report.rerun(id));
    let _ = writeln!(out, "  explain   turnwire explain {id}");
    out
}

fn shown_evidence(evidence: &EvidenceReport, paint: Paint) -> String {
    let mut out = String::new();
    for (name, text) in [
        ("expected", &evidence.expected),
        ("got     ", &evidence.got),
    ] {
        for (index, line) in text.lines().enumerate() {
            let name = if index == 0 { name } else { "        " };
            let _ = writeln!(out, "  {name}  {line}");
        }
    }
    let _ = writeln!(out, "  where     {}", place(evidence));
    for line in &evidence.wire {
        let _ = writeln!(out, "  {}", paint.faint(&format!("  | {line}")).trim_end());
    }
    out
}

fn place(evidence: &EvidenceReport) -> String {
    let mut parts = Vec::new();
    if !evidence.scenario.is_empty() {
        parts.push(format!("scenario {}", evidence.scenario));
    }
    parts.extend(
        evidence
            .exchange
            .map(|exchange| format!("exchange {exchange}")),
    );
    parts.extend(evidence.frame.map(|frame| format!("frame {frame}")));
    parts.extend(
        evidence
            .at_micros
            .map(|at| format!("at {:?}", Duration::from_micros(at))),
    );
    parts.extend(evidence.request.clone());
    if parts.is_empty() {
        "the whole run".to_owned()
    } else {
        parts.join(", ")
    }
}

/// What went wrong on our side or kept a scenario from its end.
fn troubles(report: &Report, paint: Paint) -> String {
    let mut out = String::new();
    for error in &report.harness_errors {
        let _ = writeln!(out, "{} {error}", paint.bad("ERROR"));
    }
    for scenario in report
        .scenarios
        .iter()
        .filter(|scenario| !scenario.left_out)
    {
        if let Some(why) = &scenario.stopped {
            let _ = writeln!(
                out,
                "{} scenario {} stopped: {why}",
                paint.doubtful("NOTE"),
                scenario.name
            );
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// The files that were judged, with what they lack.
fn files(report: &Report, paint: Paint) -> String {
    let mut out = String::new();
    for file in &report.files {
        let scenario = match file.scenario.as_str() {
            "" => String::new(),
            name => format!(", scenario {name}"),
        };
        let left_out = match file.left_out {
            0 => String::new(),
            count => format!(", {count} of other protocols left out"),
        };
        let _ = writeln!(
            out,
            "{} {}{scenario}: {} exchanges{left_out}",
            paint.strong("file"),
            file.name,
            file.exchanges
        );
        for note in file.notes.iter().filter(|note| note.starts_with("lost: ")) {
            out.push_str(&paragraph(note, "  "));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// What was not exercised, by reason. Of files only how many: a capture shows what it shows.
fn unseen(report: &Report, paint: Paint) -> String {
    let unseen = report
        .requirements
        .iter()
        .filter(|requirement| requirement.state == State::NotExercised);
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for requirement in unseen {
        let why = requirement
            .why
            .as_deref()
            .unwrap_or("nothing in the run could show it");
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, ids)) => ids.push(&requirement.id),
            None => reasons.push((why, vec![&requirement.id])),
        }
    }
    let mut out = String::new();
    for (why, ids) in reasons {
        let _ = writeln!(
            out,
            "{} ({}): {why}",
            paint.doubtful("not exercised"),
            ids.len()
        );
        if report.files.is_empty() {
            out.push_str(&paragraph(&ids.join(" "), "  "));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

const COLUMNS: [Align; 8] = [
    Align::Left,
    Align::Left,
    Align::Right,
    Align::Right,
    Align::Right,
    Align::Right,
    Align::Right,
    Align::Right,
];

fn areas(report: &Report) -> String {
    let heading = [
        "area",
        "ids",
        "pass",
        "fail",
        "not exercised",
        "not applicable",
        "waived",
        "open",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(
        report
            .areas
            .iter()
            .map(|area| row(&area.name, &area.prefix, &area.totals)),
    );
    if report.areas.len() > 1 {
        rows.push(row("all", "", &report.totals));
    }
    table(&COLUMNS, &rows)
}

fn row(name: &str, prefix: &str, totals: &Totals) -> Vec<String> {
    let Totals {
        pass,
        fail,
        not_exercised,
        not_applicable,
        waived,
        open,
        ..
    } = *totals;
    let counts = [pass, fail, not_exercised, not_applicable, waived, open];
    let counts = counts.map(|count| {
        if count == 0 {
            "-".to_owned()
        } else {
            count.to_string()
        }
    });
    [name.to_owned(), prefix.to_owned()]
        .into_iter()
        .chain(counts)
        .collect()
}

fn summary(report: &Report, paint: Paint) -> String {
    let red = report
        .requirements
        .iter()
        .filter(|requirement| requirement.red)
        .count();
    let outcome = match report.outcome {
        Outcome::Conformant => paint.good("conformant"),
        Outcome::NotConformant => paint.bad(&format!("not conformant, {red} red")),
        Outcome::NothingExercised if !report.files.is_empty() => {
            paint.bad("nothing exercised, the files show no requirement")
        }
        Outcome::NothingExercised => {
            paint.bad("nothing exercised, which says nothing about the target")
        }
        Outcome::Unknown => paint.bad("unknown, not everything could be played"),
        Outcome::Interrupted => paint.bad("interrupted, not everything was played"),
    };
    if !report.files.is_empty() {
        return format!(
            "{} in {} files: {outcome}; {} of {} requirements passed\n",
            report.suite,
            report.files.len(),
            report.totals.pass,
            report.totals.requirements
        );
    }
    let ran = report
        .scenarios
        .iter()
        .filter(|scenario| !scenario.left_out)
        .count();
    format!(
        "{} on {}: {outcome}; {} of {} requirements passed in {ran} scenarios, {:.1} s\n",
        report.suite, report.target, report.totals.pass, report.totals.requirements, report.seconds
    )
}
