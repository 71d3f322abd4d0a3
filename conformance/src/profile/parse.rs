//! From the text of a profile to a [`Profile`].

use std::{collections::BTreeMap, net::SocketAddr, path::Path};

use toml::de::DeTable;
use turnwire_spec::catalogue::Catalogue;

use super::{
    ChatProfile, Limits, Problem, Profile, ProfileError, Target,
    read::{Found, Source, TableReader},
};
use crate::drivers::{
    http::BaseUrl,
    target::{
        command::{CommandTarget, CommandVariant},
        url::UrlTarget,
    },
};

/// Reads a whole profile.
pub(super) fn profile(text: &str, path: &Path) -> Result<Profile, ProfileError> {
    let source = Source { text, path };
    let root = DeTable::parse(text).map_err(|error| {
        source.wrong(
            error.span().unwrap_or_default(),
            Problem::Syntax(one_line(error.message())),
        )
    })?;
    let mut root = TableReader::new(source, root.get_ref(), 0..0, String::new());
    let time_scale = time_scale(&mut root)?;
    let variants = root.map("variants", |found| variant(&found))?;
    let target = target(&mut root, path, time_scale, variants)?;
    let name = match root.string("name")? {
        Some(name) => name,
        None => path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
    };
    let mut profile = Profile {
        time_scale,
        ..Profile::new(&name, target)
    };
    profile.capabilities = root.map("capabilities", |found| found.bool())?;
    model(&mut root, &mut profile)?;
    session(&mut root, &mut profile)?;
    chat(&mut root, &mut profile.chat)?;
    tokens(&mut root, &mut profile)?;
    limits(&mut root, &mut profile.limits)?;
    profile.expected_failures = expected_failures(&mut root)?;
    profile.requires = requires(&mut root)?;
    root.finish()?;
    Ok(profile)
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(", ")
}

fn time_scale(root: &mut TableReader<'_>) -> Result<f64, ProfileError> {
    let Some(found) = root.find("time_scale") else {
        return Ok(1.0);
    };
    let scale = found.number()?;
    if scale.is_finite() && scale > 0.0 {
        return Ok(scale);
    }
    Err(found.bad(format!("expected a number above 0, got {scale}")))
}

/// A variant of either kind of target, with the place of each part.
struct Variant<'a> {
    url: Option<(Found<'a>, BaseUrl)>,
    /// A key that only a command has.
    command_key: Option<Found<'a>>,
    command: CommandVariant,
}

fn variant<'a>(found: &Found<'a>) -> Result<Variant<'a>, ProfileError> {
    let mut table = found.table()?;
    let url = match table.find("url") {
        Some(found) => Some((found.clone(), base_url(&found)?)),
        None => None,
    };
    let command_key = table.find("env").or_else(|| table.find("args"));
    let command = CommandVariant {
        args: table.strings("args")?.unwrap_or_default(),
        env: table.string_map("env")?,
    };
    table.finish()?;
    Ok(Variant {
        url,
        command_key,
        command,
    })
}

fn base_url(found: &Found<'_>) -> Result<BaseUrl, ProfileError> {
    BaseUrl::parse(&found.string()?).map_err(|error| found.bad(error.to_string()))
}

fn target(
    root: &mut TableReader<'_>,
    path: &Path,
    time_scale: f64,
    variants: BTreeMap<String, Variant<'_>>,
) -> Result<Target, ProfileError> {
    let Some(mut table) = root.table("target")? else {
        return Err(root.missing("target", "a [target] table with a command or a url"));
    };
    let Some(command) = table.find("command") else {
        let url = table.find("url").ok_or_else(|| {
            table.missing(
                "url",
                "the base URL of the target, or a command that starts it",
            )
        })?;
        let url = base_url(&url)?;
        // Known keys, so that their mention here is explained and not only refused.
        for key in ["cwd", "env", "ready"] {
            if let Some(found) = table.find(key) {
                return Err(found.bad("only a target with a command has this".to_owned()));
            }
        }
        table.finish()?;
        return Ok(Target::Url(UrlTarget {
            url,
            variants: url_variants(variants)?,
        }));
    };
    let words = command.strings()?;
    if words.is_empty() {
        return Err(command.bad("expected a program and its arguments, got nothing".to_owned()));
    }
    let mut target = CommandTarget {
        command: words,
        time_scale,
        env: table.string_map("env")?,
        variants: command_variants(variants)?,
        ..CommandTarget::default()
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let cwd = table.string("cwd")?;
    target.cwd = match (folder, cwd) {
        (Some(folder), Some(cwd)) => Some(folder.join(cwd)),
        (None, Some(cwd)) => Some(cwd.into()),
        (folder, None) => folder.map(Path::to_owned),
    };
    if let Some(url) = table.find("url") {
        target.url = url.string()?;
        let filled = target.url.replace("{port}", "1");
        BaseUrl::parse(&filled).map_err(|error| url.bad(error.to_string()))?;
    }
    ready(&mut table, &mut target)?;
    table.finish()?;
    Ok(Target::Command(target))
}

fn ready(table: &mut TableReader<'_>, target: &mut CommandTarget) -> Result<(), ProfileError> {
    let Some(mut ready) = table.table("ready")? else {
        return Ok(());
    };
    if let Some(found) = ready.find("path") {
        target.ready_path = found.string()?;
        if !target.ready_path.starts_with('/') {
            return Err(found.bad(format!(
                "expected a path such as \"/api/health\", got {:?}",
                target.ready_path
            )));
        }
    }
    target.ready_within = ready.duration("within")?.unwrap_or(target.ready_within);
    ready.finish()
}

fn url_variants(
    variants: BTreeMap<String, Variant<'_>>,
) -> Result<BTreeMap<String, BaseUrl>, ProfileError> {
    let mut urls = BTreeMap::new();
    for (name, variant) in variants {
        if let Some(found) = variant.command_key {
            return Err(
                found.bad("only a target with a command has this; a URL target has url".to_owned())
            );
        }
        if let Some((_, url)) = variant.url {
            urls.insert(name, url);
        }
    }
    Ok(urls)
}

fn command_variants(
    variants: BTreeMap<String, Variant<'_>>,
) -> Result<BTreeMap<String, CommandVariant>, ProfileError> {
    let mut commands = BTreeMap::new();
    for (name, variant) in variants {
        if let Some((found, _)) = variant.url {
            return Err(
                found.bad("only a URL target has this; a command has env and args".to_owned())
            );
        }
        commands.insert(name, variant.command);
    }
    Ok(commands)
}

fn model(root: &mut TableReader<'_>, profile: &mut Profile) -> Result<(), ProfileError> {
    let Some(mut table) = root.table("model")? else {
        return Ok(());
    };
    if let Some(found) = table.find("listen") {
        let text = found.string()?;
        let address: Result<SocketAddr, _> = text.parse();
        let why = || format!("expected an address such as \"127.0.0.1:4010\", got {text:?}");
        profile.model_listen = Some(address.map_err(|_| found.bad(why()))?);
    }
    table.finish()
}

fn session(root: &mut TableReader<'_>, profile: &mut Profile) -> Result<(), ProfileError> {
    let Some(mut table) = root.table("session")? else {
        return Ok(());
    };
    if let Some(plugins) = table.strings("plugins")? {
        profile.session_plugins = plugins;
    }
    if let Some(plugin) = table.string("fixture_plugin")? {
        profile.fixture_plugin = plugin;
    }
    table.finish()
}

fn chat(root: &mut TableReader<'_>, chat: &mut ChatProfile) -> Result<(), ProfileError> {
    let Some(mut table) = root.table("chat")? else {
        return Ok(());
    };
    let texts = [
        ("project", &mut chat.project),
        ("transcript", &mut chat.transcript),
        ("rest", &mut chat.rest),
    ];
    for (name, place) in texts {
        if let Some(text) = table.string(name)? {
            *place = text;
        }
    }
    chat.openapi = table.string("openapi")?;
    chat.token = table.string("token")?;
    if let Some(found) = table.find("buffer") {
        chat.buffer = Some(whole(&found)?);
    }
    if let Some(found) = table.find("linger_ms") {
        chat.linger_ms = Some(whole(&found)?);
    }
    if let Some(found) = table.find("ping_ms") {
        chat.ping_ms = Some(whole(&found)?);
    }
    chat.models = table
        .map("models", |found| whole(&found))?
        .into_iter()
        .collect();
    table.finish()
}

fn whole(found: &Found<'_>) -> Result<u64, ProfileError> {
    let number = found.number()?;
    if number < 0.0 || number.fract() != 0.0 || number > 1e15 {
        return Err(found.bad("a whole number that is not negative is expected".to_owned()));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was looked at just now"
    )]
    Ok(number as u64)
}

fn tokens(root: &mut TableReader<'_>, profile: &mut Profile) -> Result<(), ProfileError> {
    let Some(mut table) = root.table("tokens")? else {
        return Ok(());
    };
    profile.operator_token = table.string("operator")?;
    if let Some(found) = table.find("operator_env") {
        let name = found.string()?;
        let token = std::env::var(&name)
            .map_err(|_| found.bad(format!("the variable {name} is not set")))?;
        profile.operator_token = Some(token);
    }
    table.finish()
}

fn limits(root: &mut TableReader<'_>, limits: &mut Limits) -> Result<(), ProfileError> {
    let Some(mut table) = root.table("limits")? else {
        return Ok(());
    };
    let http = &mut limits.http;
    http.connect = table.duration("connect")?.unwrap_or(http.connect);
    http.head = table.duration("head")?.unwrap_or(http.head);
    http.idle = table.duration("idle")?.unwrap_or(http.idle);
    http.total = table.duration("total")?.unwrap_or(http.total);
    http.max_head = table.bytes("max_head")?.unwrap_or(http.max_head);
    http.max_body = table.bytes("max_body")?.unwrap_or(http.max_body);
    limits.patience = table.duration("patience")?.unwrap_or(limits.patience);
    limits.scenario = table.duration("scenario")?.unwrap_or(limits.scenario);
    let retry_after = table.duration("retry_after")?;
    limits.retry_after = retry_after.unwrap_or(limits.retry_after);
    table.finish()
}

fn expected_failures(root: &mut TableReader<'_>) -> Result<BTreeMap<String, String>, ProfileError> {
    let Some(found) = root.find("expected_failures") else {
        return Ok(BTreeMap::new());
    };
    let mut expected = BTreeMap::new();
    for item in found.items("an array of tables, [[expected_failures]]")? {
        let mut table = item.table()?;
        let id = table
            .find("id")
            .ok_or_else(|| table.missing("id", "the id of a requirement"))?;
        let text = id.string()?;
        if Catalogue::embedded().get(&text).is_none() {
            return Err(unknown_requirement(&id, &text));
        }
        let reason = table
            .string("reason")?
            .filter(|reason| !reason.trim().is_empty());
        let reason = reason.ok_or_else(|| table.missing("reason", "why it fails, for readers"))?;
        table.finish()?;
        if expected.insert(text.clone(), reason).is_some() {
            return Err(id.bad(format!("{text} is expected twice")));
        }
    }
    Ok(expected)
}

fn requires(root: &mut TableReader<'_>) -> Result<Vec<String>, ProfileError> {
    let Some(found) = root.find("requires") else {
        return Ok(Vec::new());
    };
    for item in found.items("an array of ids and areas")? {
        let text = item.string()?;
        if Catalogue::embedded().select(&text).is_err() {
            return Err(unknown_requirement(&item, &text));
        }
    }
    found.strings()
}

fn unknown_requirement(found: &Found<'_>, text: &str) -> ProfileError {
    let hint = match Catalogue::embedded().nearest(text) {
        Some(nearest) => format!("; did you mean {nearest:?}?"),
        None => String::new(),
    };
    found.bad(format!("no requirement is named {text:?}{hint}"))
}
