//! How a scenario gives an adapter something to say, and to whom.

use serde_json::json;
use turnwire_spec::llm::Wire;

use super::{adapter::KEY, testee::TesteeStage};
use crate::{
    cases::content::{Feature, Piece, Theme, pieces},
    drivers::{DriveError, testee::About},
};

impl TesteeStage {
    /// Plays the pieces of a theme that the run asks for and the adapter has a place for, one after the other.
    ///
    /// # Errors
    ///
    /// When the adapter cannot be started. What it does with a piece is no error.
    pub async fn play_content(&self, theme: Theme) -> Result<(), DriveError> {
        let suite = self.wire()?;
        let about = self.about().await?;
        for piece in pieces(theme, suite) {
            if self.setting.cases.wants(&piece.id) && has(&about, piece.wire, piece.feature, suite)
            {
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

/// Whether an adapter speaks a wire and has what is needed. Any adapter speaks the wire of its suite.
pub(super) fn has(about: &About, wire: Wire, needs: Option<Feature>, suite: Wire) -> bool {
    let speaks = wire == suite || about.lists("wires", wire.as_str());
    speaks && needs.is_none_or(|feature| feature.is_in(&about.said))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_piece_is_for_adapters_that_have_what_it_needs() {
        let has = |said: Value, wire: Wire| {
            let about = About::read(&said).unwrap();
            has(&about, wire, Some(Feature::Content), Wire::OpenaiChat)
        };
        let said = json!({ "ready": true, "features": ["content"] });
        assert!(has(said.clone(), Wire::OpenaiChat));
        assert!(!has(said, Wire::Gemini));
        let said = json!({ "ready": true, "features": ["content"], "wires": ["gemini"] });
        assert!(has(said, Wire::Gemini));
        let said = json!({ "ready": true, "wires": ["gemini", "openai-chat"] });
        assert!(!has(said, Wire::OpenaiChat));
    }
}
