//! How a scenario has an adapter send requests that the mock judges as the service would.

use serde_json::{Value, json};

use super::{
    adapter::{KEY, Provided},
    content::has,
    testee::TesteeStage,
};
use crate::{
    cases::requests::{Talk, Theme, Turn, talks},
    drivers::{DriveError, provider::Provider},
};

impl TesteeStage {
    /// Plays the conversations of a theme that the adapter has what it takes for, one after the other.
    ///
    /// # Errors
    ///
    /// When the adapter cannot be started. What it does with a conversation is no error.
    pub async fn talk_about(&self, theme: Theme) -> Result<(), DriveError> {
        let suite = self.wire()?;
        let about = self.about().await?;
        for talk in talks(theme, suite) {
            if talk
                .wires()
                .all(|wire| has(&about, wire, talk.feature, suite))
            {
                self.converse(&talk).await?;
            }
        }
        Ok(())
    }

    /// Plays one conversation turn by turn, as far as the adapter has answers to go on from.
    async fn converse(&self, talk: &Talk) -> Result<(), DriveError> {
        let judging;
        let places = match talk.feature {
            None => {
                judging = self.judging(talk).await?;
                vec![&judging]
            }
            Some(_) => self.places(talk).await?,
        };
        let (mut history, mut outcome) = (Vec::new(), Value::Null);
        for (number, turn) in talk.turns.iter().enumerate() {
            let place = places.get(turn.place).copied().ok_or_else(|| {
                DriveError::Harness(format!("{} has no address {}", talk.id, turn.place))
            })?;
            if talk.stored || turn.anew {
                history.clear();
            }
            history.extend(turn.added.iter().map(|message| filled(message, &outcome)));
            let id = format!("{}/{number}", talk.id);
            let mut line = line(talk, turn, place);
            line["case"] = Value::from(id.as_str());
            line["messages"] = Value::from(history.clone());
            if talk.stored && number > 0 {
                let openai = json!({ "previousResponseId": outcome["responseId"] });
                line["options"]["providerOptions"] = json!({ "openai": openai });
            }
            self.label(&id);
            if !turn.truths.is_empty() {
                self.state(json!({ "case": id, "truth": turn.truths }));
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

    /// A mock that judges what it gets.
    async fn judging(&self, talk: &Talk) -> Result<Provided, DriveError> {
        let provider = Provider::judging(self.recorder().clone(), KEY).await?;
        provider.mock().load(talk.script.clone());
        self.behind_saboteur(provider).await
    }

    /// The mocks of the stage, at two addresses.
    async fn places(&self, talk: &Talk) -> Result<Vec<&Provided>, DriveError> {
        let places = vec![self.provided().await?, self.elsewhere().await?];
        for place in &places {
            place.answer_with(talk.script.clone());
        }
        Ok(places)
    }
}

/// What the adapter is told in a turn, but for its case and the messages.
fn line(talk: &Talk, turn: &Turn, place: &Provided) -> Value {
    let wire = turn.wire.unwrap_or(talk.wire);
    let mut line = json!({
        "wire": wire.as_str(),
        "baseUrl": place.base_url(wire),
        "apiKey": KEY,
        "model": turn.model.unwrap_or(talk.model),
    });
    for (name, value) in talk.more.as_object().into_iter().flatten() {
        line[name.as_str()] = value.clone();
    }
    line
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
