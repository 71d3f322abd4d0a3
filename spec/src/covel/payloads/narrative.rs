//! Story text, and questions to the player.
//!
//! Source: seed 000, lines 123-141, 161 and 1234.

use serde_json::Value;

use crate::covel::shape::{Object, True, payload, shape};

payload! {
    /// A piece of streamed story text.
    ///
    /// Source: seed 000, lines 127-134.
    "narrative.delta" struct NarrativeDelta {
        /// The runtime that writes.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The kind of output; clients read it here and nowhere else.
        kind: String,
        /// Text that is appended; empty when the event only resets or renames.
        delta: String,
        /// What this runtime streamed so far is void; `delta` begins the new text.
        reset?: True,
        /// The paragraph that the text belongs to; only in a segmented story.
        segment?: Segment,
    }
}

shape! {
    /// A paragraph of a segmented story, as far as it is known.
    ///
    /// Source: seed 000, line 134.
    struct Segment {
        /// The position among the paragraphs that showed text, from 0.
        index: u64,
        /// The kind of paragraph; an unknown kind counts as narration.
        kind: String,
        /// The speaker as the model wrote it, trimmed, at most 80 characters; narration has none.
        #[schemars(length(max = 80))]
        speaker?: String,
    }
}

payload! {
    /// The complete, reviewed message; it replaces what was streamed.
    ///
    /// Source: seed 000, lines 128-136.
    "narrative.completed" struct NarrativeCompleted {
        /// The final text.
        content: String,
        /// The kind of output.
        kind: String,
        /// The id of the stored message.
        message_id: String,
        /// The runtime that wrote.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The paragraphs with resolved speakers, in the shape of the message list.
        segments?: Vec<Value>,
        /// Names that are no character, in order of first appearance; never empty.
        unresolved_speakers?: Vec<String>,
    }
}

payload! {
    /// A question to the player: a form, a choice or a confirmation.
    ///
    /// The copy for subscribers also has `turnId`. Source: seed 000, lines 141 and 599.
    "interaction.requested" struct InteractionRequested {
        /// The question; its id is what both streams are merged by.
        block: InteractionBlock,
        /// The runtime that asks.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The turn; in the copy for subscribers.
        turn_id?: String,
        /// The committed proposal. Public.
        proposal_id?: String,
    }
}

shape! {
    /// A question as a client draws it.
    struct InteractionBlock {
        /// The id of the interaction.
        id: String,
        /// The type of block.
        r#type: String,
        /// What is asked.
        data: Value,
        /// What is known about it.
        meta: Value,
    }
}

payload! {
    /// Answers are saved, and the next turn has begun; the envelope's `turnId` is that turn's.
    ///
    /// Source: seed 000, lines 161 and 944-951.
    "interaction.submitted" struct InteractionSubmitted {
        /// The turn that asked.
        interaction_turn_id: String,
        /// What was saved for each answer.
        results: Vec<SubmissionResult>,
        /// The player's message, under the id of its stored row.
        message?: SubmittedMessage,
    }
}

shape! {
    /// One saved answer.
    struct SubmissionResult {
        /// The id of the answer.
        submission_id: String,
        /// The interaction that it answers.
        interaction_id: String,
        /// The values that the server saved.
        values: Object,
        /// The answer as prose.
        filled_narrative: String,
    }
}

shape! {
    /// A message of the player.
    struct SubmittedMessage {
        /// The id of the stored row.
        id: String,
        /// Its text.
        content: String,
    }
}

payload! {
    /// A rendered block was committed.
    ///
    /// The copy for subscribers also has `turnId`. Source: seed 000, lines 599 and 1234.
    "ui.rendered" struct UiRendered {
        /// The runtime that rendered.
        runtime_id: String,
        /// Its plugin.
        plugin_id: String,
        /// The committed proposal.
        proposal_id: String,
        /// Where the block comes from.
        source: Value,
        /// How it is drawn.
        render: Value,
        /// The block; its id and metadata come from the commit.
        block: Object,
        /// The turn; in the copy for subscribers.
        turn_id?: String,
    }
}
