//! Random cases of `session-update`. There is no cursor: a place other than the client's own asks for a session that
//! does not exist, or in a wrong form, before the client subscribes as it should.

use crate::fuzz::{
    Abilities, Case, Step,
    random::Random,
    step::{Ending, GARBAGE, Place},
};

/// A random case of what the target is able to.
pub fn case(random: &mut Random, abilities: &Abilities) -> Case {
    let restarts = abilities.restarts && random.percent(5);
    let slow = random.percent(12);
    let sessions = if random.percent(25) { 2 } else { 1 };
    let clients = random.small(1, 3);
    let mut steps = Vec::new();
    for _ in 0..random.between(2, 7) {
        let session = small(random.below(sessions));
        let client = small(random.below(clients));
        let when = |able: bool, weight: u32| if able { weight } else { 0 };
        let choices = [
            (when(abilities.model, 30), 0),
            (when(abilities.model, 6), 1),
            (when(abilities.model, 8), 2),
            (40, 3),
            (16, 4),
            (when(slow, 12), 6),
            (when(restarts, 15), 5),
        ];
        steps.push(match random.weighted(&choices).unwrap_or(3) {
            0 => Step::Turn {
                session,
                words: small(random.between(1, 4)),
                writes: small(random.below(2)),
                ending: random
                    .weighted(&[(7, Ending::Said), (2, Ending::Failed), (2, Ending::Stopped)])
                    .unwrap_or_default(),
            },
            1 => Step::Begin {
                session,
                words: small(random.between(1, 3)),
            },
            2 => Step::Finish { session },
            3 => connect(random, client, session, abilities.model, slow),
            4 => Step::Drop { client },
            6 => Step::Read { client },
            _ => Step::Restart {
                kill: random.percent(50),
            },
        });
    }
    Case { steps }
}

fn connect(random: &mut Random, client: u8, session: u8, turns: bool, slow: bool) -> Step {
    let garbage = small(random.below(u32::try_from(GARBAGE.len()).unwrap_or_default()));
    let places = [
        (60, Place::Own),
        (8, Place::Foreign),
        (5, Place::Empty),
        (5, Place::Digits),
        (8, Place::Garbage(garbage)),
        (3, Place::Long(5000)),
    ];
    let slow = slow && random.percent(50);
    let breaks = !slow && random.percent(12);
    Step::Connect {
        client,
        session,
        query: random.weighted(&places),
        header: None,
        narrow: false,
        slow,
        cut: breaks.then(|| cut(random)),
        race: u8::from(turns && random.percent(15)),
    }
}

fn cut(random: &mut Random) -> (u16, u16) {
    let (lines, bytes) = (random.small(0, 9), random.below(200));
    let short = |number: u32| u16::try_from(number).unwrap_or_default();
    (short(lines), short(bytes))
}

fn small(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_cases() {
        let all = Abilities {
            model: true,
            fixtures: true,
            restarts: true,
        };
        let cases = |seed| -> Vec<Case> {
            (0..50)
                .map(|number| case(&mut Random::new(seed, number), &all))
                .collect()
        };
        assert_eq!(cases(7), cases(7));
        assert_ne!(cases(7), cases(8));
    }
}
