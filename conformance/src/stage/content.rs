//! How a scenario gives an adapter something to say, and to whom.

use serde_json::{Value, json};

use super::{adapter::KEY, testee::TesteeStage};
use crate::{
    cases::content::{Piece, Theme, pieces},
    drivers::DriveError,
};

impl TesteeStage {
    /// Plays the pieces of a theme that the run asks for and the adapter has a place for, one after the other.
    ///
    /// # Errors
    ///
    /// When the adapter cannot be started. What it does with a piece is no error.
    pub async fn play_content(&self, theme: Theme) -> Result<(), DriveError> {
        let suite = self.wire()?;
        let about = self.about().await?.said;
        for piece in pieces(theme, suite) {
            if self.setting.cases.wants(&piece.id) && has(&about, &piece, suite) {
                self.play_piece(&piece).await?;
            }
        }
        Ok(())
    }

    async fn play_piece(&self, piece: &Piece) -> Result<(), DriveError> {
        let provided = self.provided().await?;
        provided.answer_with(piece.script());
        self.label(&piece.id);
        self.state(json!({ "case": piece.id, "truth": piece.truths }));
        let line = piece.line(provided.root(), &provided.base_url(piece.wire), KEY);
        self.tell(&line).await?;
        self.report_of(&piece.id, self.patience()).await;
        Ok(())
    }
}

/// Whether an adapter speaks the wire of a piece and has what it needs. Any adapter speaks the wire of its suite.
fn has(about: &Value, piece: &Piece, suite: turnwire_spec::llm::Wire) -> bool {
    let listed = || {
        about["wires"]
            .as_array()
            .is_some_and(|list| list.iter().any(|one| one == piece.wire.as_str()))
    };
    let speaks = piece.wire == suite || listed();
    speaks && piece.feature.is_none_or(|feature| feature.is_in(about))
}

#[cfg(test)]
mod tests {
    use turnwire_spec::llm::Wire;

    use super::*;

    #[test]
    fn a_piece_is_for_adapters_that_have_what_it_needs() {
        let forms = pieces(Theme::Forms, Wire::OpenaiChat);
        let gemini = forms.iter().find(|piece| piece.wire == Wire::Gemini);
        let chat = forms.iter().find(|piece| piece.wire == Wire::OpenaiChat);
        let said = json!({ "ready": true, "features": ["content"] });
        let suite = Wire::OpenaiChat;
        assert!(chat.is_some_and(|piece| has(&said, piece, suite)));
        assert!(gemini.is_some_and(|piece| !has(&said, piece, suite)));
        let said = json!({ "ready": true, "features": ["content"], "wires": ["gemini"] });
        assert!(gemini.is_some_and(|piece| has(&said, piece, suite)));
        let said = json!({ "ready": true, "wires": ["gemini", "openai-chat"] });
        assert!(chat.is_some_and(|piece| !has(&said, piece, suite)));
    }
}
