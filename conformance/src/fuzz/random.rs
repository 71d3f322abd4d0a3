//! The random numbers of one case: the same for the same seed and number, whatever other cases do.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng as _, SeedableRng as _},
};

/// A source of random choices.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The numbers of case `number` of the run with this seed.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(number);
        Self(random)
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 {
            return 0;
        }
        // The bias of the remainder is below one in a billion for the small bounds that cases have.
        u32::try_from(self.0.next_u64() % u64::from(bound)).unwrap_or_default()
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Happens in so many of a hundred cases.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// One of these, each as often as its weight says; `None` when all weights are 0.
    pub fn weighted<T: Clone>(&mut self, choices: &[(u32, T)]) -> Option<T> {
        let total = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(total);
        choices.iter().find_map(|(weight, choice)| {
            if left < *weight {
                return Some(choice.clone());
            }
            left -= weight;
            None
        })
    }

    /// A small number: mostly `low`, seldom `high`.
    pub fn small(&mut self, low: u32, high: u32) -> u32 {
        let once = self.between(low, high);
        once.min(self.between(low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seed: u64, number: u64) -> Vec<u32> {
        let mut random = Random::new(seed, number);
        (0..20).map(|_| random.below(1000)).collect()
    }

    #[test]
    fn the_same_seed_and_number_draw_the_same_and_others_do_not() {
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn what_has_no_weight_is_never_drawn() {
        let mut random = Random::new(0, 0);
        for _ in 0..200 {
            assert_eq!(random.weighted(&[(0, 'a'), (3, 'b'), (0, 'c')]), Some('b'));
        }
        assert_eq!(random.weighted(&[(0, 'a')]), None);
    }
}
