//! Smaller cases that break the same.
//!
//! First whole steps go, in ever smaller runs (delta debugging), then the steps that are left get simpler. Every
//! candidate is played; one counts when it breaks one of the requirements that the whole case breaks. Each candidate
//! is smaller than the one before, so it ends; the number of candidates is bounded all the same.

use std::future::Future;

use super::{
    Case, Step,
    step::{Ending, Place},
};

/// Candidates that are usually played at most.
pub const TRIES: usize = 250;

/// Makes a case smaller as long as `fails` says that it still fails, with `most` candidates at most. Gives the smallest one that does, and how many
/// candidates were tried.
pub async fn shrink<F, Fut>(
    case: Case,
    most: usize,
    simpler: impl Fn(&Step) -> Vec<Step>,
    mut fails: F,
) -> (Case, usize)
where
    F: FnMut(Case) -> Fut,
    Fut: Future<Output = bool>,
{
    let (mut best, mut tries) = (case, 0);
    loop {
        let before = best.clone();
        let mut run = best.steps.len().div_ceil(2).max(1);
        loop {
            let mut place = 0;
            while place < best.steps.len() && tries < most {
                let mut candidate = best.clone();
                let end = (place + run).min(candidate.steps.len());
                candidate.steps.drain(place..end);
                tries += 1;
                if fails(candidate.clone()).await {
                    best = candidate;
                } else {
                    place += run;
                }
            }
            if run == 1 {
                break;
            }
            run = run.div_ceil(2);
        }
        for place in 0..best.steps.len() {
            while tries < most {
                let mut found = false;
                for step in simpler(&best.steps[place]) {
                    let mut candidate = best.clone();
                    candidate.steps[place] = step;
                    tries += 1;
                    if fails(candidate.clone()).await {
                        best = candidate;
                        found = true;
                        break;
                    }
                }
                if !found {
                    break;
                }
            }
        }
        if best == before || tries >= most {
            return (best, tries);
        }
    }
}

/// Simpler forms of a step, the simplest first. Each is smaller by some count, so that making steps simpler ends.
pub fn simpler(step: &Step) -> Vec<Step> {
    let mut found = Vec::new();
    match step.clone() {
        Step::Write { session, count } => {
            let counts = [1, count / 2, count.saturating_sub(1)];
            found.extend(
                counts
                    .into_iter()
                    .filter(|smaller| (1..count).contains(smaller))
                    .map(|count| Step::Write { session, count }),
            );
        }
        Step::Turn {
            session,
            words,
            writes,
            ending,
        } => {
            found.push(Step::Write { session, count: 1 });
            let turn = |words, writes, ending| Step::Turn {
                session,
                words,
                writes,
                ending,
            };
            if ending != Ending::Said {
                found.push(turn(words, writes, Ending::Said));
            }
            if writes > 0 {
                found.push(turn(words, 0, ending));
            }
            if words > 1 {
                found.push(turn(1, writes, ending));
            }
        }
        Step::Begin { session, words } if words > 1 => {
            found.push(Step::Begin { session, words: 1 })
        }
        Step::Burst {
            session,
            count,
            bytes,
        } => {
            found.push(Step::Write { session, count: 3 });
            if bytes > 0 {
                found.push(Step::Burst {
                    session,
                    count,
                    bytes: 0,
                });
            }
            if count > 1 {
                found.push(Step::Burst {
                    session,
                    count: count / 2,
                    bytes,
                });
            }
        }
        Step::Connect { .. } => found.extend(simpler_connections(step)),
        Step::Restart { kill: true } => found.push(Step::Restart { kill: false }),
        _ => {}
    }
    found.extend(in_first_session(step));
    found
}

fn simpler_connections(step: &Step) -> Vec<Step> {
    let mut found = Vec::new();
    let mut with = |change: &dyn Fn(&mut Step)| {
        let mut changed = step.clone();
        change(&mut changed);
        if changed != *step {
            found.push(changed);
        }
    };
    let as_connect = |step: &mut Step, change: &dyn Fn(Parts<'_>)| {
        if let Step::Connect {
            query,
            header,
            narrow,
            slow,
            cut,
            race,
            ..
        } = step
        {
            change(Parts {
                query,
                header,
                narrow,
                slow,
                cut,
                race,
            });
        }
    };
    with(&|step| as_connect(step, &|parts| *parts.race = 0));
    with(&|step| as_connect(step, &|parts| *parts.slow = false));
    with(&|step| as_connect(step, &|parts| *parts.cut = None));
    with(&|step| as_connect(step, &|parts| *parts.narrow = false));
    with(&|step| {
        as_connect(step, &|parts| {
            if parts.query.is_some() {
                *parts.header = None;
            }
        });
    });
    with(&|step| as_connect(step, &|parts| simplify(parts.query)));
    with(&|step| as_connect(step, &|parts| simplify(parts.header)));
    found
}

/// The parts of a connection that can be simpler.
struct Parts<'s> {
    query: &'s mut Option<Place>,
    header: &'s mut Option<Place>,
    narrow: &'s mut bool,
    slow: &'s mut bool,
    cut: &'s mut Option<(u16, u16)>,
    race: &'s mut u8,
}

/// A cursor that says less: the protocol's own, or a smaller distance.
fn simplify(place: &mut Option<Place>) {
    *place = match *place {
        Some(Place::Behind(events)) if events > 1 => Some(Place::Behind(events / 2)),
        Some(Place::Ahead(events)) if events > 0 => Some(Place::Ahead(events / 2)),
        Some(Place::Long(_) | Place::Garbage(1..)) => Some(Place::Garbage(0)),
        Some(Place::Behind(_)) => Some(Place::Own),
        other => other,
    };
}

/// The same step in the first session, by the first client.
fn in_first_session(step: &Step) -> Option<Step> {
    let mut changed = step.clone();
    match &mut changed {
        Step::Write { session, .. }
        | Step::Turn { session, .. }
        | Step::Begin { session, .. }
        | Step::Finish { session }
        | Step::Burst { session, .. }
        | Step::LosePublish { session }
        | Step::Queue { session, .. }
        | Step::Command { session }
        | Step::Continue { session }
        | Step::Cancel { session } => *session = 0,
        Step::Connect {
            session, client, ..
        } => {
            if *session > 0 {
                *session = 0;
            } else {
                *client = 0;
            }
        }
        Step::Read { client } | Step::Drop { client } => *client = 0,
        Step::Restart { .. } => {}
    }
    (changed != *step).then_some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(count: u8) -> Step {
        Step::Write { session: 0, count }
    }

    #[tokio::test]
    async fn what_is_not_needed_goes_and_what_is_left_gets_simpler() {
        let mut steps = vec![write(1); 9];
        steps.insert(4, Step::Restart { kill: true });
        steps.push(write(8));
        let needs = |case: Case| async move {
            let restarts = case.restarts();
            let writes = |step: &Step| matches!(step, Step::Write { count: 3.., .. });
            restarts && case.steps.iter().any(writes)
        };
        let (case, tries) = shrink(Case { steps }, TRIES, simpler, needs).await;
        assert_eq!(case.steps, [Step::Restart { kill: false }, write(3)]);
        assert!(tries < 60, "{tries}");
    }

    #[test]
    fn making_a_step_simpler_comes_to_an_end() {
        let mut left = vec![
            Step::Turn {
                session: 1,
                words: 4,
                writes: 2,
                ending: Ending::Failed,
            },
            Step::Connect {
                client: 2,
                session: 1,
                query: Some(Place::Long(9000)),
                header: Some(Place::Behind(8)),
                narrow: true,
                slow: true,
                cut: Some((3, 4)),
                race: 5,
            },
            Step::Burst {
                session: 1,
                count: 400,
                bytes: 700,
            },
        ];
        let mut steps = 0;
        while let Some(step) = left.pop() {
            steps += 1;
            assert!(steps < 5_000, "{step:?}");
            // The simplest one that is always taken, as when every candidate fails.
            left.extend(simpler(&step).into_iter().take(2));
        }
    }
}
