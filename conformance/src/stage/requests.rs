//! How a scenario has an adapter send requests that the mock judges as the service would.

use serde_json::{Value, json};

use super::{adapter::KEY, testee::TesteeStage};
use crate::{
    cases::requests::{Talk, Theme, talks},
    drivers::{DriveError, http::BaseUrl, provider::Provider},
};

impl TesteeStage {
    /// Plays the conversations of a theme on the wire of the suite.
    ///
    /// # Errors
    ///
    /// When the adapter cannot be started. What it does with a conversation is no error.
    pub async fn talk_about(&self, theme: Theme) -> Result<(), DriveError> {
        for talk in talks(theme, self.wire()?) {
            self.converse(&talk).await?;
        }
        Ok(())
    }

    /// Plays one conversation turn by turn, as far as the adapter has answers to go on from.
    async fn converse(&self, talk: &Talk) -> Result<(), DriveError> {
        let provider = Provider::judging(self.recorder().clone(), KEY).await?;
        provider.mock().load(talk.script.clone());
        let harness = |error: &dyn std::fmt::Display| DriveError::Harness(error.to_string());
        let root = BaseUrl::parse(&provider.root()).map_err(|error| harness(&error))?;
        let root = self.front(&root).await?.to_string();
        let base_url = format!(
            "{}{}",
            root.trim_end_matches('/'),
            provider.path_of(talk.wire)
        );
        self.label(&format!("requests/{}", talk.id));
        let (mut history, mut outcome) = (Vec::new(), Value::Null);
        for (turn, added) in talk.turns.iter().enumerate() {
            if talk.stored {
                history.clear();
            }
            history.extend(added.iter().map(|message| filled(message, &outcome)));
            let id = format!("requests/{}/{turn}", talk.id);
            let mut line = json!({
                "case": id,
                "wire": talk.wire.as_str(),
                "baseUrl": base_url,
                "apiKey": KEY,
                "model": talk.model,
                "messages": history,
            });
            merge(&mut line, &talk.more);
            if talk.stored && turn > 0 {
                let openai = json!({ "previousResponseId": outcome["responseId"] });
                line["options"]["providerOptions"] = json!({ "openai": openai });
            }
            self.tell(&line).await?;
            let report = self.report_of(&id, self.patience()).await;
            outcome = report
                .map(|report| report["outcome"].clone())
                .unwrap_or_default();
            let ends = talk.stored && outcome["responseId"].is_null();
            if !outcome.is_object() || ends {
                return Ok(());
            }
            history.push(said(&outcome));
        }
        Ok(())
    }
}

/// A message, with the ids of the last report's calls in place of `@N`.
fn filled(message: &Value, outcome: &Value) -> Value {
    let mut message = message.clone();
    let place = message["toolCallId"]
        .as_str()
        .and_then(|id| id.strip_prefix('@')?.parse::<usize>().ok());
    if let Some(place) = place {
        message["toolCallId"] = outcome["toolCalls"][place]["id"].clone();
    }
    message
}

/// What the adapter reported, as history.
fn said(outcome: &Value) -> Value {
    let mut message = json!({ "role": "assistant", "content": outcome["text"] });
    for name in ["toolCalls", "continuation"] {
        if !outcome[name].is_null() {
            message[name] = outcome[name].clone();
        }
    }
    message
}

fn merge(line: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        line[name.as_str()] = value.clone();
    }
}
