//! `turnwire check`: checks recorded traffic, offline.

use std::{collections::BTreeSet, iter, path::PathBuf};

use turnwire_spec::catalogue;

use super::{run::quoted, schema, server::bind_servers};
use crate::{
    cli::{
        args::{CheckArgs, SelectArgs},
        commands::run::ReportFiles,
        console::Console,
        exit::CliError,
        select,
    },
    offline::{Checked, Source, check, detect, file::expanded, load},
    profile::Profile,
    report::Report,
};

pub(in crate::cli) fn run(args: CheckArgs, console: &Console) -> Result<u8, CliError> {
    if args.report.print.schema {
        return schema::<Report>(console);
    }
    let files = ReportFiles::prepare(&args.report)?;
    let required = select::named(&args.require)?;
    let profile = profile(&args)?;
    let sources: Vec<Source> = expanded(&args.files)
        .map_err(|error| CliError::Usage(error.to_string()))?
        .iter()
        .map(|path| load(path).map_err(|error| CliError::Usage(error.to_string())))
        .map(|source| source.map(|source| scaled(source, args.time_scale)))
        .collect::<Result<_, _>>()?;
    let name = suite_name(&args.select, &sources)?;
    let select = SelectArgs {
        suite: Some(name.to_owned()),
        ..args.select.clone()
    };
    let selected = select::for_run(&select, &[])?;
    let mut requirements = selected.entries;
    bind_servers(&mut requirements, selected.suite, &args.select);
    let asked = Checked {
        suite: selected.suite,
        requirements,
        required,
        profile: &profile,
        rerun: rerun(&args),
        revision: args.select.revision.clone(),
        strict: args.report.strict,
    };
    let names = stems(&sources);
    let transcripts: Vec<_> = sources
        .iter()
        .zip(names)
        .map(|(source, name)| {
            let mut transcript = source.transcript.clone();
            transcript.header.scenario = name;
            transcript
        })
        .collect();
    let report = check(&asked, sources);
    files.deliver(&report, &transcripts, console)
}

/// The files' names without folder and extension, under which `--transcripts` writes them. Files of the same name are
/// numbered.
fn stems(sources: &[Source]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let stem = |source: &Source| {
        let stem = PathBuf::from(&source.name);
        let stem = stem
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        stem.unwrap_or_default()
    };
    sources
        .iter()
        .map(stem)
        .map(|stem| {
            let numbered = (2..).map(|number| format!("{stem}-{number}"));
            let mut names = iter::once(stem.clone()).chain(numbered);
            let name = names.find(|name| taken.insert(name.clone()));
            name.unwrap_or_default()
        })
        .collect()
}

fn profile(args: &CheckArgs) -> Result<Profile, CliError> {
    let loaded = args.profile.as_deref().map(Profile::load).transpose();
    let loaded = loaded.map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(loaded.unwrap_or_else(|| Profile {
        name: "whoever was recorded".to_owned(),
        ..Profile::reference()
    }))
}

fn scaled(mut source: Source, scale: Option<f64>) -> Source {
    if let Some(scale) = scale {
        source.transcript.header.time_scale = scale;
    }
    source
}

/// The suite that was asked for, or the one of the files.
fn suite_name(select: &SelectArgs, sources: &[Source]) -> Result<&'static str, CliError> {
    if let Some(name) = &select.suite {
        let known = catalogue::Suite::ALL.iter().map(|suite| suite.name());
        if let Some(name) = known.into_iter().find(|known| known == name) {
            return Ok(name);
        }
        // Says which name is nearest.
        select::entries(select)?;
    }
    let mut found: Option<(&Source, catalogue::Suite)> = None;
    for source in sources {
        let suite = detect(&source.transcript).ok_or_else(|| {
            CliError::Usage(format!(
                "{}: no exchange belongs to a protocol that is known; name the suite with --suite",
                source.name
            ))
        })?;
        match found {
            None => found = Some((source, suite)),
            Some((first, other)) if other != suite => {
                return Err(CliError::Usage(format!(
                    "{} is {other} and {} is {suite}; one suite is checked at a time, see --suite",
                    first.name, source.name
                )));
            }
            Some(_) => {}
        }
    }
    found
        .map(|(_, suite)| suite.name())
        .ok_or_else(|| CliError::Usage("no file is named".to_owned()))
}

/// The command line that judges one requirement again.
fn rerun(args: &CheckArgs) -> String {
    let mut words = vec!["turnwire check --requirement {id}".to_owned()];
    let suite = args.select.suite.iter();
    words.extend(suite.map(|suite| format!("--suite {}", quoted(suite))));
    let scale = args.time_scale.iter();
    words.extend(scale.map(|scale| format!("--time-scale {scale}")));
    let profile = args.profile.iter();
    words.extend(profile.map(|path| format!("--profile {}", quoted(&path.display().to_string()))));
    let files = args.files.iter();
    words.extend(files.map(|path| quoted(&path.display().to_string())));
    words.join(" ")
}
