//! `turnwire mock`: the mock model providers, until they are told to stop.

use std::path::Path;

use turnwire_mock::{MockConfig, Script, ServeOptions, Unmatched};

use crate::cli::{
    args::MockArgs,
    console::{self, Console, Signals},
    exit::{CONFORMANT, CliError},
};

pub(in crate::cli) fn run(args: MockArgs, console: &Console) -> Result<u8, CliError> {
    let scripts: Vec<Script> = args
        .scripts
        .iter()
        .map(|path| script(path))
        .collect::<Result<_, _>>()?;
    let unmatched = args.reply.map_or(Unmatched::Strict, Unmatched::text);
    let config = MockConfig {
        seed: args.seed,
        unmatched,
        ..MockConfig::default()
    };
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
        console.note("mock model providers; Ctrl-C stops them");
        signals.next().await?;
        mock.shutdown().await;
        Ok(CONFORMANT)
    })
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
        let words: Vec<&str> = error
            .message
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        CliError::Usage(format!(
            "{}:{}:{}: {}",
            path.display(),
            error.line,
            error.column,
            words.join(" ")
        ))
    })
}
