//! Random cases of `chat-ws`.
//!
//! Nothing can be told without a model: a target whose model calls cannot be answered gets empty cases.

use crate::{
    fuzz::{
        Abilities, Case, Step,
        random::Random,
        step::{Ending, GARBAGE, Place},
    },
    profile::FUZZ_CHAT_FRAMES,
};

/// Clients of a case.
const CLIENTS: u32 = 3;

/// A random case of what the target is able to.
pub fn case(random: &mut Random, abilities: &Abilities) -> Case {
    if !abilities.model {
        return Case::default();
    }
    let able = Able {
        restarts: abilities.restarts && random.percent(10),
        bursts: random.percent(15),
        queues: random.percent(35),
        slow: random.percent(10),
        sessions: if random.percent(25) { 2 } else { 1 },
        clients: random.small(1, CLIENTS),
    };
    let mut steps = Vec::new();
    if random.percent(40) {
        steps.push(Step::connect(0, 0));
    }
    for _ in 0..random.between(2, 8) {
        let step = able.step(random);
        if matches!(step, Some(Step::Restart { .. })) && random.percent(40) {
            // A turn that is interrupted.
            steps.push(able.begin(random));
        }
        steps.extend(step);
    }
    Case { steps }
}

/// What the steps of one case are chosen from.
struct Able {
    restarts: bool,
    bursts: bool,
    queues: bool,
    slow: bool,
    sessions: u32,
    clients: u32,
}

#[derive(Clone, Copy)]
enum Kind {
    Turn,
    Begin,
    Finish,
    Cancel,
    Burst,
    Queue,
    Command,
    Continue,
    Connect,
    Read,
    Drop,
    Restart,
}

impl Able {
    fn begin(&self, random: &mut Random) -> Step {
        Step::Begin {
            session: narrow(random.below(self.sessions)),
            words: narrow(random.between(1, 5)),
        }
    }

    fn step(&self, random: &mut Random) -> Option<Step> {
        let when = |able: bool, weight: u32| if able { weight } else { 0 };
        let kind = random.weighted(&[
            (12, Kind::Turn),
            (16, Kind::Begin),
            (9, Kind::Finish),
            (5, Kind::Cancel),
            (when(self.bursts, 14), Kind::Burst),
            (when(self.queues, 18), Kind::Queue),
            (3, Kind::Command),
            (3, Kind::Continue),
            (34, Kind::Connect),
            (when(self.slow, 10), Kind::Read),
            (14, Kind::Drop),
            (when(self.restarts, 18), Kind::Restart),
        ])?;
        let session = narrow(random.below(self.sessions));
        let client = narrow(random.below(self.clients));
        Some(match kind {
            Kind::Turn => turn(random, session),
            Kind::Begin => self.begin(random),
            Kind::Finish => Step::Finish { session },
            Kind::Cancel => Step::Cancel { session },
            Kind::Burst => burst(random, session),
            Kind::Queue => Step::Queue {
                session,
                clear: random.percent(20),
            },
            Kind::Command => Step::Command { session },
            Kind::Continue => Step::Continue { session },
            Kind::Connect => self.connect(random, client, session),
            Kind::Read => Step::Read { client },
            Kind::Drop => Step::Drop { client },
            Kind::Restart => Step::Restart {
                kill: random.percent(50),
            },
        })
    }

    fn connect(&self, random: &mut Random, client: u8, session: u8) -> Step {
        let slow = self.slow && random.percent(35);
        let cut = (!slow && random.percent(12)).then(|| {
            let (frames, bytes) = (random.small(0, 9), random.below(260));
            let short = |number: u32| u16::try_from(number).unwrap_or_default();
            (short(frames), short(bytes))
        });
        Step::Connect {
            client,
            session,
            query: random.percent(95).then(|| place(random)),
            header: None,
            narrow: random.percent(8),
            slow,
            cut,
            race: u8::from(random.percent(10)),
        }
    }
}

fn turn(random: &mut Random, session: u8) -> Step {
    let endings = [(6, Ending::Said), (2, Ending::Failed), (2, Ending::Stopped)];
    Step::Turn {
        session,
        words: narrow(random.between(1, 5)),
        writes: narrow(random.below(3) / 2),
        ending: random.weighted(&endings).unwrap_or_default(),
    }
}

/// About as many frames as the reference server keeps when it is fuzzed, and more.
fn burst(random: &mut Random, session: u8) -> Step {
    let kept = u32::try_from(FUZZ_CHAT_FRAMES).unwrap_or_default();
    let count = random.between(kept.saturating_sub(4), kept + 16);
    Step::Burst {
        session,
        count: u16::try_from(count).unwrap_or_default(),
        bytes: if random.percent(10) { 3000 } else { 0 },
    }
}

fn place(random: &mut Random) -> Place {
    let behind = narrow(random.small(1, 30));
    let ahead = u16::try_from(random.small(0, 2000)).unwrap_or_default();
    let garbage = narrow(random.below(u32::try_from(GARBAGE.len()).unwrap_or_default()));
    let long = [3, 20, 300, 2000, 60_000][random.below(5) as usize % 5];
    let choices = [
        (50, Place::Own),
        (18, Place::Behind(behind)),
        (8, Place::Start),
        (6, Place::Ahead(ahead)),
        (4, Place::Foreign),
        (4, Place::Former),
        (3, Place::OtherSession),
        (2, Place::Empty),
        (2, Place::Digits),
        (6, Place::Garbage(garbage)),
        (2, Place::Long(long)),
    ];
    random.weighted(&choices).unwrap_or(Place::Own)
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

    fn cases(seed: u64, count: u64, abilities: &Abilities) -> Vec<Case> {
        (0..count)
            .map(|number| case(&mut Random::new(seed, number), abilities))
            .collect()
    }

    #[test]
    fn a_seed_repeats_its_cases() {
        assert_eq!(cases(7, 50, &ALL), cases(7, 50, &ALL));
        assert_ne!(cases(7, 50, &ALL), cases(8, 50, &ALL));
    }

    #[test]
    fn a_target_without_a_model_is_asked_for_nothing_and_one_of_others_is_not_restarted() {
        let none = Abilities {
            model: false,
            ..ALL
        };
        assert!(cases(1, 100, &none).iter().all(|it| it.steps.is_empty()));
        let others = Abilities {
            restarts: false,
            ..ALL
        };
        assert!(!cases(1, 500, &others).iter().any(Case::restarts));
    }

    #[test]
    fn every_kind_of_step_and_cursor_comes_up() {
        let text: String = cases(3, 2000, &ALL).iter().map(Case::to_json).collect();
        for name in [
            "turn",
            "begin",
            "finish",
            "cancel",
            "burst",
            "queue",
            "command",
            "continue",
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
