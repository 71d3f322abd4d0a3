//! Which of the frames or messages that match a rewrite are touched.

/// A rewrite's share of what matches it: the first few pass, then every so many is touched, up to a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// So many pass first.
    pub(super) skip: u64,
    /// Every so many of the others is touched; 0 and 1: each.
    pub(super) every: u64,
    /// At most so many are touched; 0: no limit.
    pub(super) limit: u64,
}

/// Counts what matches one rewrite.
#[derive(Debug, Default)]
pub(super) struct Counter {
    matching: u64,
    touched: u64,
}

impl Counter {
    /// Counts one that matches; its position among the touched ones, when it is touched.
    pub(super) fn next(&mut self, share: Share) -> Option<u64> {
        let position = self.matching;
        self.matching += 1;
        let after = position.checked_sub(share.skip)?;
        let due = after.is_multiple_of(share.every.max(1))
            && (share.limit == 0 || self.touched < share.limit);
        due.then(|| {
            self.touched += 1;
            self.touched - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Counter, Share};

    #[test]
    fn the_first_pass_then_every_second_is_touched_until_the_limit() {
        let share = Share {
            skip: 1,
            every: 2,
            limit: 2,
        };
        let mut counter = Counter::default();
        let touched: Vec<_> = (0..8).map(|_| counter.next(share)).collect();
        let expected = [None, Some(0), None, Some(1), None, None, None, None];
        assert_eq!(touched, expected);
    }
}
