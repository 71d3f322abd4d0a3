//! What clap has to say, in one line: what is wrong, and the nearest name.

use clap::{
    CommandFactory as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{
    args::Args,
    console::Console,
    exit::{CONFORMANT, CliError},
};

/// Prints help and version; turns anything else into an error of one line.
///
/// # Errors
///
/// [`CliError::Usage`] for every real error.
pub(super) fn explain(error: &clap::Error, console: &Console) -> Result<u8, CliError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            console.print(&error.render().to_string())?;
            Ok(CONFORMANT)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let names: Vec<String> = Args::command()
                .get_subcommands()
                .map(|command| command.get_name().to_owned())
                .collect();
            Err(CliError::Usage(format!(
                "a command is missing: {}; see `turnwire --help`",
                names.join(", ")
            )))
        }
        _ => Err(CliError::Usage(one_line(error))),
    }
}

fn one_line(error: &clap::Error) -> String {
    let name = |kind| string(error, kind);
    let what = match error.kind() {
        ErrorKind::UnknownArgument => {
            let given = name(ContextKind::InvalidArg).unwrap_or_default();
            if given.starts_with('-') {
                format!("unknown flag {given}")
            } else {
                format!("unexpected {given:?}")
            }
        }
        ErrorKind::InvalidSubcommand => {
            format!(
                "unknown command {:?}",
                name(ContextKind::InvalidSubcommand).unwrap_or_default()
            )
        }
        _ => {
            let nearest = name(ContextKind::SuggestedValue)
                .map(|nearest| format!("; did you mean {nearest}?"));
            return first_paragraph(error) + nearest.as_deref().unwrap_or_default();
        }
    };
    let nearest = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand]
        .into_iter()
        .find_map(name);
    match nearest {
        Some(nearest) => format!("{what}; did you mean {nearest}?"),
        None => format!("{what}; see `{} --help`", command_line(error)),
    }
}

/// clap's own words up to the first empty line, as one line.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraph: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let paragraph = paragraph.join(" ");
    paragraph
        .strip_prefix("error: ")
        .unwrap_or(&paragraph)
        .to_owned()
}

fn string(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        // clap lists the likeliest last.
        ContextValue::Strings(texts) => texts.last().cloned(),
        _ => None,
    }
}

/// `turnwire server` of the usage line `Usage: turnwire server [OPTIONS]`.
fn command_line(error: &clap::Error) -> String {
    let usage = error
        .get(ContextKind::Usage)
        .map(ToString::to_string)
        .unwrap_or_default();
    let words = usage
        .split_whitespace()
        .skip_while(|word| *word != "turnwire");
    let words: Vec<&str> = words
        .take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
        .collect();
    if words.is_empty() {
        "turnwire".to_owned()
    } else {
        words.join(" ")
    }
}
