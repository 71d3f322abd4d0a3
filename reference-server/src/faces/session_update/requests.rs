//! Reads a request from a line. What cannot be read is refused with as much of its id as there is.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use turnwire_spec::session_update::limits::{REQUEST_ID_BYTES, is_session_id};
use turnwire_spec::session_update::{ErrorType, RequestId};

use super::errors::Refusal;
use crate::engine::ids::SessionId;

/// A request that can be answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) method: String,
    params: Map<String, Value>,
}

impl Asked {
    /// The parameters as this type has them. Unknown ones are ignored; one that may be absent is not null.
    pub(super) fn params<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        if let Some((name, _)) = self.params.iter().find(|(_, value)| value.is_null()) {
            return Err(Refusal::invalid(format!("{}: {name} is null", self.method)));
        }
        let params = Value::Object(self.params.clone());
        serde_json::from_value(params)
            .map_err(|error| Refusal::invalid(format!("{}: {error}", self.method)))
    }
}

/// Reads a line. The refusal comes with the id to answer to: null for a line that is no JSON object.
pub(super) fn read(line: &[u8]) -> Result<Asked, (RequestId, Refusal)> {
    let unreadable = |why: &str| (RequestId::null(), Refusal::new(ErrorType::ParseError, why));
    let text = std::str::from_utf8(line).map_err(|_| unreadable("the line is no UTF-8"))?;
    let message: Value = serde_json::from_str(text)
        .map_err(|error| unreadable(&format!("the line is no JSON: {error}")))?;
    let Value::Object(mut message) = message else {
        return Err(unreadable("the message is no object"));
    };
    let value = message.remove("request_id").unwrap_or_default();
    let id = RequestId::of(line).unwrap_or_else(RequestId::null);
    if id.text().len() > REQUEST_ID_BYTES {
        let refusal = Refusal::invalid("request_id is too long");
        return Err((RequestId::null(), refusal));
    }
    match check(&value, message) {
        Ok((method, params)) => Ok(Asked { id, method, params }),
        Err(why) => Err((id, Refusal::invalid(why))),
    }
}

/// The line that answers a request; `member` is `result` or `error`. The id goes out as it came in.
pub(super) fn answer(id: &RequestId, member: &str, what: &Value) -> String {
    let id = id.text();
    format!("{{\"kind\":\"response\",\"request_id\":{id},\"{member}\":{what}}}")
}

fn check(
    id: &Value,
    mut message: Map<String, Value>,
) -> Result<(String, Map<String, Value>), &'static str> {
    if message.get("kind").and_then(Value::as_str) != Some("request") {
        return Err("kind is not \"request\"");
    }
    match id {
        Value::Number(_) => {}
        Value::String(text) if !text.trim().is_empty() => {}
        _ => return Err("request_id is neither a number nor a text that is not blank"),
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) if !method.trim().is_empty() => method,
        _ => return Err("method is no text, or blank"),
    };
    match message.remove("params") {
        None => Ok((method, Map::new())),
        Some(Value::Object(params)) => Ok((method, params)),
        Some(_) => Err("params is no object"),
    }
}

/// A session id as the engine has it.
pub(super) fn session_id(text: &str) -> Result<SessionId, Refusal> {
    if is_session_id(text) {
        Ok(SessionId::from(text))
    } else {
        Err(Refusal::invalid("session_id is no session id"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(line: &str) -> (Value, ErrorType) {
        let (id, refusal) = read(line.as_bytes()).unwrap_err();
        (json!(id), refusal.kind)
    }

    #[test]
    fn a_request_may_lack_its_parameters_and_have_unknown_members() {
        let asked = read(br#"{"kind":"request","request_id":3,"method":"ping","x":1}"#).unwrap();

        assert_eq!((asked.id.text(), asked.method.as_str()), ("3", "ping"));
    }

    #[test]
    fn what_is_no_json_object_has_no_id() {
        for line in ["", "{", "[]", "7", "null"] {
            assert_eq!(
                refused(line),
                (Value::Null, ErrorType::ParseError),
                "{line}"
            );
        }
        let (id, refusal) = read(b"{\"kind\":\"\xff\"}").unwrap_err();
        assert_eq!((id.text(), refusal.kind), ("null", ErrorType::ParseError));
    }

    #[test]
    fn a_faulty_request_is_refused_under_its_own_id() {
        for (line, id) in [
            (
                r#"{"jsonrpc":"2.0","request_id":1,"method":"ping"}"#,
                json!(1),
            ),
            (r#"{"kind":"request","method":"ping"}"#, json!(null)),
            (
                r#"{"kind":"request","request_id":true,"method":"ping"}"#,
                json!(true),
            ),
            (
                r#"{"kind":"request","request_id":" ","method":"ping"}"#,
                json!(" "),
            ),
            (
                r#"{"kind":"request","request_id":"a","method":""}"#,
                json!("a"),
            ),
            (
                r#"{"kind":"request","request_id":"a","method":"ping","params":[]}"#,
                json!("a"),
            ),
        ] {
            assert_eq!(refused(line), (id, ErrorType::InvalidRequest), "{line}");
        }
    }

    #[test]
    fn an_id_goes_out_with_every_digit_that_it_came_with() {
        for id in [
            "18446744073709551617",
            "-9223372036854775809",
            "0.1000000000000000000001",
            "1.10",
        ] {
            let line = format!(r#"{{"kind":"request","request_id":{id},"method":"ping"}}"#);
            let asked = read(line.as_bytes()).unwrap();

            let told = answer(&asked.id, "result", &json!({ "ok": true }));
            assert_eq!(
                told,
                format!(r#"{{"kind":"response","request_id":{id},"result":{{"ok":true}}}}"#)
            );
        }
    }

    #[test]
    fn an_id_that_is_too_long_is_not_echoed() {
        let line = json!({ "kind": "request", "request_id": "x".repeat(300), "method": "ping" });

        assert_eq!(
            refused(&line.to_string()),
            (Value::Null, ErrorType::InvalidRequest)
        );
    }
}
