//! The three forms of a content: a text, null, and a list of parts.

use serde_json::{Value, json};

use super::{PNG, Piece, image, on_each, text, typed, user};

/// The pieces, each on every wire.
pub(super) fn all() -> Vec<Piece> {
    let string = [user(json!("hello 42"))];
    let mixed = history(user(json!([text("one"), text("two")])));
    let null = history(user(json!("go on")))[..3].to_vec();
    let parts = [user(json!([text("A"), typed(PNG, "image/png"), text("B")]))];
    let untyped = [user(json!([text("look"), image(PNG)]))];
    [
        on_each("content-string", &string),
        on_each("content-mixed", &mixed),
        on_each("content-null", &null),
        on_each("content-parts", &parts),
        on_each("content-untyped", &untyped),
    ]
    .concat()
}

/// A call, its result, and what is said then.
fn history(last: Value) -> Vec<Value> {
    let call = json!({ "id": "call_a", "name": "look", "arguments": { "at": 1 } });
    vec![
        user(json!("What is there?")),
        json!({ "role": "assistant", "content": null, "toolCalls": [call] }),
        json!({ "role": "tool", "toolCallId": "call_a", "content": "a cat" }),
        last,
    ]
}
