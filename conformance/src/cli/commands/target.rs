//! The server that the options name, as a profile.

use std::path::Path;

use crate::{
    cli::{args::TargetArgs, exit::CliError},
    drivers::http::BaseUrl,
    profile::{FILE_NAME, Profile},
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
