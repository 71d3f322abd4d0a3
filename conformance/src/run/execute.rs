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
    time::{Instant, timeout},
};

use super::{
    RunError, RunEvent, RunPlan,
    harness::{self, HarnessError},
    judge::{self, Judged},
    pick::{self, LeftOut},
    pool::Pool,
    report::{Problem, ScenarioError},
};
use crate::{
    drivers::{DriveError, model::ModelServer},
    scenarios::{Act, Scenario},
    stage::{ClientSetting, ClientStage, Setting, Stage, TesteeSetting, TesteeStage},
    transcript::{Header, Transcript, record::Recorder},
};

/// What the scenarios of a run gave, in the order of the suite.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) scenes: Vec<Scene>,
    pub(super) left_out: Vec<LeftOut>,
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
    pool.probe().await?;
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
    let (error, output) = match acted {
        Err(error) => (Some(ScenarioError::Drive(error)), Vec::new()),
        Ok(acted) => acted,
    };
    if let Some(ScenarioError::Drive(error @ DriveError::NotPossible { .. })) = &error {
        return Err(plan.tell_skipped(scenario, &error.to_string()));
    }
    let transcript = recorder.transcript();
    if plan.intercept.is_none()
        && let Some(why) = pick::throttled(scenario, &transcript)
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
    let instance = pool.instance(scenario).await?;
    let setting = Setting {
        scenario: scenario.name.to_owned(),
        seed: plan.seed,
        recorder: recorder.clone(),
        instance: Arc::clone(&instance),
        model: model.map(ModelServer::model),
        profile: Arc::clone(&plan.profile),
    };
    let stage = Arc::new(Stage::new(setting).await?);
    let actor = Arc::clone(&stage);
    let error = act(plan.profile.limits.scenario, async move {
        match scenario.run {
            Act::Server(run) => run(&actor).await,
            Act::Testee(_) | Act::Client(_) => Ok(()),
        }
    });
    let error = error.await;
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
    let testee = pool.testee(scenario).await?;
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
    let error = act(plan.profile.limits.scenario, async move {
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
    let error = act(limit, async move {
        match scenario.run {
            Act::Client(run) => run(&actor).await,
            Act::Server(_) | Act::Testee(_) => Ok(()),
        }
    });
    let error = error.await;
    let error = error.or_else(|| stage.nothing_seen().map(ScenarioError::Drive));
    stage.finish().await;
    let output = match &error {
        Some(ScenarioError::Drive(DriveError::NotStarted { output, .. })) => output.clone(),
        _ => Vec::new(),
    };
    Ok((error, output))
}

/// Acts on a task of its own, so that a panic or a hang ends this scenario and no other.
async fn act(
    limit: Duration,
    scenario: impl Future<Output = Result<(), DriveError>> + Send + 'static,
) -> Option<ScenarioError> {
    let mut task = JoinSet::new();
    task.spawn(scenario);
    match timeout(limit, task.join_next()).await {
        Ok(None | Some(Ok(Ok(())))) => None,
        Ok(Some(Ok(Err(error)))) => Some(ScenarioError::Drive(error)),
        Ok(Some(Err(error))) => Some(ScenarioError::Panicked(words(error))),
        Err(_) => {
            task.shutdown().await;
            Some(ScenarioError::TookTooLong(limit))
        }
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
