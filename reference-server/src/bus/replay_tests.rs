//! The replay buffer: cursors, epochs, and what is evicted.

use proptest::prelude::*;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn table(buffer: usize, tracked: usize) -> ReplayTable<u32, String> {
    let limits = ReplayLimits {
        buffer,
        tracked,
        idle_ttl: 30 * MINUTE,
    };
    let mut number = 0;
    ReplayTable::new(limits, move || {
        number += 1;
        format!("e{number}")
    })
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn emit(table: &mut ReplayTable<u32, String>, key: u32) -> String {
    table.publish(&key, at(0), Retention::Replayable, |id| id.to_string())
}

fn trace(table: &mut ReplayTable<u32, String>, key: u32) -> String {
    table.publish(&key, at(0), Retention::LiveOnly, |id| id.to_string())
}

fn resume(table: &mut ReplayTable<u32, String>, key: u32, cursor: &str) -> Resume<String> {
    table.resume(&key, at(0), Cursor::parse(cursor).ok())
}

fn replay(ids: &[&str]) -> Resume<String> {
    Resume::Replay(ids.iter().map(ToString::to_string).collect())
}

#[test]
fn the_first_event_of_an_epoch_has_seq_one_and_none_has_zero() {
    let mut table = table(10, 4);

    assert_eq!(table.position(&1, at(0)).cursor().to_string(), "e1:0");
    assert_eq!(emit(&mut table, 1), "e1:1");
    assert_eq!(table.position(&1, at(0)).cursor().to_string(), "e1:1");
}

#[test]
fn a_cursor_is_continued_with_the_events_after_it_in_order() {
    let mut table = table(10, 4);
    for _ in 0..4 {
        emit(&mut table, 1);
    }

    assert_eq!(resume(&mut table, 1, "e1:2"), replay(&["e1:3", "e1:4"]));
    assert_eq!(
        resume(&mut table, 1, "e1:0"),
        replay(&["e1:1", "e1:2", "e1:3", "e1:4"])
    );
    assert_eq!(resume(&mut table, 1, "e1:4"), replay(&[]));
}

#[test]
fn the_sessions_count_on_their_own() {
    let mut table = table(10, 4);
    emit(&mut table, 1);
    emit(&mut table, 1);

    assert_eq!(emit(&mut table, 2), "e2:1");
    assert_eq!(emit(&mut table, 1), "e1:3");
}

#[test]
fn a_foreign_epoch_is_an_epoch_change_whatever_its_seq() {
    let mut table = table(2, 4);
    for _ in 0..5 {
        emit(&mut table, 1);
    }

    for cursor in ["gone:1", "gone:5", "gone:900000"] {
        assert_eq!(
            resume(&mut table, 1, cursor),
            Resume::Reset(ResetReason::EpochChange),
            "{cursor}"
        );
    }
}

#[test]
fn what_is_no_cursor_is_an_epoch_change() {
    let mut table = table(10, 4);
    emit(&mut table, 1);

    assert_eq!(
        table.resume(&1, at(0), None),
        Resume::Reset(ResetReason::EpochChange)
    );
}

#[test]
fn a_cursor_from_the_future_is_a_gap() {
    let mut table = table(10, 4);
    emit(&mut table, 1);

    assert_eq!(
        resume(&mut table, 1, "e1:2"),
        Resume::Reset(ResetReason::Gap)
    );
    assert_eq!(
        resume(&mut table, 1, "e1:9007199254740991"),
        Resume::Reset(ResetReason::Gap)
    );
}

#[test]
fn the_ring_bridges_from_one_before_its_oldest_event_and_no_earlier() {
    let mut table = table(3, 4);
    for _ in 0..5 {
        emit(&mut table, 1);
    }

    assert_eq!(table.position(&1, at(0)).oldest_seq, 3);
    assert_eq!(
        resume(&mut table, 1, "e1:1"),
        Resume::Reset(ResetReason::Gap)
    );
    assert_eq!(
        resume(&mut table, 1, "e1:2"),
        replay(&["e1:3", "e1:4", "e1:5"])
    );
    assert_eq!(resume(&mut table, 1, "e1:3"), replay(&["e1:4", "e1:5"]));
}

#[test]
fn diagnostics_take_numbers_and_no_room() {
    let mut table = table(2, 4);
    trace(&mut table, 1);
    emit(&mut table, 1);
    for _ in 0..9 {
        trace(&mut table, 1);
    }
    assert_eq!(emit(&mut table, 1), "e1:12");

    assert_eq!(resume(&mut table, 1, "e1:0"), replay(&["e1:2", "e1:12"]));
    assert_eq!(resume(&mut table, 1, "e1:7"), replay(&["e1:12"]));
}

#[test]
fn a_cursor_among_diagnostics_alone_is_continued_with_nothing() {
    let mut table = table(2, 4);
    for _ in 0..5 {
        trace(&mut table, 1);
    }

    let position = table.position(&1, at(0));
    assert_eq!((position.oldest_seq, position.latest_seq), (0, 5));
    assert_eq!(resume(&mut table, 1, "e1:3"), replay(&[]));
}

#[test]
fn a_restart_empties_the_ring_and_gives_a_new_epoch() {
    let mut table = table(10, 4);
    emit(&mut table, 1);
    table.pin(&1, at(0));

    let position = table.restart(&1, at(0));

    assert_eq!(position.cursor().to_string(), "e2:0");
    assert_eq!((position.oldest_seq, position.latest_seq), (0, 0));
    assert_eq!(
        resume(&mut table, 1, "e1:1"),
        Resume::Reset(ResetReason::EpochChange)
    );
    assert_eq!(emit(&mut table, 1), "e2:1");
}

/// COV-SUB-091.
#[test]
fn without_subscriptions_the_target_holds() {
    let mut table = table(10, 256);
    for key in 0..400 {
        emit(&mut table, key);
        assert!(table.tracked() <= 256);
    }

    assert_eq!(table.tracked(), 256);
}

/// COV-SUB-096.
#[test]
fn once_the_pins_are_released_a_later_access_clears_down_to_the_target() {
    let mut table = table(10, 256);
    for key in 0..300 {
        table.pin(&key, at(0));
    }
    assert_eq!(table.tracked(), 300);
    for key in 0..300 {
        table.unpin(&key, at(1));
    }
    assert_eq!(table.tracked(), 300, "releasing clears nothing by itself");

    emit(&mut table, 1000);

    assert_eq!(table.tracked(), 256);
}

#[test]
fn a_pinned_state_outlives_pressure_and_time() {
    let mut table = table(10, 4);
    table.pin(&1, at(0));
    table.pin(&1, at(0));
    emit(&mut table, 1);
    table.unpin(&1, at(1));
    for key in 10..30 {
        table.position(&key, at(7200));
    }

    assert_eq!(
        table.resume(&1, at(7200), Cursor::parse("e1:0").ok()),
        replay(&["e1:1"])
    );
}

#[test]
fn the_new_pin_over_the_target_is_not_hit_by_its_own_cleanup() {
    let mut table = table(10, 256);
    for key in 0..=256 {
        table.pin(&key, at(0));
    }
    let connected = table.position(&256, at(0)).cursor();

    assert_eq!(table.tracked(), 257);
    assert_eq!(
        emit(&mut table, 256),
        CursorBuf::new(connected.epoch, 1).to_string()
    );
}

#[test]
fn the_least_recently_used_state_goes_first() {
    let mut table = table(10, 4);
    for key in 1..=4 {
        emit(&mut table, key);
    }
    emit(&mut table, 1);
    emit(&mut table, 5);

    assert!(table.tracks(&1));
    assert!(!table.tracks(&2));
}

#[test]
fn an_idle_state_is_rebuilt_with_a_new_epoch_after_its_ttl() {
    let mut table = table(10, 4);
    emit(&mut table, 1);

    let edge = 30 * MINUTE;
    assert_eq!(
        table.resume(&1, edge, Cursor::parse("e1:1").ok()),
        replay(&[])
    );
    let late = edge + 30 * MINUTE + at(1);
    assert_eq!(
        table.resume(&1, late, Cursor::parse("e1:1").ok()),
        Resume::Reset(ResetReason::EpochChange)
    );
}

#[test]
fn the_ttl_runs_from_the_end_of_the_last_subscription() {
    let mut table = table(10, 4);
    table.pin(&1, at(0));
    emit(&mut table, 1);
    table.unpin(&1, 90 * MINUTE);

    assert_eq!(
        table.resume(&1, 100 * MINUTE, Cursor::parse("e1:0").ok()),
        replay(&["e1:1"])
    );
}

#[test]
fn an_access_to_one_session_clears_others_that_have_been_idle_too_long() {
    let mut table = table(10, 4);
    emit(&mut table, 1);
    table.position(&2, 31 * MINUTE);

    assert!(!table.tracks(&1));
}

#[test]
fn a_forgotten_state_takes_late_unpins() {
    let mut table = table(10, 4);
    table.pin(&1, at(0));
    table.forget(&1);
    table.unpin(&1, at(0));

    assert_eq!(emit(&mut table, 1), "e2:1");
    table.unpin(&1, at(0));
    assert_eq!(emit(&mut table, 1), "e2:2");
}

/// One step of a random life of a server with two sessions and three subscribers of each.
#[derive(Clone, Debug)]
enum Step {
    Emit { key: u32, retention: Retention },
    Connect { client: usize },
    Disconnect { client: usize },
    Lose { key: u32 },
    Crowd { sessions: u32 },
    Wait { minutes: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..2_u32;
    let client = 0..6_usize;
    let retention = prop_oneof![3 => Just(Retention::Replayable), 1 => Just(Retention::LiveOnly)];
    let step = prop_oneof![
        8 => (key.clone(), retention).prop_map(|(key, retention)| Step::Emit { key, retention }),
        4 => client.clone().prop_map(|client| Step::Connect { client }),
        3 => client.prop_map(|client| Step::Disconnect { client }),
        1 => key.prop_map(|key| Step::Lose { key }),
        1 => (1..6_u32).prop_map(|sessions| Step::Crowd { sessions }),
        1 => (1..40_u32).prop_map(|minutes| Step::Wait { minutes }),
    ];
    proptest::collection::vec(step, 1..120)
}

/// A subscriber that follows the protocol: keeps the newest id, adopts a reset's cursor, reads the
/// whole state again then.
#[derive(Default)]
struct Client {
    is_connected: bool,
    cursor: Option<CursorBuf>,
    /// Numbers of the replayable events that it knows, from the state or from events.
    known: Vec<u64>,
}

/// An event in the model: its id, and how many replayable ones of its session came up to it.
type Numbered = (CursorBuf, u64);

#[derive(Default)]
struct World {
    clients: [Client; 6],
    emitted: [u64; 2],
    now: Duration,
}

impl World {
    fn key(client: usize) -> u32 {
        if client < 3 { 0 } else { 1 }
    }

    /// The client reads the whole state.
    fn refetch(&mut self, client: usize) {
        let all = 1..=self.emitted[Self::key(client) as usize];
        self.clients[client].known = all.collect();
    }

    fn take(&mut self, client: usize, (id, number): Numbered, retention: Retention) {
        let client = &mut self.clients[client];
        if let Some(cursor) = client
            .cursor
            .as_ref()
            .filter(|cursor| cursor.epoch == id.epoch)
        {
            assert!(id.seq > cursor.seq, "seq rises strictly within an epoch");
        }
        client.cursor = Some(id);
        if retention == Retention::Replayable {
            client.known.push(number);
        }
    }

    fn connect(&mut self, table: &mut ReplayTable<u32, Numbered>, client: usize) {
        let key = Self::key(client);
        if std::mem::replace(&mut self.clients[client].is_connected, true) {
            return;
        }
        table.pin(&key, self.now);
        let position = table.position(&key, self.now);
        let Some(cursor) = self.clients[client].cursor.clone() else {
            self.clients[client].cursor = Some(position.cursor());
            self.refetch(client);
            return;
        };
        match table.resume(&key, self.now, Some(cursor.as_cursor())) {
            Resume::Reset(_) => {
                self.clients[client].cursor = Some(position.cursor());
                self.refetch(client);
            }
            Resume::Replay(events) => {
                for event in events {
                    self.take(client, event, Retention::Replayable);
                }
            }
        }
    }

    fn disconnect(&mut self, table: &mut ReplayTable<u32, Numbered>, client: usize) {
        if std::mem::replace(&mut self.clients[client].is_connected, false) {
            table.unpin(&Self::key(client), self.now);
        }
    }

    fn emit(&mut self, table: &mut ReplayTable<u32, Numbered>, key: u32, retention: Retention) {
        let number = &mut self.emitted[key as usize];
        *number += u64::from(retention == Retention::Replayable);
        let number = *number;
        let event = table.publish(&key, self.now, retention, |id| (id, number));
        for client in 0..self.clients.len() {
            if Self::key(client) == key && self.clients[client].is_connected {
                self.take(client, event.clone(), retention);
            }
        }
    }

    /// An event was lost: whoever is connected gets a reset, reads again, and is closed.
    fn lose(&mut self, table: &mut ReplayTable<u32, Numbered>, key: u32) {
        self.emitted[key as usize] += 1;
        let position = table.restart(&key, self.now);
        for client in 0..self.clients.len() {
            if Self::key(client) == key && self.clients[client].is_connected {
                self.clients[client].cursor = Some(position.cursor());
                self.refetch(client);
                self.disconnect(table, client);
            }
        }
    }

    fn step(&mut self, table: &mut ReplayTable<u32, Numbered>, step: Step) {
        match step {
            Step::Emit { key, retention } => self.emit(table, key, retention),
            Step::Connect { client } => self.connect(table, client),
            Step::Disconnect { client } => self.disconnect(table, client),
            Step::Lose { key } => self.lose(table, key),
            Step::Crowd { sessions } => {
                for other in 0..sessions {
                    table.position(&(100 + other), self.now);
                }
            }
            Step::Wait { minutes } => self.now += minutes * MINUTE,
        }
    }
}

proptest! {
    /// Whatever happens, a client that follows the protocol ends with every event exactly once, in
    /// order, or had a reset and read the state.
    #[test]
    fn no_event_is_lost_or_doubled_behind_a_cursor(steps in steps()) {
        let limits = ReplayLimits { buffer: 5, tracked: 3, idle_ttl: 30 * MINUTE };
        let mut epoch = 0;
        let mut table = ReplayTable::new(limits, move || {
            epoch += 1;
            format!("e{epoch}")
        });
        let mut world = World::default();
        for step in steps {
            world.step(&mut table, step);
            prop_assert!(table.tracked() <= 3 + 2, "two pinned and one in use at most above");
        }

        for client in 0..world.clients.len() {
            world.connect(&mut table, client);
            let all: Vec<u64> = (1..=world.emitted[World::key(client) as usize]).collect();
            prop_assert_eq!(&world.clients[client].known, &all);
        }
    }

    /// The decision alone, against the sentence of the seed.
    #[test]
    fn the_decision_is_the_one_of_the_seed(
        oldest in 1..50_u64, len in 1..50_u64, seq in 0..120_u64, moved: bool, same: bool,
    ) {
        let latest = oldest + len - 1;
        let position = Position {
            epoch: "e".into(), oldest_seq: oldest, latest_seq: latest, has_moved_on: moved,
        };
        let cursor = Cursor { epoch: if same { "e" } else { "f" }, seq };

        let expected = if !same {
            Err(ResetReason::EpochChange)
        } else if seq > latest || (moved && seq + 1 < oldest) {
            Err(ResetReason::Gap)
        } else {
            Ok(())
        };
        prop_assert_eq!(position.bridges(Some(cursor)), expected);
    }
}
