//! `turnwire replay`: plays a transcript to a client or to a server.

use std::time::Duration;

use super::{json, schema};
use crate::{
    cli::{
        args::{Format, ReplayArgs},
        console::{self, Console, Signals},
        exit::{CONFORMANT, CliError, FAILED},
    },
    drivers::http::BaseUrl,
    offline::file::template,
    replay::{
        client::{self, Options},
        server::{ReplayOptions, ReplayReport, ReplayServer},
    },
    report::difference,
    transcript::{diff::Diff, text},
};

pub(in crate::cli) fn run(args: ReplayArgs, console: &Console) -> Result<u8, CliError> {
    if args.print.schema {
        return if args.to_client {
            schema::<ReplayReport>(console)
        } else {
            schema::<Diff>(console)
        };
    }
    match &args.to_server {
        Some(url) => to_server(&args, url, console),
        None => to_client(&args, console),
    }
}

/// The file that is played.
fn file(args: &ReplayArgs) -> Result<text::Template, CliError> {
    let path = args
        .file
        .as_deref()
        .ok_or_else(|| CliError::Usage("no file is named".to_owned()))?;
    template(path).map_err(|error| CliError::Usage(error.to_string()))
}

fn to_client(args: &ReplayArgs, console: &Console) -> Result<u8, CliError> {
    let transcript = file(args)?
        .lower()
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let options = ReplayOptions {
        listen: args.listen,
        timing: args.timing,
        strict: !args.lenient,
    };
    let report = console::runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        let server = ReplayServer::start(&transcript, options)
            .await
            .map_err(|error| {
                CliError::Usage(format!("cannot listen on {}: {error}", args.listen))
            })?;
        console.print(&server.url())?;
        console.note(&format!(
            "{} exchanges; Ctrl-C ends it",
            server.report().exchanges
        ));
        if args.once {
            tokio::select! {
                () = server.finished() => {}
                heard = signals.next() => heard?,
            }
        } else {
            signals.next().await?;
        }
        Ok::<_, CliError>(server.report())
    })?;
    match args.print.format {
        Format::Json => console.print(&json(&report)?)?,
        Format::Human => {
            console.note(&format!(
                "{} of {} exchanges were asked for",
                report.served, report.exchanges
            ));
            for line in &report.missing {
                console.note(&format!("not asked for: {line}"));
            }
            for line in &report.unexpected {
                console.note(&format!("unexpected: {line}"));
            }
        }
    }
    let complete = report.complete() || (args.lenient && report.unexpected.is_empty());
    Ok(if complete { CONFORMANT } else { FAILED })
}

fn to_server(args: &ReplayArgs, url: &str, console: &Console) -> Result<u8, CliError> {
    let template = file(args)?;
    let upstream = BaseUrl::parse(url).map_err(|error| CliError::Usage(error.to_string()))?;
    let options = Options {
        upstream,
        timing: args.timing,
        patience: Duration::from_secs_f64(args.patience),
        given: given(&args.set)?,
    };
    let answered = console::block_on(async {
        client::play(&template, &options)
            .await
            .map_err(|error| CliError::Usage(error.to_string()))
    })?;
    for remark in &answered.remarks {
        console.note(remark);
    }
    if let Some(out) = &args.out {
        let written = text::write(&answered.transcript);
        std::fs::write(out, written).map_err(|error| CliError::file("write", out, &error))?;
    }
    let name = args.file.as_deref().map(|path| path.display().to_string());
    let text = match args.print.format {
        Format::Human => difference::render(
            &answered.diff,
            &name.unwrap_or_default(),
            url,
            console.colour,
        ),
        Format::Json => json(&answered.diff)?,
    };
    console.print(&text)?;
    Ok(if answered.diff.same {
        CONFORMANT
    } else {
        FAILED
    })
}

/// `NAME=VALUE` pairs.
fn given(texts: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            CliError::Usage(format!(
                "--set {text:?}: expected NAME=VALUE, such as secret-1=abc"
            ))
        })?;
        Ok((name.to_owned(), value.to_owned()))
    };
    texts.iter().map(pair).collect()
}
