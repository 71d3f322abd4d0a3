//! Plays scenarios side by side, then judges what they recorded.
//!
//! Judging waits until a round has been played: it takes the processor's time, and the target, which may run
//! on the same machine, is held to its periods meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::{JoinError, JoinSet, spawn_blocking},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    RunError, RunEvent, RunPlan,
    harness::{self, HarnessError},
    judge::{self, Judged},
    pick::{self, LeftOut},
    pool::Pool,
    report::{INTERRUPTED, Problem, ScenarioError},
};
use crate::{
    drivers::{
        DriveError, allowance::Allowance, http::throttle::without_refused, model::ModelServer,
    },
    scenarios::{Act, Scenario},
    stage::{ClientSetting, ClientStage, Setting, Stage, TesteeSetting, TesteeStage},
    transcript::{Entry, Fact, Header, Transcript, record::Recorder},
};

/// What the scenarios of a run gave, in the order of the suite.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) scenes: Vec<Scene>,
    pub(super) left_out: Vec<LeftOut>,
}

impl Played {
    /// Whether something was not played, or given up, because the run was interrupted.
    pub(super) fn interrupted(&self) -> bool {
        let is_it = |problem: &Problem| problem.error == ScenarioError::Interrupted;
        self.left_out.iter().any(|one| one.why == INTERRUPTED)
            || self
                .scenes
                .iter()
                .any(|scene| scene.problem.as_ref().is_some_and(is_it))
    }
}

/// What one scenario gave.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) scenario: &'static Scenario,
    pub(super) transcript: Arc<Transcript>,
    pub(super) judged: Judged,
    pub(super) harness_errors: Vec<HarnessError>,
    pub(super) problem: Option<Problem>,
    pub(super) took: Duration,
}

/// Plays the first round, and the second when requirements are then still not exercised.
pub(super) async fn play(plan: &RunPlan, model: Option<&ModelServer>) -> Result<Played, RunError> {
    let pool = Pool::new(plan, model);
    tokio::select! {
        biased;
        probed = pool.probe() => probed?,
        () = plan.interrupt.cancelled() => {}
    }
    let [first, more] = pick::rounds(plan);
    let names = |scenarios: &[&Scenario]| scenarios.iter().map(|s| s.name.to_owned()).collect();
    plan.tell(RunEvent::Started {
        suite: plan.suite.name().to_owned(),
        scenarios: names(&first),
        requirements: plan.requirements.len(),
    });
    let mut played = Played::default();
    play_round(plan, model, &pool, first, &mut played).await;
    let open = judge::unexercised(plan, &played.scenes);
    if open && !more.is_empty() {
        plan.tell(RunEvent::More {
            scenarios: names(&more),
        });
        play_round(plan, model, &pool, more, &mut played).await;
    }
    let place = |scenario: &Scenario| {
        plan.suite
            .scenarios()
            .position(|found| found.name == scenario.name)
    };
    played.scenes.sort_by_key(|scene| place(scene.scenario));
    played
        .left_out
        .sort_by_key(|left_out| place(left_out.scenario));
    Ok(played)
}

async fn play_round(
    plan: &RunPlan,
    model: Option<&ModelServer>,
    pool: &Pool<'_>,
    scenarios: Vec<&'static Scenario>,
    played: &mut Played,
) {
    let mut playable = Vec::new();
    for scenario in scenarios {
        match pick::obstacle(plan, scenario) {
            None => playable.push(scenario),
            Some(why) => {
                plan.tell_skipped(scenario, &why);
                played.left_out.push(LeftOut { scenario, why });
            }
        }
    }
    // Somebody else's server cannot be had twice: who needs it alone comes last, one at a time.
    let one_by_one = |scenario: &&Scenario| {
        let is_server = matches!(scenario.run, Act::Server(_));
        is_server && scenario.alone() && plan.launch.restarts().is_err()
    };
    let (alone, together): (Vec<_>, Vec<_>) = playable.into_iter().partition(one_by_one);
    let before = played.scenes.len();
    side_by_side(plan, model, pool, together, plan.jobs.max(1), played).await;
    side_by_side(plan, model, pool, alone, 1, played).await;
    judge_scenes(plan, &mut played.scenes[before..]).await;
}

/// Plays scenarios with so many workers, each taking the next one.
async fn side_by_side(
    plan: &RunPlan,
    model: Option<&ModelServer>,
    pool: &Pool<'_>,
    scenarios: Vec<&'static Scenario>,
    jobs: usize,
    played: &mut Played,
) {
    let next = AtomicUsize::new(0);
    let worker = || async {
        let mut done = Vec::new();
        while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((*scenario, play_one(plan, model, pool, scenario).await));
        }
        done
    };
    let workers = (0..jobs.min(scenarios.len())).map(|_| Box::pin(worker()));
    for (scenario, result) in all(workers.collect()).await.into_iter().flatten() {
        match result {
            Ok(scene) => played.scenes.push(*scene),
            Err(why) => played.left_out.push(LeftOut { scenario, why }),
        }
    }
}

/// Waits for all of these futures, which run interleaved on this task; what they wait for runs on others.
async fn all<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut results: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(output) = std::pin::Pin::new(future).poll(context)
            {
                *result = Some(output);
            }
        }
        if results.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

/// Plays one scenario. The text of `Err` says why it is left out: the target turned out not to be able to. What
/// was recorded until then is not judged, because what it lacks is the stimulus and not the answer.
async fn play_one(
    plan: &RunPlan,
    model: Option<&ModelServer>,
    pool: &Pool<'_>,
    scenario: &'static Scenario,
) -> Result<Box<Scene>, String> {
    if plan.interrupt.is_cancelled() {
        return Err(INTERRUPTED.to_owned());
    }
    plan.tell(RunEvent::ScenarioStarted {
        name: scenario.name.to_owned(),
    });
    if let Some(why) = pool.full() {
        return Err(plan.tell_skipped(scenario, &why));
    }
    let begun = Instant::now();
    let recorder = Recorder::new(header(plan, scenario));
    let acted = match scenario.run {
        Act::Server(_) => on_server(plan, model, pool, scenario, &recorder).await,
        Act::Testee(_) => with_testee(plan, pool, scenario, &recorder).await,
        Act::Client(_) => with_client(plan, scenario, &recorder).await,
    };
    let (mut error, output) = match acted {
        Err(error) => (Some(ScenarioError::Drive(error)), Vec::new()),
        Ok(acted) => acted,
    };
    if plan.interrupt.is_cancelled() && error.is_some() {
        if !has_asked(&recorder.transcript()) || !matches!(scenario.run, Act::Client(_)) {
            // What a server has not answered yet is no fault of it.
            return Err(INTERRUPTED.to_owned());
        }
        error = Some(ScenarioError::Interrupted);
    }
    if let Some(ScenarioError::Drive(error @ DriveError::NotPossible { .. })) = &error {
        return Err(plan.tell_skipped(scenario, &error.to_string()));
    }
    let transcript = recorder.transcript();
    if plan.intercept.is_none()
        && let Some(why) = pick::throttled(scenario, &without_refused(&transcript))
    {
        return Err(plan.tell_skipped(scenario, &why));
    }
    pool.keep(&transcript);
    let took = begun.elapsed();
    let problem = error.map(|error| Problem {
        scenario: scenario.name.to_owned(),
        error,
        output,
    });
    plan.tell(RunEvent::ScenarioFinished {
        name: scenario.name.to_owned(),
        took,
        problem: problem.as_ref().map(|problem| problem.error.to_string()),
    });
    Ok(Box::new(Scene {
        scenario,
        transcript: Arc::new(transcript),
        judged: Judged::default(),
        harness_errors: Vec::new(),
        problem,
        took,
    }))
}

/// Whether a client has asked for anything.
fn has_asked(transcript: &Transcript) -> bool {
    let is_request = |entry: &Entry| matches!(entry.fact, Fact::Request { .. });
    transcript.entries.iter().any(is_request)
}

/// What this gives, unless the run is interrupted first.
async fn unless_interrupted<T>(
    plan: &RunPlan,
    acting: impl Future<Output = Result<T, DriveError>>,
) -> Result<T, DriveError> {
    tokio::select! {
        biased;
        acted = acting => acted,
        () = plan.interrupt.cancelled() => Err(DriveError::Harness(INTERRUPTED.to_owned())),
    }
}

/// What went wrong, and the last lines of the target's output then.
type Acted = Result<(Option<ScenarioError>, Vec<String>), DriveError>;

/// Plays a scenario that connects to the target.
async fn on_server(
    plan: &RunPlan,
    model: Option<&ModelServer>,
    pool: &Pool<'_>,
    scenario: &'static Scenario,
    recorder: &Recorder,
) -> Acted {
    let instance = unless_interrupted(plan, pool.instance(scenario)).await?;
    let setting = Setting {
        scenario: scenario.name.to_owned(),
        seed: plan.seed,
        recorder: recorder.clone(),
        instance: Arc::clone(&instance),
        model: model.map(ModelServer::model),
        profile: Arc::clone(&plan.profile),
    };
    let stage = Arc::new(Stage::new(setting).await?);
    // A saboteur may refuse what the target would not.
    if plan.intercept.is_none() && !pick::is_about_rates(scenario) {
        stage.wait_when_refused();
    }
    let actor = Arc::clone(&stage);
    let limit = Limit {
        allowance: stage.allowance().clone(),
        ..Limit::of(plan, plan.profile.limits.scenario)
    };
    let acting = async move {
        match scenario.run {
            Act::Server(run) => run(&actor).await,
            Act::Testee(_) | Act::Client(_) => Ok(()),
        }
    };
    let waits = |what: String| {
        let name = scenario.name.to_owned();
        plan.tell(RunEvent::ScenarioWaits { name, what });
    };
    let error = act(limit, waits, acting).await;
    stage.finish().await;
    let output = if error.is_some() {
        instance.output().await
    } else {
        Vec::new()
    };
    Ok((error, output))
}

/// Plays a scenario in which the target connects to the harness.
async fn with_testee(
    plan: &RunPlan,
    pool: &Pool<'_>,
    scenario: &'static Scenario,
    recorder: &Recorder,
) -> Acted {
    let testee = unless_interrupted(plan, pool.testee(scenario)).await?;
    let launch = plan.testee.clone();
    let launch =
        launch.ok_or_else(|| DriveError::Harness("there is no testee to start".to_owned()))?;
    let setting = TesteeSetting {
        scenario: scenario.name.to_owned(),
        suite: plan.suite.id,
        seed: plan.seed,
        recorder: recorder.clone(),
        launch,
        intercept: plan.intercept.clone(),
        profile: Arc::clone(&plan.profile),
        cases: plan.cases.clone(),
    };
    let stage = Arc::new(TesteeStage::new(setting, testee));
    let actor = Arc::clone(&stage);
    let limit = Limit::of(plan, plan.profile.limits.scenario);
    let error = act(limit, |_| {}, async move {
        match scenario.run {
            Act::Testee(run) => run(&actor).await,
            Act::Server(_) | Act::Client(_) => Ok(()),
        }
    });
    let error = error.await;
    let output = if error.is_some() {
        stage.output().await
    } else {
        Vec::new()
    };
    if let Some(testee) = stage.finish().await
        && error.is_none()
    {
        pool.keep_testee(testee);
    }
    Ok((error, output))
}

/// Longest that a scenario of a client may take, if the profile does not say longer. It is a long row of acts, each with
/// bounded waits of its own, so this is only met by what hangs.
const CLIENT_SCENARIO: Duration = Duration::from_secs(600);

/// Plays a scenario in which a client connects to a scripted server.
async fn with_client(plan: &RunPlan, scenario: &'static Scenario, recorder: &Recorder) -> Acted {
    let launch = plan.client.clone();
    let launch =
        launch.ok_or_else(|| DriveError::Harness("there is no client to start".to_owned()))?;
    let setting = ClientSetting {
        scenario: scenario.name.to_owned(),
        recorder: recorder.clone(),
        launch,
        intercept: plan.intercept.clone(),
        profile: Arc::clone(&plan.profile),
        cases: plan.cases.clone(),
    };
    let stage = Arc::new(ClientStage::new(setting).await?);
    let actor = Arc::clone(&stage);
    let limit = plan.profile.limits.scenario.max(CLIENT_SCENARIO);
    let error = act(Limit::of(plan, limit), |_| {}, async move {
        match scenario.run {
            Act::Client(run) => run(&actor).await,
            Act::Server(_) | Act::Testee(_) => Ok(()),
        }
    });
    let error = error.await;
    let error = error.or_else(|| stage.nothing_seen().map(ScenarioError::Drive));
    let whole = stage.recorded_whole();
    stage.finish().await;
    if error == Some(ScenarioError::Interrupted) {
        // The conversation that went on would show what the client was given no time for.
        recorder.keep_first(whole);
    }
    let output = match &error {
        Some(ScenarioError::Drive(DriveError::NotStarted { output, .. })) => output.clone(),
        _ => Vec::new(),
    };
    Ok((error, output))
}

/// How long a scenario may take.
struct Limit {
    limit: Duration,
    /// What it gets beyond that.
    allowance: Allowance,
    /// Ends it at once.
    interrupt: CancellationToken,
}

impl Limit {
    fn of(plan: &RunPlan, limit: Duration) -> Self {
        Self {
            limit,
            allowance: Allowance::default(),
            interrupt: plan.interrupt.clone(),
        }
    }
}

/// Acts on a task of its own, so that a panic or a hang ends this scenario and no other. `waits` is told what the target
/// asks to wait.
async fn act(
    limit: Limit,
    waits: impl Fn(String),
    scenario: impl Future<Output = Result<(), DriveError>> + Send + 'static,
) -> Option<ScenarioError> {
    let begun = Instant::now();
    let mut given = limit.allowance.follow();
    let mut told = 0;
    let mut task = JoinSet::new();
    task.spawn(scenario);
    loop {
        let (time, asked) = {
            let given = given.borrow_and_update();
            (
                limit.limit.saturating_add(given.time),
                given.asked[told..].to_vec(),
            )
        };
        told += asked.len();
        asked.into_iter().for_each(&waits);
        // What lies beyond all clocks does not come.
        let over = async {
            match begun.checked_add(time) {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = task.join_next() => return ended.and_then(how_it_ended),
            () = limit.interrupt.cancelled() => {
                task.shutdown().await;
                return Some(ScenarioError::Interrupted);
            }
            Ok(()) = given.changed() => {}
            () = over => {
                task.shutdown().await;
                return Some(ScenarioError::TookTooLong(time));
            }
        }
    }
}

fn how_it_ended(ended: Result<Result<(), DriveError>, JoinError>) -> Option<ScenarioError> {
    match ended {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(ScenarioError::Drive(error)),
        Err(error) => Some(ScenarioError::Panicked(words(error))),
    }
}

fn words(error: JoinError) -> String {
    match error.try_into_panic() {
        Err(error) => error.to_string(),
        Ok(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            text.or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default()
        }
    }
}

fn header(plan: &RunPlan, scenario: &Scenario) -> Header {
    Header {
        suite: plan.suite.name().to_owned(),
        scenario: scenario.name.to_owned(),
        time_scale: plan.profile.time_scale,
        notes: vec![scenario.about.to_owned()],
        ..Header::default()
    }
}

/// Judges on threads where nobody waits for sockets, as many at a time as there are processors.
async fn judge_scenes(plan: &RunPlan, scenes: &mut [Scene]) {
    let requirements: Arc<[_]> = plan.requirements.as_slice().into();
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    for group in scenes.chunks_mut(processors) {
        let judging: Vec<_> = group
            .iter()
            .map(|scene| {
                let (suite, requirements) = (plan.suite, Arc::clone(&requirements));
                let transcript = Arc::clone(&scene.transcript);
                // The requests of a client are not ours.
                let ours = !matches!(scene.scenario.run, Act::Client(_));
                spawn_blocking(move || {
                    let judged = judge::transcript(suite, &requirements, &transcript);
                    let errors = ours.then(|| harness::errors(&transcript));
                    (judged, errors.unwrap_or_default())
                })
            })
            .collect();
        for (scene, judging) in group.iter_mut().zip(judging) {
            (scene.judged, scene.harness_errors) = judging.await.unwrap_or_else(|error| {
                let what = format!("a check panicked: {}", words(error));
                (
                    Judged::default(),
                    vec![HarnessError::of(scene.scenario.name, what)],
                )
            });
            let (name, faults) = (scene.scenario.name.to_owned(), scene.judged.faults());
            plan.tell(RunEvent::ScenarioJudged { name, faults });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn a_minute() -> Limit {
        Limit {
            limit: MINUTE,
            allowance: Allowance::default(),
            interrupt: CancellationToken::new(),
        }
    }

    /// A scenario that sits out a period of a minute and goes on for so long.
    async fn sits_out(going_on: Duration) -> Option<ScenarioError> {
        let limit = a_minute();
        let allowance = limit.allowance.clone();
        let scenario = async move {
            sleep(MINUTE / 2).await;
            allowance.give(MINUTE);
            sleep(MINUTE + going_on).await;
            Ok(())
        };
        act(limit, |_| {}, scenario).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_scenario_may_sit_out_the_periods_of_the_protocol_beyond_its_limit() {
        assert_eq!(sits_out(MINUTE / 4).await, None);
        assert_eq!(
            sits_out(MINUTE).await,
            Some(ScenarioError::TookTooLong(MINUTE * 2)),
            "and no longer"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn every_wait_that_the_target_asks_for_is_told_once() {
        let limit = a_minute();
        let allowance = limit.allowance.clone();
        let told = std::sync::Mutex::new(Vec::new());
        let scenario = async move {
            for words in ["one", "two", "three"] {
                allowance.ask(MINUTE, words.to_owned());
                if words != "one" {
                    sleep(MINUTE).await;
                }
            }
            Ok(())
        };
        let tell = |words| told.lock().unwrap().push(words);
        assert_eq!(act(limit, tell, scenario).await, None);
        assert_eq!(*told.lock().unwrap(), ["one", "two", "three"]);
    }
}
