//! Ids and jitter that are the same in every run.
//!
//! Everything derives from the mock's seed, the rule and how often the rule was used, not from the
//! order in which requests arrive: scenarios that run at the same time do not change each other's ids.

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A source of numbers and ids for one reply.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    state: u64,
}

impl Ids {
    /// `seed` is the mock's, `owner` the script and rule in pieces, `nth` how often the rule was used before.
    pub(crate) fn new(seed: u64, owner: &[&str], nth: u64) -> Self {
        let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
        for byte in owner.iter().flat_map(|piece| piece.bytes()) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self {
            state: state.wrapping_add(nth.wrapping_mul(0xd134_2543_de82_ef95)),
        }
    }

    /// Another source, for this text.
    pub(crate) fn salted(mut self, text: &str) -> Self {
        for byte in text.bytes() {
            self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    /// The next number (SplitMix64).
    pub(crate) fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An id: `prefix`, then `length` letters and digits.
    pub(crate) fn id(&mut self, prefix: &str, length: usize) -> String {
        let mut id = String::with_capacity(prefix.len() + length);
        id.push_str(prefix);
        let mut left = length;
        while left > 0 {
            let mut pool = self.number();
            let mut block = [0; PER_NUMBER];
            for letter in &mut block {
                *letter = ALPHABET[(pool % 62) as usize];
                pool /= 62;
            }
            let used = left.min(PER_NUMBER);
            // The alphabet is ASCII.
            id.push_str(std::str::from_utf8(&block[..used]).unwrap_or_default());
            left -= used;
        }
        id
    }
}

/// Letters that are taken from one number: 62 to the tenth power is less than 2 to the sixtieth.
const PER_NUMBER: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_use_of_a_rule_gives_the_same_ids() {
        let id = |nth| Ids::new(7, &["script", "/", "rule"], nth).id("call_", 24);
        assert_eq!(id(0), id(0));
        assert_ne!(id(0), id(1));
        assert_eq!(id(0).len(), "call_".len() + 24);
        assert_ne!(
            Ids::new(7, &["a"], 0).number(),
            Ids::new(7, &["b"], 0).number()
        );
    }
}
