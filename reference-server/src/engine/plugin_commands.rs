//! The slash commands of plugins, outside any turn.
//!
//! A command comes as a line that somebody typed, or as named arguments from a plugin's interface. Both become one
//! [`CommandInvoked`]; only its `source` still tells them apart. A line is the command and its arguments, separated by
//! white space; quoting is not part of it.
//!
//! What is wrong with the arguments is refused before anything is traced. After that the trace has the call and its end.
//!
//! Source: seed 000, lines 970-1014 and 1238-1254.

use serde_json::Value;
use tokio::time::Instant;
use turnwire_spec::covel::payloads::internals::{CommandCompleted, CommandFailed, CommandInvoked};
use turnwire_spec::covel::shape::Ms;
use turnwire_spec::covel::vocabulary::CommandSource;

use super::agent::millis;
use super::emitter::Emitter;
use super::events::Emission;
use super::ids::{PluginId, SessionId, TraceId, TurnId};
use super::model::{Object, Session};
use super::plugins::{ActionError, CommandCall, CommandSpec, Plugin};
use super::{Engine, EngineError};

/// How a command was given.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// As the line that was typed, with the slash.
    Line(String),
    /// As named arguments.
    Args(Object),
}

impl Engine {
    /// Runs a command of an active plugin.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionNotFound`], [`EngineError::SessionNotActive`], [`EngineError::UnknownCommand`],
    /// [`EngineError::Invalid`] for arguments that do not fit, [`EngineError::HandlerThrew`], or what the command ran
    /// into.
    pub async fn plugin_command(
        &self,
        id: &SessionId,
        command_id: &str,
        given: Given,
    ) -> Result<Value, EngineError> {
        let session = self.active_session(id).await?;
        let unknown = || EngineError::UnknownCommand(command_id.to_owned());
        let (plugin, spec) = self
            .find_command(&session, command_id)
            .ok_or_else(unknown)?;
        let invoked = invocation(
            self.inner.ids.id("invocation"),
            plugin.manifest().id.as_str(),
            spec,
            given,
        )?;
        let emitter = Emitter::of_turn(
            self.outlets(),
            session.key(),
            TraceId::from(invoked.invocation_id.as_str()),
            TurnId::from(invoked.invocation_id.as_str()),
            None,
        );
        emitter.emit(Emission::new(&invoked)).await;
        let started = Instant::now();
        let call = CommandCall {
            session: &session,
            name: spec.name,
            args: &invoked.args,
        };
        let result = plugin.command(call).await;
        let duration_ms = Ms(millis(started.elapsed()));
        emitter.emit(ending(&invoked, duration_ms, &result)).await;
        result.map_err(|error| refusal(&plugin.manifest().id, &invoked, error))
    }

    fn find_command<'a>(
        &'a self,
        session: &'a Session,
        command_id: &str,
    ) -> Option<(&'a dyn Plugin, &'a CommandSpec)> {
        let (plugin_id, name) = command_id.split_once(':')?;
        let plugin_id = PluginId::from(plugin_id);
        if !session.active_plugins.contains(&plugin_id) {
            return None;
        }
        let plugin = self.inner.registry.plugin(&plugin_id)?.as_ref();
        let spec = plugin.commands().iter().find(|spec| spec.name == name)?;
        Some((plugin, spec))
    }
}

fn ending(
    invoked: &CommandInvoked,
    duration_ms: Ms,
    result: &Result<Value, ActionError>,
) -> Emission {
    match result {
        Ok(result) => Emission::new(&CommandCompleted {
            command: invoked.clone(),
            duration_ms,
            result_ok: result.get("ok").and_then(Value::as_bool),
        }),
        Err(error) => Emission::new(&CommandFailed {
            command: invoked.clone(),
            duration_ms,
            error: error.to_string(),
        }),
    }
}

fn refusal(plugin: &PluginId, invoked: &CommandInvoked, error: ActionError) -> EngineError {
    match error {
        ActionError::Payload(message) => EngineError::Invalid(message),
        ActionError::Engine(error) => error,
        ActionError::Unknown(_) => EngineError::UnknownCommand(invoked.command_id.clone()),
        ActionError::Thrown(error) => {
            tracing::warn!(%plugin, %error, "the handler of a command failed");
            EngineError::HandlerThrew
        }
    }
}

/// The one form of both ways to call a command.
fn invocation(
    invocation_id: String,
    plugin_id: &str,
    spec: &CommandSpec,
    given: Given,
) -> Result<CommandInvoked, EngineError> {
    let (source, typed, args) = match given {
        Given::Line(line) => {
            let args = read_line(spec, &line)?;
            (CommandSource::Composer, Some(line), args)
        }
        Given::Args(args) => (CommandSource::PluginUi, None, args),
    };
    check(spec, &args)?;
    let argv: Vec<Value> = spec
        .arguments
        .iter()
        .filter_map(|argument| args.get(argument.name).cloned())
        .collect();
    let words = argv.iter().filter_map(Value::as_str);
    let line = std::iter::once(format!("/{}", spec.name)).chain(words.map(str::to_owned));
    let canonical = line.collect::<Vec<_>>().join(" ");
    Ok(CommandInvoked {
        invocation_id,
        command_id: format!("{plugin_id}:{}", spec.name),
        command: spec.name.to_owned(),
        plugin_id: plugin_id.to_owned(),
        action: spec.name.to_owned(),
        source,
        raw: typed.unwrap_or_else(|| canonical.clone()),
        canonical,
        argv,
        args,
    })
}

/// The arguments of a typed line, by name.
fn read_line(spec: &CommandSpec, line: &str) -> Result<Object, EngineError> {
    let mut words = line.split_whitespace();
    let command = words.next().unwrap_or_default();
    if command.strip_prefix('/') != Some(spec.name) {
        let error = format!("{command:?} is not the command /{}", spec.name);
        return Err(EngineError::Invalid(error));
    }
    let mut args = Object::new();
    let mut names = spec.arguments.iter();
    for word in words {
        let Some(argument) = names.next() else {
            let error = format!("/{} takes no {word:?}", spec.name);
            return Err(EngineError::Invalid(error));
        };
        args.insert(argument.name.to_owned(), word.into());
    }
    Ok(args)
}

/// Both forms are held against the same declaration.
fn check(spec: &CommandSpec, args: &Object) -> Result<(), EngineError> {
    let invalid = |error: String| Err(EngineError::Invalid(error));
    let known = |name: &str| spec.arguments.iter().any(|argument| argument.name == name);
    if let Some(other) = args.keys().find(|name| !known(name)) {
        return invalid(format!("/{} has no argument {other:?}", spec.name));
    }
    for argument in spec.arguments {
        match args.get(argument.name) {
            None if argument.required => {
                return invalid(format!("/{} needs {}", spec.name, argument.name));
            }
            None => {}
            Some(Value::String(text)) if is_word(text) && (argument.fits)(text) => {}
            Some(other) => return invalid(format!("{other} is no {}", argument.name)),
        }
    }
    Ok(())
}

/// What can be typed as one argument.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::plugins::ArgumentSpec;

    const ROLL: CommandSpec = CommandSpec {
        name: "roll",
        arguments: &[
            ArgumentSpec {
                name: "notation",
                required: true,
                fits: |text| text.contains('d'),
            },
            ArgumentSpec {
                name: "label",
                required: false,
                fits: |_| true,
            },
        ],
    };

    fn called(given: Given) -> Result<CommandInvoked, EngineError> {
        invocation("i-1".to_owned(), "dice", &ROLL, given)
    }

    fn line(text: &str) -> Result<CommandInvoked, EngineError> {
        called(Given::Line(text.to_owned()))
    }

    fn args(value: Value) -> Result<CommandInvoked, EngineError> {
        called(Given::Args(serde_json::from_value(value).unwrap()))
    }

    #[test]
    fn both_forms_of_a_command_differ_in_their_source_and_what_was_typed() {
        let typed = line("/roll  2d6 luck").unwrap();
        let given = args(json!({ "label": "luck", "notation": "2d6" })).unwrap();

        assert_eq!(typed.raw, "/roll  2d6 luck");
        assert_eq!(given.raw, "/roll 2d6 luck");
        assert_eq!(given.source, CommandSource::PluginUi);
        let same = CommandInvoked {
            source: CommandSource::Composer,
            raw: typed.raw.clone(),
            ..given
        };
        assert_eq!(typed, same);
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_in_both_forms() {
        for text in [
            "/roll",
            "/roll six",
            "/roll 2d6 a b",
            "/rolls 2d6",
            "roll 2d6",
            "",
        ] {
            assert!(line(text).is_err(), "{text:?}");
        }
        for value in [
            json!({}),
            json!({ "notation": 7 }),
            json!({ "notation": "six" }),
            json!({ "notation": "2d6", "label": "a b" }),
            json!({ "notation": "2d6", "more": "x" }),
        ] {
            assert!(args(value.clone()).is_err(), "{value}");
        }
    }
}
