//! Whether a program has worked off what has reached it, and how long it had to wait for its turn.
//!
//! Linux tells which threads run or want to, and for how long they wanted to. A program with such a thread may not have
//! had its turn yet on a busy machine, so its silence says nothing. Other systems do not tell; there a program counts as
//! one that is at rest and was never kept waiting.
//!
//! Source: `proc_pid_stat(5)`; `Documentation/scheduler/sched-stats.rst` of the kernel.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::Rests;
use crate::drivers::target::Pending;

/// Longest wait for a program to be at rest.
const RESTS_WITHIN: Duration = Duration::from_secs(2);

/// A program that so often was not at rest within that time never is, and is not waited for any more.
const RESTLESS: u32 = 3;

/// The time from one look to the next.
const LOOK: Duration = Duration::from_millis(3);

/// Time in which what a program has sent last arrives here.
const ARRIVES_WITHIN: Duration = Duration::from_millis(30);

/// Processes below the program that are looked at.
const PROCESSES: usize = 64;

/// A program, which is looked at from outside.
#[derive(Debug)]
pub(super) struct Program {
    id: u32,
    restless: AtomicU32,
}

impl Program {
    pub(super) fn new(id: u32) -> Self {
        Self {
            id,
            restless: AtomicU32::new(0),
        }
    }
}

impl Rests for Program {
    fn rest(&self) -> Pending<'_, ()> {
        Box::pin(async {
            let until = Instant::now() + RESTS_WITHIN;
            let mut worked = false;
            while self.restless.load(Ordering::Relaxed) < RESTLESS && works(self.id) {
                worked = true;
                if Instant::now() >= until {
                    self.restless.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                sleep(LOOK).await;
            }
            if worked {
                sleep(ARRIVES_WITHIN).await;
            }
        })
    }

    fn kept_waiting(&self) -> Duration {
        let mut longest = Duration::ZERO;
        any_thread(self.id, |task| {
            let waited = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            longest = longest.max(waited_for_a_processor(&waited));
            false
        });
        longest
    }
}

/// Whether a thread of this process, or of one that it has started, runs or wants to.
fn works(id: u32) -> bool {
    any_thread(id, is_at_work)
}

/// Whether a thread of this process, or of one that it has started, is such; none is looked at after the first that is.
fn any_thread(id: u32, mut is_such: impl FnMut(&Path) -> bool) -> bool {
    let mut processes = vec![PathBuf::from(format!("/proc/{id}"))];
    let mut looked = 0;
    while let Some(process) = processes.pop() {
        looked += 1;
        let tasks = fs::read_dir(process.join("task")).into_iter().flatten();
        for task in tasks.flatten().map(|task| task.path()) {
            if is_such(&task) {
                return true;
            }
            if looked + processes.len() < PROCESSES {
                let children = fs::read_to_string(task.join("children")).unwrap_or_default();
                let children = children.split_whitespace();
                processes.extend(children.map(|child| Path::new("/proc").join(child)));
            }
        }
    }
    false
}

/// The second number of a thread's `schedstat`: nanoseconds in which it could have run and did not.
fn waited_for_a_processor(schedstat: &str) -> Duration {
    let nanos = schedstat.split_whitespace().nth(1);
    let nanos = nanos.and_then(|nanos| nanos.parse().ok());
    nanos.map_or(Duration::ZERO, Duration::from_nanos)
}

/// Whether this thread runs or wants to, or waits for a disk.
fn is_at_work(task: &Path) -> bool {
    let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
    // The name before it is in parentheses, and may hold any.
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| state.starts_with(['R', 'D']))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::{
        os::unix::process::CommandExt as _,
        process::{Child, Command},
    };

    use super::*;
    use crate::drivers::process::Group;

    /// A program that is killed, with what it has started, when the test ends, however it does.
    struct Running(Child);

    impl Running {
        fn shell(script: &str) -> Self {
            let mut command = Command::new("sh");
            command.args(["-c", script]).process_group(0);
            Self(command.spawn().unwrap())
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            Group(Some(self.0.id())).kill();
            let _ = self.0.wait();
        }
    }

    #[tokio::test]
    async fn a_program_that_sleeps_is_at_rest() {
        let sleeps = Running::shell("exec sleep 600");
        let program = Program::new(sleeps.0.id());
        while works(program.id) {
            sleep(LOOK).await;
        }
        program.rest().await;
        assert_eq!(program.restless.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_program_that_never_rests_is_not_waited_for_for_ever() {
        let spins = Running::shell("while :; do :; done");
        let program = Program::new(spins.0.id());
        while !works(program.id) {
            sleep(LOOK).await;
        }
        program.restless.store(RESTLESS, Ordering::Relaxed);
        program.rest().await;
    }

    #[tokio::test]
    async fn what_a_program_has_started_counts_as_the_program() {
        let waits = Running::shell("(while :; do :; done) & wait");
        let id = waits.0.id();
        let own = format!("/proc/{id}/task/{id}");
        // Only the child is at work once the shell waits for it.
        while is_at_work(Path::new(&own)) || !works(id) {
            sleep(LOOK).await;
        }
        drop(waits);
    }

    #[test]
    fn who_is_gone_does_not_work_and_does_not_wait() {
        let mut gone = Running::shell("exit 0");
        let _ = gone.0.wait();
        assert!(!works(gone.0.id()));
        assert_eq!(Program::new(gone.0.id()).kept_waiting(), Duration::ZERO);
    }

    #[test]
    fn the_wait_for_a_processor_is_the_second_number_of_a_schedstat() {
        let waited = waited_for_a_processor("81240000 5929765 12\n");
        assert_eq!(waited, Duration::from_nanos(5_929_765));
        assert_eq!(waited_for_a_processor(""), Duration::ZERO);
    }
}
