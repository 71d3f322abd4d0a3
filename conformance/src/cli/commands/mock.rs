//! `turnwire mock`: the mock model providers, until they are told to stop.
//!
//! - `record`: a proxy that records a real service into a script.

mod record;

use std::path::Path;

use turnwire_mock::{MockConfig, MockServer, Script, ServeOptions, Unmatched, Verify};

use crate::{
    cli::{
        args::{MockArgs, MockCommand, VerifyArg},
        console::{self, Console, Signals},
        exit::{CONFORMANT, CliError},
    },
    drivers::target::mock::script as demo,
};

/// What the demonstration says to what it has no rule for.
const DEMO_SAYS: &str =
    "Hello! This is the demonstration of turnwire mock: a script decides what is answered.";

pub(in crate::cli) fn run(args: MockArgs, console: &Console) -> Result<u8, CliError> {
    if let Some(MockCommand::Record(args)) = args.command {
        return record::run(args, console);
    }
    let mut scripts: Vec<Script> = args
        .scripts
        .iter()
        .map(|path| script(path))
        .collect::<Result<_, _>>()?;
    let demonstrates = args.demo || (scripts.is_empty() && args.reply.is_none());
    if demonstrates {
        scripts.push(demo());
    }
    let config = config(&args, demonstrates);
    console::log();
    let options = ServeOptions {
        listen: (args.listen.host, args.listen.port).into(),
        config,
    };
    console::runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        let mock = turnwire_mock::serve(options)
            .await
            .map_err(|error| CliError::Harness(error.to_string()))?;
        for script in scripts {
            mock.load(script);
        }
        console.print(&mock.base_url())?;
        if demonstrates {
            console.note("a demonstration, which says little; see --script and --reply");
        }
        console.note("mock model providers; Ctrl-C stops them");
        signals.next().await?;
        stop(mock, &mut signals, console).await?;
        Ok(CONFORMANT)
    })
}

fn config(args: &MockArgs, demonstrates: bool) -> MockConfig {
    let usual = MockConfig::default();
    let unmatched = match &args.reply {
        Some(text) => Unmatched::text(text),
        // Beside scripts of one's own, what no rule takes is a mistake that wants to be seen.
        None if demonstrates && args.scripts.is_empty() => Unmatched::text(DEMO_SAYS),
        None => Unmatched::Strict,
    };
    MockConfig {
        seed: args.seed,
        unmatched,
        keys: args.keys.clone(),
        verify: match args.verify {
            VerifyArg::Strict => Verify::Refuse,
            VerifyArg::Note => Verify::Note,
            VerifyArg::Off => Verify::Off,
        },
        models: if args.models.is_empty() {
            usual.models
        } else {
            args.models.clone()
        },
        ..usual
    }
}

/// Lets running replies finish for a few seconds, or until it is told to stop once more.
async fn stop(mock: MockServer, signals: &mut Signals, console: &Console) -> Result<(), CliError> {
    let running = mock
        .journal()
        .iter()
        .any(|entry| entry.outcome == turnwire_mock::Outcome::Running);
    if running {
        console.note("replies are still running; Ctrl-C ends them at once");
    }
    tokio::select! {
        () = mock.shutdown() => Ok(()),
        heard = signals.next() => {
            console.note("ended at once");
            heard
        }
    }
}

/// Reads a script.
///
/// # Errors
///
/// [`CliError::Usage`] when there is no such file, or with the place of what is wrong in it.
pub(super) fn script(path: &Path) -> Result<Script, CliError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| CliError::file("read", path, &error))?;
    Script::parse(&text).map_err(|error| {
        let place = match error.line {
            0 => String::new(),
            line => format!(":{line}:{}", error.column),
        };
        CliError::Usage(format!("{}{place}: {}", path.display(), error.message))
    })
}
