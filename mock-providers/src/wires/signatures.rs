//! Signed and encrypted thinking: made from what it covers, so that the mock knows its own again.
//!
//! A real service signs with a key. The mock hashes the text with its seed: it needs no memory of
//! what it sent, and a changed text or a foreign signature does not fit. What a script signs itself
//! is remembered (see [`crate::Mock`]).

use serde_json::Value;

use crate::ids::Ids;

/// Makes and checks signatures.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signer {
    /// The mock's seed.
    pub seed: u64,
}

/// Characters of a made signature: base64 without padding, 48 bytes.
const LENGTH: usize = 64;

impl Signer {
    /// The signature of a text: of thinking, of a call, of nothing.
    pub fn sign(self, purpose: &str, text: &str) -> String {
        Ids::new(self.seed, &[purpose], 0)
            .salted(text)
            .id("", LENGTH)
    }

    /// Whether a signature was made for this text.
    pub fn fits(self, purpose: &str, text: &str, signature: &str) -> bool {
        signature == self.sign(purpose, text)
    }
}

/// A call as one text: the name, and the arguments whatever the order of their members.
pub(crate) fn call_text(name: &str, arguments: &Value) -> String {
    let mut text = name.to_owned();
    canonical(arguments, &mut text);
    text
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            let mut names: Vec<_> = members.iter().collect();
            names.sort_unstable_by_key(|(name, _)| name.as_str());
            for (name, value) in names {
                text.push_str(name);
                text.push(':');
                canonical(value, text);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| {
            text.push(',');
            canonical(item, text);
        }),
        Value::Number(number) => text.push_str(&number.as_f64().unwrap_or(0.0).to_string()),
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_members_does_not_matter() {
        let one = serde_json::json!({"a": 1, "b": {"c": [2.0], "d": "x"}});
        let two = serde_json::json!({"b": {"d": "x", "c": [2]}, "a": 1.0});
        assert_eq!(call_text("f", &one), call_text("f", &two));
        assert_ne!(call_text("f", &one), call_text("g", &one));
    }

    #[test]
    fn a_signature_fits_its_text_and_no_other() {
        let signer = Signer { seed: 7 };
        let signature = signer.sign("thinking", "hm");
        assert_eq!(signature.len(), 64);
        assert!(signer.fits("thinking", "hm", &signature));
        assert!(!signer.fits("thinking", "hm!", &signature));
        assert!(!signer.fits("call", "hm", &signature));
        assert!(!Signer { seed: 8 }.fits("thinking", "hm", &signature));
    }
}
