//! What kind of message a JSON value is, on a channel of messages or lines.

use serde_json::Value;

/// Members that say what a message is.
const KIND: [&str; 4] = ["/type", "/kind", "/method", "/event/type"];

/// Members that say which request an answer belongs to.
const ANSWERED: [&str; 2] = ["/request_id", "/id"];

/// The kind, and of an answer also which request it answers; `json` when nothing says it.
///
/// ```text
/// {"type":"chat:send",...}                                               chat:send
/// {"kind":"event","method":"session/update","event":{"type":"note"}}     event session/update note
/// {"kind":"response","request_id":"r-1","result":{}}                     response r-1
/// ```
pub fn kind(json: &Value) -> String {
    let text = |pointer: &&str| json.pointer(pointer).and_then(Value::as_str);
    let is_answer = json.get("kind").and_then(Value::as_str) == Some("response");
    let answered = ANSWERED.iter().take(if is_answer { 2 } else { 0 });
    let words: Vec<&str> = KIND.iter().chain(answered).filter_map(text).collect();
    if words.is_empty() {
        "json".to_owned()
    } else {
        words.join(" ")
    }
}
