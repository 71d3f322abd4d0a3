//! Random cases of `covel-sse`.
//!
//! Most cases are short, because most faults need little: a few events, a connection that was lost, one that comes
//! back. What is slow (turns, restarts, more events than a buffer holds) is rare.

use crate::fuzz::{
    Abilities, Case, Step,
    random::Random,
    step::{Ending, GARBAGE, Place},
};

/// Clients of a case.
const CLIENTS: u32 = 3;

/// A random case of what the target is able to.
pub fn case(random: &mut Random, abilities: &Abilities) -> Case {
    let able = Able {
        turns: abilities.model && random.percent(30),
        restarts: abilities.restarts && random.percent(6),
        bursts: abilities.fixtures && random.percent(4),
        losses: abilities.fixtures && abilities.model && random.percent(8),
        slow: random.percent(8),
        sessions: if random.percent(30) { 2 } else { 1 },
        clients: random.small(1, CLIENTS),
    };
    let mut steps = Vec::new();
    if random.percent(70) {
        steps.push(Step::connect(0, 0));
    }
    let length = random.between(2, 9);
    for _ in 0..length {
        steps.extend(able.step(random));
    }
    if abilities.fixtures && random.below(400) == 0 {
        overrun(&mut steps, random);
    }
    Case { steps }
}

/// What the steps of one case are chosen from.
struct Able {
    turns: bool,
    restarts: bool,
    bursts: bool,
    losses: bool,
    slow: bool,
    sessions: u32,
    clients: u32,
}

#[derive(Clone, Copy)]
enum Kind {
    Write,
    Turn,
    Begin,
    Finish,
    Burst,
    LosePublish,
    Connect,
    Read,
    Drop,
    Restart,
}

impl Able {
    fn step(&self, random: &mut Random) -> Option<Step> {
        let when = |able: bool, weight: u32| if able { weight } else { 0 };
        let kind = random.weighted(&[
            (30, Kind::Write),
            (35, Kind::Connect),
            (20, Kind::Drop),
            (when(self.turns, 10), Kind::Turn),
            (when(self.turns, 4), Kind::Begin),
            (when(self.turns, 6), Kind::Finish),
            (when(self.bursts, 8), Kind::Burst),
            (when(self.losses, 10), Kind::LosePublish),
            (when(self.slow, 8), Kind::Read),
            (when(self.restarts, 20), Kind::Restart),
        ])?;
        let session = narrow(random.below(self.sessions));
        let client = narrow(random.below(self.clients));
        Some(match kind {
            Kind::Write => Step::Write {
                session,
                count: narrow(random.small(1, 8)),
            },
            Kind::Turn => Step::Turn {
                session,
                words: narrow(random.between(1, 4)),
                writes: narrow(random.below(3)),
                ending: random
                    .weighted(&[(6, Ending::Said), (2, Ending::Failed), (2, Ending::Stopped)])
                    .unwrap_or_default(),
            },
            Kind::Begin => Step::Begin {
                session,
                words: narrow(random.between(1, 3)),
            },
            Kind::Finish => Step::Finish { session },
            Kind::Burst => Step::Burst {
                session,
                count: u16::try_from(random.between(20, 400)).unwrap_or(20),
                bytes: u16::try_from(random.below(3) * 700).unwrap_or_default(),
            },
            Kind::LosePublish => Step::LosePublish { session },
            Kind::Connect => self.connect(random, client, session),
            Kind::Read => Step::Read { client },
            Kind::Drop => Step::Drop { client },
            Kind::Restart => Step::Restart {
                kill: random.percent(50),
            },
        })
    }

    fn connect(&self, random: &mut Random, client: u8, session: u8) -> Step {
        let query = random.percent(75).then(|| place(random));
        let header = if query.is_none() {
            random.percent(70).then(|| place(random))
        } else {
            random.percent(20).then(|| place(random))
        };
        let slow = self.slow && random.percent(30);
        let cut = (!slow && random.percent(15)).then(|| {
            let (frames, bytes) = (random.small(0, 12), random.below(260));
            (
                u16::try_from(frames).unwrap_or_default(),
                u16::try_from(bytes).unwrap_or_default(),
            )
        });
        Step::Connect {
            client,
            session,
            query,
            header,
            narrow: random.percent(10),
            slow,
            cut,
            race: if random.percent(12) {
                narrow(random.between(1, 6))
            } else {
                0
            },
        }
    }
}

fn place(random: &mut Random) -> Place {
    let behind = narrow(random.small(1, 8));
    let ahead = u16::try_from(random.small(0, 2000)).unwrap_or_default();
    let garbage = narrow(random.below(u32::try_from(GARBAGE.len()).unwrap_or_default()));
    let long = [300, 2000, 9000, 60_000][random.below(4) as usize % 4];
    let choices = [
        (40, Place::Own),
        (20, Place::Behind(behind)),
        (8, Place::Start),
        (7, Place::Ahead(ahead)),
        (5, Place::Foreign),
        (8, Place::Former),
        (4, Place::OtherSession),
        (3, Place::Empty),
        (3, Place::Digits),
        (5, Place::Garbage(garbage)),
        (2, Place::Long(long)),
    ];
    random.weighted(&choices).unwrap_or(Place::Own)
}

/// More events than a buffer holds, between two connections of one client.
fn overrun(steps: &mut Vec<Step>, random: &mut Random) {
    steps.push(Step::connect(0, 0));
    steps.push(Step::Write {
        session: 0,
        count: 3,
    });
    steps.push(Step::Drop { client: 0 });
    steps.push(Step::Burst {
        session: 0,
        count: u16::try_from(random.between(980, 1100)).unwrap_or(1000),
        bytes: 0,
    });
    steps.push(Step::connect(0, 0));
}

fn narrow(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Abilities = Abilities {
        model: true,
        fixtures: true,
        restarts: true,
    };

    #[test]
    fn a_seed_repeats_its_cases() {
        let cases = |seed| -> Vec<Case> {
            (0..50)
                .map(|number| case(&mut Random::new(seed, number), &ALL))
                .collect()
        };
        assert_eq!(cases(7), cases(7));
        assert_ne!(cases(7), cases(8));
    }

    #[test]
    fn a_target_that_can_do_little_is_asked_for_little() {
        let none = Abilities {
            model: false,
            fixtures: false,
            restarts: false,
        };
        for number in 0..500 {
            for step in case(&mut Random::new(1, number), &none).steps {
                let plain = matches!(
                    step,
                    Step::Write { .. }
                        | Step::Connect { .. }
                        | Step::Read { .. }
                        | Step::Drop { .. }
                );
                assert!(plain, "{step:?}");
            }
        }
    }

    #[test]
    fn every_kind_of_step_and_cursor_comes_up() {
        let text: String = (0..3000)
            .map(|number| case(&mut Random::new(3, number), &ALL).to_json())
            .collect();
        for name in [
            "write",
            "turn",
            "begin",
            "finish",
            "burst",
            "lose-publish",
            "connect",
            "read",
            "drop",
            "restart",
            "own",
            "behind",
            "start",
            "ahead",
            "foreign",
            "former",
            "other-session",
            "empty",
            "digits",
            "garbage",
            "long",
        ] {
            assert!(text.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
