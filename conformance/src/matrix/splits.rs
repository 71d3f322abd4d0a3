//! Where a stream of bytes can be split so that it matters.

use std::collections::BTreeSet;

/// The places at which to split, sorted: every byte when there are few enough; else the places where readers stumble,
/// and then an even sample of the rest, `most` in all.
pub fn places(bytes: &[u8], most: usize) -> Vec<usize> {
    let all = 1..bytes.len();
    if all.len() <= most {
        return all.collect();
    }
    let mut chosen: BTreeSet<usize> = all.clone().filter(|at| matters(bytes, *at)).collect();
    if chosen.len() > most {
        // Evenly over the stream, so that its end is as well tried as its beginning.
        return evenly(&chosen.into_iter().collect::<Vec<_>>(), most);
    }
    let rest: Vec<usize> = all.filter(|at| !chosen.contains(at)).collect();
    chosen.extend(evenly(&rest, most - chosen.len()));
    chosen.into_iter().collect()
}

fn evenly(places: &[usize], most: usize) -> Vec<usize> {
    let pick = |number: usize| places.get(number * places.len() / most.max(1)).copied();
    (0..most.min(places.len())).filter_map(pick).collect()
}

/// Whether readers stumble here: around line ends, within a character, within an escape, and around the colon of a
/// field.
fn matters(bytes: &[u8], at: usize) -> bool {
    let byte = |place: usize| bytes.get(place).copied().unwrap_or_default();
    let (before, after) = (byte(at - 1), byte(at));
    let is_end = |byte: u8| byte == b'\n' || byte == b'\r';
    let in_character = after & 0b1100_0000 == 0b1000_0000;
    let field = bytes[..at].ends_with(b"data:") || bytes[..at].ends_with(b"event:");
    is_end(before) || is_end(after) || in_character || before == b'\\' || field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_stream_is_split_at_every_byte() {
        assert_eq!(places(b"data", 10), [1, 2, 3]);
        assert!(places(b"", 10).is_empty());
        assert!(places(b"d", 10).is_empty());
    }

    #[test]
    fn of_a_long_stream_the_places_that_matter_come_first() {
        let stream = "data: {\"a\":\"é\"}\r\n\r\n";
        let chosen = places(stream.as_bytes(), 8);
        // Behind `data:`, within é, around the line ends; and two of the rest.
        assert_eq!(chosen, [1, 5, 8, 13, 16, 17, 18, 19]);
    }

    #[test]
    fn never_more_places_than_asked_for() {
        let stream = "\n".repeat(1000);
        let chosen = places(stream.as_bytes(), 10);
        assert_eq!(chosen.len(), 10);
        assert!(chosen.last().is_some_and(|last| *last > 800), "{chosen:?}");
    }
}
