//! `turnwire diff`: what differs between two transcripts in what they mean.

use std::path::Path;

use super::{json, schema};
use crate::{
    cli::{
        args::{DiffArgs, Format},
        console::Console,
        exit::{CONFORMANT, CliError, FAILED},
    },
    offline::file::template,
    report::difference,
    transcript::{
        diff::{self, Diff},
        text::Template,
    },
};

pub(in crate::cli) fn run(args: &DiffArgs, console: &Console) -> Result<u8, CliError> {
    if args.print.schema {
        return schema::<Diff>(console);
    }
    let (Some(left), Some(right)) = (&args.a, &args.b) else {
        return Err(CliError::Usage("two files are compared".to_owned()));
    };
    let diff = diff::templates(&read(left)?, &read(right)?);
    let text = match args.print.format {
        Format::Human => {
            let name = |path: &Path| path.display().to_string();
            difference::render(&diff, &name(left), &name(right), console.colour)
        }
        Format::Json => json(&diff)?,
    };
    console.print(&text)?;
    Ok(if diff.same { CONFORMANT } else { FAILED })
}

fn read(path: &Path) -> Result<Template, CliError> {
    template(path).map_err(|error| CliError::Usage(error.to_string()))
}
