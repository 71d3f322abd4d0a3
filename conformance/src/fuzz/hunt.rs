//! A hunt: many cases side by side, and the smallest of those that fail.
//!
//! What is played is told by a [`Game`]: [`clients`](super::clients) and [`envelopes`](super::envelopes) are two. The
//! hunt knows the queue of cases, when enough have failed, and how a case is made smaller while the same is wrong.
//!
//! Not here: reconnect fuzzing, which makes a case smaller while it breaks the same requirements; see [`run`](super::run).

use std::{
    fmt::Debug,
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::{sync::mpsc::UnboundedSender, task::JoinSet, time::Instant};

use super::{FuzzError, random::Random};

/// Failures after which a run ends before its cases do.
pub const ENOUGH: usize = 10;

/// What is added to the words of a failure that no case causes.
const WITHOUT_CAUSE: &str =
    ": also where nothing is wrong with what is sent, so no further cases were played";

/// What is played in a hunt.
pub trait Game: Debug + Send + Sync + 'static {
    /// A case, as plain data.
    type Case: Clone + Debug + Send + Sync;
    /// What one worker plays with.
    type Player: Send;
    /// What is kept of a case that fails, besides what is wrong.
    type Evidence: Debug + Send + Sync;

    /// A case that fails is played again, and counts only when it fails twice.
    const CONFIRMS: bool;
    /// Candidates that are played at most to make one failure smaller.
    const TRIES: usize;

    /// A random case.
    fn case(&self, random: &mut Random) -> Self::Case;

    /// Smaller cases, to be tried in this order.
    fn smaller(case: &Self::Case) -> Vec<Self::Case>;

    /// The case in which nothing is wrong, where there is one. Whoever fails in it fails in every case, and no further
    /// one is played.
    fn nothing() -> Option<Self::Case> {
        None
    }

    /// What a worker plays with from here on: a fresh target, as far as there are any.
    fn player(&self) -> impl Future<Output = Result<Self::Player, FuzzError>> + Send;

    /// Plays a case: `None` when all is well.
    fn play(
        &self,
        player: &mut Self::Player,
        number: u64,
        case: &Self::Case,
    ) -> impl Future<Output = Result<Option<FailureOf<Self>>, FuzzError>> + Send;

    /// Told of each case that was played, and how many there have been. What it finds counts where nothing else failed.
    fn played(&self, case: &Self::Case, count: u64) -> Option<FailureOf<Self>>;

    /// Whether two cases fail in the same way, by what is wrong with each.
    fn is_same(&self, one: &str, other: &str) -> bool {
        kind(one) == kind(other)
    }

    /// Whether a failure can be made smaller.
    fn shrinks(_failure: &FailureOf<Self>) -> bool {
        true
    }
}

/// A case of a game that fails.
pub type FailureOf<G> = Failure<<G as Game>::Case, <G as Game>::Evidence>;

/// What came out of a hunt for a game.
pub type HuntedOf<G> = Hunted<<G as Game>::Case, <G as Game>::Evidence>;

/// A case that fails.
#[derive(Clone, Debug)]
pub struct Failure<C, E> {
    /// Its number.
    pub number: u64,
    /// The case, made smaller when it could be.
    pub case: C,
    /// What is wrong.
    pub what: String,
    /// What is kept of it.
    pub evidence: E,
}

/// Which cases are played, and how many at a time.
#[derive(Clone, Debug)]
pub struct Cases {
    /// The same seed gives the same cases.
    pub seed: u64,
    /// Number of the first one.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Workers; so many failures are made smaller at a time, too.
    pub jobs: usize,
    /// Who is told how many cases have been played.
    pub progress: Option<UnboundedSender<u64>>,
}

/// What came out of a hunt.
#[derive(Debug)]
pub struct Hunted<C, E> {
    /// Cases that fail, by their numbers.
    pub failures: Vec<Failure<C, E>>,
    /// Cases that were played.
    pub played: u64,
    /// Cases that failed once, and not when they were played again.
    pub passing: u64,
    /// How long it took.
    pub took: Duration,
}

impl<C, E> Hunted<C, E> {
    /// How long it took, in seconds, to the hundredth.
    pub fn seconds(&self) -> f64 {
        (self.took.as_secs_f64() * 100.0).round() / 100.0
    }
}

/// Plays cases until `enough` of them have failed, and makes those smaller that fail.
///
/// # Errors
///
/// When the target does not start or cannot be spoken to.
pub async fn hunt<G: Game>(
    game: &Arc<G>,
    cases: &Cases,
    enough: usize,
) -> Result<HuntedOf<G>, FuzzError> {
    let begun = Instant::now();
    let hunt = Arc::new(Hunt::<G>::new(Arc::clone(game), cases.clone(), enough));
    let mut workers = JoinSet::new();
    for _ in 0..cases.jobs.max(1) {
        let hunt = Arc::clone(&hunt);
        workers.spawn(async move { hunt.work().await });
    }
    for ended in workers.join_all().await {
        ended?;
    }
    let smaller = hunt
        .take_failures()
        .into_iter()
        .map(|failure| hunt.shrink(failure));
    let mut failures: Vec<_> = stream::iter(smaller)
        .buffer_unordered(cases.jobs.max(1))
        .try_collect()
        .await?;
    failures.sort_by_key(|failure| failure.number);
    Ok(Hunted {
        failures,
        played: hunt.played.load(Ordering::Relaxed),
        passing: hunt.passing.load(Ordering::Relaxed),
        took: begun.elapsed(),
    })
}

/// Plays one case, without making it smaller.
///
/// # Errors
///
/// As [`hunt`].
pub async fn again<G: Game>(
    game: &G,
    number: u64,
    case: &G::Case,
) -> Result<HuntedOf<G>, FuzzError> {
    let begun = Instant::now();
    let mut player = game.player().await?;
    let failure = game.play(&mut player, number, case).await?;
    let more = game.played(case, 1);
    Ok(Hunted {
        failures: failure.or(more).into_iter().collect(),
        played: 1,
        passing: 0,
        took: begun.elapsed(),
    })
}

struct Hunt<G: Game> {
    game: Arc<G>,
    cases: Cases,
    enough: usize,
    next: AtomicU64,
    played: AtomicU64,
    passing: AtomicU64,
    over: AtomicBool,
    /// Whether the case in which nothing is wrong was played, and all was well.
    is_well: AtomicBool,
    failures: Mutex<Vec<FailureOf<G>>>,
}

impl<G: Game> Hunt<G> {
    fn new(game: Arc<G>, cases: Cases, enough: usize) -> Self {
        Self {
            game,
            next: AtomicU64::new(cases.first),
            cases,
            enough,
            played: AtomicU64::new(0),
            passing: AtomicU64::new(0),
            over: AtomicBool::new(false),
            is_well: AtomicBool::new(false),
            failures: Mutex::default(),
        }
    }

    async fn work(&self) -> Result<(), FuzzError> {
        let mut player = self.game.player().await?;
        let end = self.cases.first + self.cases.count;
        while !self.over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                break;
            }
            let case = self.game.case(&mut Random::new(self.cases.seed, number));
            let failure = self.game.play(&mut player, number, &case).await?;
            let failure = match failure {
                Some(found) => self.looked_into(&mut player, &case, found).await?,
                None => None,
            };
            self.note(&case, failure);
        }
        Ok(())
    }

    /// What is wrong with a case that failed once; nothing when the machine was only busy.
    async fn looked_into(
        &self,
        player: &mut G::Player,
        case: &G::Case,
        failure: FailureOf<G>,
    ) -> Result<Option<FailureOf<G>>, FuzzError> {
        // A target that was led astray is no measure for what follows.
        *player = self.game.player().await?;
        if let Some(bare) = self.without_cause(player, &failure).await? {
            return Ok(Some(bare));
        }
        if !G::CONFIRMS {
            return Ok(Some(failure));
        }
        // A machine may be busy for once; what is wrong is wrong again.
        let again = self.game.play(player, failure.number, case).await?;
        if again.is_some() {
            *player = self.game.player().await?;
        } else {
            self.passing.fetch_add(1, Ordering::Relaxed);
        }
        Ok(again)
    }

    /// The failure of the case in which nothing is wrong, when it fails in the same way as this one. Then the hunt is
    /// over: other cases would cost as much, and show no more.
    async fn without_cause(
        &self,
        player: &mut G::Player,
        failure: &FailureOf<G>,
    ) -> Result<Option<FailureOf<G>>, FuzzError> {
        let Some(nothing) = G::nothing().filter(|_| !self.is_well.load(Ordering::Relaxed)) else {
            return Ok(None);
        };
        let bare = self.game.play(player, failure.number, &nothing).await?;
        if bare.is_none() {
            self.is_well.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        *player = self.game.player().await?;
        let same = bare.filter(|bare| self.game.is_same(&bare.what, &failure.what));
        Ok(same.map(|mut bare| {
            bare.what.push_str(WITHOUT_CAUSE);
            self.over.store(true, Ordering::Relaxed);
            bare
        }))
    }

    fn note(&self, case: &G::Case, failure: Option<FailureOf<G>>) {
        let played = self.played.fetch_add(1, Ordering::Relaxed) + 1;
        let more = self.game.played(case, played);
        let mut failures = self.failures();
        failures.extend(failure);
        if failures.is_empty() {
            failures.extend(more);
        }
        if failures.len() >= self.enough {
            self.over.store(true, Ordering::Relaxed);
        }
        if let Some(progress) = &self.cases.progress {
            // Nobody has to listen.
            let _ = progress.send(played);
        }
    }

    /// Takes away what can be taken away while the same is wrong.
    async fn shrink(&self, mut failure: FailureOf<G>) -> Result<FailureOf<G>, FuzzError> {
        if !G::shrinks(&failure) {
            return Ok(failure);
        }
        let mut tries = 0;
        'again: loop {
            for candidate in G::smaller(&failure.case) {
                tries += 1;
                if tries > G::TRIES {
                    return Ok(failure);
                }
                let mut player = self.game.player().await?;
                let smaller = self
                    .game
                    .play(&mut player, failure.number, &candidate)
                    .await?;
                if let Some(smaller) =
                    smaller.filter(|it| self.game.is_same(&it.what, &failure.what))
                {
                    failure = smaller;
                    continue 'again;
                }
            }
            return Ok(failure);
        }
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, Vec<FailureOf<G>>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_failures(&self) -> Vec<FailureOf<G>> {
        std::mem::take(&mut self.failures())
    }
}

/// What a failure is about, without what differs from case to case.
pub fn kind(what: &str) -> &str {
    what.split([':', '"', '(']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of numbers, which fails when it holds a 7; the first attempt at 9 fails, too, and the next does not.
    #[derive(Debug, Default)]
    struct Sevens {
        nines: AtomicU64,
    }

    impl Game for Sevens {
        type Case = Vec<u32>;
        type Player = ();
        type Evidence = ();

        const CONFIRMS: bool = true;
        const TRIES: usize = 100;

        fn case(&self, random: &mut Random) -> Vec<u32> {
            (0..6).map(|_| random.below(12)).collect()
        }

        fn smaller(case: &Vec<u32>) -> Vec<Vec<u32>> {
            let without = |at: usize| {
                let mut rest = case.clone();
                rest.remove(at);
                rest
            };
            (0..case.len()).map(without).collect()
        }

        async fn player(&self) -> Result<(), FuzzError> {
            Ok(())
        }

        async fn play(
            &self,
            (): &mut (),
            number: u64,
            case: &Vec<u32>,
        ) -> Result<Option<FailureOf<Self>>, FuzzError> {
            let once = case.contains(&9) && self.nines.fetch_add(1, Ordering::Relaxed) == 0;
            Ok((once || case.contains(&7)).then(|| Failure {
                number,
                case: case.clone(),
                what: format!("a seven: in case {number}"),
                evidence: (),
            }))
        }

        fn played(&self, _: &Vec<u32>, _: u64) -> Option<FailureOf<Self>> {
            None
        }
    }

    fn cases(jobs: usize) -> Cases {
        Cases {
            seed: 1,
            first: 0,
            count: 200,
            jobs,
            progress: None,
        }
    }

    #[tokio::test]
    async fn cases_that_fail_are_made_as_small_as_they_get() {
        let hunted = hunt(&Arc::new(Sevens::default()), &cases(3), usize::MAX).await;
        let hunted = hunted.unwrap();
        assert_eq!(hunted.played, 200);
        assert!(hunted.failures.len() > 20);
        assert!(hunted.failures.iter().all(|failure| failure.case == [7]));
        assert!(hunted.failures.is_sorted_by_key(|failure| failure.number));
    }

    #[tokio::test]
    async fn a_case_that_fails_only_once_is_counted_and_is_no_failure() {
        let game = Arc::new(Sevens::default());
        let mut cases = cases(1);
        // The first case with a nine and no seven.
        cases.first = (0..)
            .find(|number| {
                let case = game.case(&mut Random::new(1, *number));
                case.contains(&9) && !case.contains(&7)
            })
            .unwrap();
        cases.count = 1;
        let hunted = hunt(&game, &cases, usize::MAX).await.unwrap();
        assert_eq!((hunted.passing, hunted.failures.len()), (1, 0));
    }

    /// One who fails in every case.
    #[derive(Debug, Default)]
    struct Hopeless {
        plays: AtomicU64,
    }

    impl Game for Hopeless {
        type Case = Vec<u32>;
        type Player = ();
        type Evidence = ();

        const CONFIRMS: bool = true;
        const TRIES: usize = 100;

        fn case(&self, random: &mut Random) -> Vec<u32> {
            (0..6).map(|_| random.below(12)).collect()
        }

        fn smaller(case: &Vec<u32>) -> Vec<Vec<u32>> {
            Sevens::smaller(case)
        }

        fn nothing() -> Option<Vec<u32>> {
            Some(Vec::new())
        }

        async fn player(&self) -> Result<(), FuzzError> {
            Ok(())
        }

        async fn play(
            &self,
            (): &mut (),
            number: u64,
            case: &Vec<u32>,
        ) -> Result<Option<FailureOf<Self>>, FuzzError> {
            self.plays.fetch_add(1, Ordering::Relaxed);
            Ok(Some(Failure {
                number,
                case: case.clone(),
                what: "it does not connect".to_owned(),
                evidence: (),
            }))
        }

        fn played(&self, _: &Vec<u32>, _: u64) -> Option<FailureOf<Self>> {
            None
        }
    }

    #[tokio::test]
    async fn who_fails_where_nothing_is_wrong_is_played_with_no_further() {
        let game = Arc::new(Hopeless::default());
        let hunted = hunt(&game, &cases(1), usize::MAX).await.unwrap();
        assert_eq!((hunted.played, hunted.failures.len()), (1, 1));
        // The case, and the one in which nothing is wrong.
        assert_eq!(game.plays.load(Ordering::Relaxed), 2);
        let failure = &hunted.failures[0];
        assert!(failure.case.is_empty());
        assert!(failure.what.ends_with("no further cases were played"));
        assert_eq!(kind(&failure.what), "it does not connect");
    }

    #[tokio::test]
    async fn a_hunt_ends_when_enough_have_failed() {
        let hunted = hunt(&Arc::new(Sevens::default()), &cases(1), 3)
            .await
            .unwrap();
        assert_eq!(hunted.failures.len(), 3);
        assert!(hunted.played < 200);
    }
}
