//! The server that the options name, as a profile.

use std::path::Path;

use turnwire_spec::catalogue::Suite as SuiteId;

use crate::{
    cli::{args::TargetArgs, exit::CliError},
    drivers::{http::BaseUrl, target::url::UrlTarget},
    profile::{FILE_NAME, Profile, Target},
    suites::Suite,
};

/// Whether the options name a target at all.
pub(super) const fn is_named(args: &TargetArgs) -> bool {
    args.url.is_some() || args.profile.is_some() || !args.start.is_empty()
}

/// The target by its URL, its profile or its command, else by the profile in this folder; with its speed, where the
/// options give one.
///
/// # Errors
///
/// A wrong URL or profile, and no target.
pub(super) fn profile(args: &TargetArgs) -> Result<Profile, CliError> {
    let mut profile = scaled(described(args)?, args.time_scale);
    profile.model_listen = args.model.or(profile.model_listen);
    if !args.plugins.is_empty() {
        profile.session_plugins.clone_from(&args.plugins);
    }
    Ok(profile)
}

/// The profile at this speed, if one is given.
pub(super) fn scaled(profile: Profile, time_scale: Option<f64>) -> Profile {
    match time_scale {
        Some(scale) => profile.with_time_scale(scale),
        None => profile,
    }
}

/// Whether the target can speak the protocol of this suite at all, as its URL has it.
///
/// # Errors
///
/// A server of lines where the suite is about HTTP, and the other way round.
pub(super) fn fits(profile: &Profile, suite: &Suite) -> Result<(), CliError> {
    let Target::Url(UrlTarget { url, .. }) = &profile.target else {
        return Ok(());
    };
    let name = suite.name();
    match (suite.id == SuiteId::SessionUpdate, url.lines) {
        (true, false) => Err(usage(&format!(
            "{url} is no server of lines: {name} is spoken at tcp://HOST:PORT, or with a command after `--`"
        ))),
        (false, true) => Err(usage(&format!(
            "{url} is a server of lines: {name} is spoken at http://HOST:PORT"
        ))),
        _ => Ok(()),
    }
}

fn described(args: &TargetArgs) -> Result<Profile, CliError> {
    let here = Path::new(FILE_NAME);
    match args {
        TargetArgs { url: Some(url), .. } => {
            let base = BaseUrl::parse(url).map_err(|error| usage(&error))?;
            Ok(Profile::for_url(base))
        }
        TargetArgs {
            profile: Some(path),
            ..
        } => load(path),
        TargetArgs { start, .. } if !start.is_empty() => Ok(Profile::for_command(start.clone())),
        _ if here.exists() => load(here),
        _ => {
            let what = "no target is named; give --url URL, --profile FILE, or -- COMMAND";
            Err(usage(&format!("{what} (there is no {FILE_NAME} here)")))
        }
    }
}

fn load(path: &Path) -> Result<Profile, CliError> {
    Profile::load(path).map_err(|error| usage(&error))
}

fn usage(error: &dyn std::fmt::Display) -> CliError {
    CliError::Usage(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::find;

    #[test]
    fn a_url_of_another_kind_of_server_is_wrong_usage_and_accuses_nobody() {
        let fits = |suite: &str, url: &str| {
            let profile = Profile::for_url(BaseUrl::parse(url).unwrap());
            super::fits(&profile, find(suite).unwrap()).map_err(|error| error.to_string())
        };
        for (suite, url) in [
            ("session-update", "tcp://127.0.0.1:1"),
            ("chat-ws", "ws://127.0.0.1:1/ws"),
            ("covel-sse", "https://example.test"),
            ("sse", "http://127.0.0.1:1"),
        ] {
            assert_eq!(fits(suite, url), Ok(()), "{suite} {url}");
        }
        insta::assert_snapshot!(fits("session-update", "ws://127.0.0.1:1").unwrap_err(), @"http://127.0.0.1:1 is no server of lines: session-update is spoken at tcp://HOST:PORT, or with a command after `--`");
        insta::assert_snapshot!(fits("covel-sse", "tcp://127.0.0.1:1").unwrap_err(), @"tcp://127.0.0.1:1 is a server of lines: covel-sse is spoken at http://HOST:PORT");
        assert!(fits("chat-ws", "tcp://127.0.0.1:1").is_err());
    }
}
