//! Plays a story and compares it with its file.

use std::{path::PathBuf, sync::Arc};

use serde_json::Value;
use turnwire::{
    drivers::{
        http::{BaseUrl, HttpClient, HttpLimits},
        model::ModelServer,
        target::{DEFAULT_VARIANT, Instance},
        testee::client::own,
    },
    profile::Profile,
    run::judge,
    scenarios::{Running, client as acting},
    stage::{Cases, ClientSetting, ClientStage, Setting, Stage},
    suites::{self, Suite},
    transcript::{Fact, Header, Transcript, record::Recorder, text},
    verdict::Verdict,
};
use turnwire_mock::{MockConfig, MockServer, Script};
use turnwire_spec::{
    catalogue::{Binds, Catalogue},
    llm::Wire,
};

use crate::{client::streams_alone, naming};

/// A golden file and what it tells.
pub(crate) struct Story {
    /// Folder.
    pub(crate) suite: &'static str,
    /// File, without its extension.
    pub(crate) name: &'static str,
    /// One line for readers.
    pub(crate) about: &'static str,
    /// Requirements that it shows.
    pub(crate) shows: &'static [&'static str],
    /// How it is told.
    pub(crate) act: Act,
}

/// How a story is told.
pub(crate) enum Act {
    /// By a client of the reference server, started as this variant at this speed.
    Reference {
        variant: &'static str,
        time_scale: f64,
        run: for<'a> fn(&'a Stage) -> Running<'a>,
    },
    /// By a client of the mock, which answers by this script. What is asked stands under this label, by which the
    /// checks of servers of a wire know what was asked for.
    Mock {
        label: &'static str,
        script: fn() -> Script,
        run: for<'a> fn(&'a HttpClient) -> Running<'a>,
    },
    /// By the reference client, to which a scripted server plays these acts, as those of this scenario.
    Client {
        scenario: &'static str,
        acts: &'static str,
    },
}

/// The reference server as it starts by default, in real time, so that no heartbeat comes in between.
pub(crate) const fn reference(run: for<'a> fn(&'a Stage) -> Running<'a>) -> Act {
    Act::Reference {
        variant: DEFAULT_VARIANT,
        time_scale: 1.0,
        run,
    }
}

impl Story {
    fn suite(&self) -> Result<&'static Suite, String> {
        suites::find(self.suite).map_err(|error| error.to_string())
    }

    fn path(&self) -> PathBuf {
        crate::files::root()
            .join(self.suite)
            .join(format!("{}.twire", self.name))
    }

    fn header(&self, time_scale: f64) -> Header {
        let scenario = match &self.act {
            Act::Client { scenario, .. } => (*scenario).to_owned(),
            Act::Reference { .. } => self.name.to_owned(),
            // Not a name that a scenario with an adapter under test has.
            Act::Mock { .. } => format!("mock-{}", self.name),
        };
        Header {
            suite: self.suite.to_owned(),
            scenario,
            requirements: self.shows.iter().map(|id| (*id).to_owned()).collect(),
            time_scale,
            notes: vec![self.about.to_owned()],
            ..Header::default()
        }
    }
}

/// Plays the story, judges it, and compares it with its file; with `TURNWIRE_BLESS`, a file that does not match is
/// written.
pub(crate) async fn prove(story: &'static Story) -> Result<(), String> {
    let live = play(story).await?;
    judged(story, &live)?;
    let template = naming::template(&live);
    let live = naming::cleaned(&live);
    text::matches(&template, &live).map_err(|mismatch| {
        format!(
            "the template does not even match the run that it was made of: {mismatch}\n{template}"
        )
    })?;
    let path = story.path();
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let same_header = |golden: &str| {
        text::parse(golden).is_ok_and(|found| {
            found.header.requirements == live.header.requirements
                && found.header.notes == live.header.notes
        })
    };
    let mismatch = match text::matches(&golden, &live) {
        Ok(_) if same_header(&golden) => return Ok(()),
        Ok(_) => "its header is another".to_owned(),
        Err(mismatch) => mismatch.to_string(),
    };
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(|e| e.to_string())?;
        return std::fs::write(&path, template).map_err(|error| error.to_string());
    }
    Err(format!("{}: {mismatch}", path.display()))
}

async fn play(story: &Story) -> Result<Transcript, String> {
    match &story.act {
        Act::Reference {
            variant,
            time_scale,
            run,
        } => with_reference(story, variant, *time_scale, *run).await,
        Act::Mock { label, script, run } => with_mock(story, label, script(), *run).await,
        Act::Client { acts, .. } => with_client(story, acts).await,
    }
}

async fn with_reference(
    story: &Story,
    variant: &str,
    time_scale: f64,
    run: for<'a> fn(&'a Stage) -> Running<'a>,
) -> Result<Transcript, String> {
    let recorder = Recorder::new(story.header(time_scale));
    let profile = Profile::reference().with_time_scale(time_scale);
    let model = ModelServer::start().await.map_err(|e| e.to_string())?;
    let url = Some(model.base_url());
    let launch = profile.launcher_for(story.suite()?.id);
    let instance = Instance::start(launch, variant, url, None)
        .await
        .map_err(|error| error.to_string())?;
    let setting = Setting {
        scenario: story.name.to_owned(),
        seed: 0,
        recorder: recorder.clone(),
        instance: Arc::new(instance),
        model: Some(model.model()),
        profile: Arc::new(profile),
    };
    let stage = Stage::new(setting).await.map_err(|e| e.to_string())?;
    run(&stage).await.map_err(|error| error.to_string())?;
    stage.finish().await;
    Ok(recorder.transcript())
}

async fn with_mock(
    story: &Story,
    label: &str,
    script: Script,
    run: for<'a> fn(&'a HttpClient) -> Running<'a>,
) -> Result<Transcript, String> {
    let recorder = Recorder::new(story.header(1.0));
    let mock = MockServer::start(MockConfig::default())
        .await
        .map_err(|error| error.to_string())?;
    mock.load(script);
    let base = BaseUrl::parse(&format!("http://{}", mock.addr())).map_err(|e| e.to_string())?;
    let client = HttpClient::new(base, recorder.clone(), HttpLimits::default());
    recorder.tell(Fact::Label(label.to_owned()));
    run(&client).await.map_err(|error| error.to_string())?;
    client.finish().await;
    Ok(recorder.transcript())
}

async fn with_client(story: &Story, acts: &str) -> Result<Transcript, String> {
    // Slow, so that nothing that a client does after a while comes in between on a busy machine.
    let header = story.header(100.0);
    let recorder = Recorder::new(header.clone());
    let launch = own::client(story.suite()?.id).ok_or("the suite has no client of its own")?;
    let setting = ClientSetting {
        scenario: header.scenario,
        recorder: recorder.clone(),
        launch: Arc::new(launch),
        intercept: None,
        profile: Arc::new(Profile::reference().with_time_scale(header.time_scale)),
        cases: Cases::default(),
    };
    let stage = ClientStage::new(setting).await.map_err(|e| e.to_string())?;
    let acts = acting::script::read(acts)?;
    acting::play_acts(&stage, &acts)
        .await
        .map_err(|error| error.to_string())?;
    stage.finish().await;
    Ok(streams_alone(&recorder.transcript()))
}

/// No check finds a fault in the run, and what it claims to show is shown, where a check can say.
fn judged(story: &Story, live: &Transcript) -> Result<(), String> {
    for id in story.shows {
        if Catalogue::embedded().get(id).is_none() {
            return Err(format!("{id} is no requirement"));
        }
    }
    let suite = story.suite()?;
    let (binds, profile) = match (&story.act, story.suite.parse::<Wire>()) {
        // Who calls a provider is not under test here.
        (Act::Mock { .. }, Ok(wire)) => (Some(Binds::Server), Profile::mock(wire)),
        // Whoever plays the server's part is not under test here.
        (Act::Client { .. }, _) => (Some(Binds::Client), Profile::reference()),
        _ => (None, Profile::reference()),
    };
    let entries: Vec<_> = suite.entries(binds).collect();
    let verdicts = judge(std::slice::from_ref(live), suite, &entries, &profile);
    let mut wrong = Vec::new();
    for (id, verdict) in &verdicts {
        match verdict {
            Verdict::Fail { evidence, .. } => wrong.push(format!("{id} fails: {evidence:?}")),
            Verdict::Pass { .. } => {}
            other if story.shows.contains(&id.as_str()) && !is_of_a_scenario(id) => {
                wrong.push(format!("{id} is not shown: {other:?}"));
            }
            _ => {}
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n  "))
    }
}

/// Whether the check of a requirement looks only at what a scenario has put under a label: it has nothing to say of a
/// story, which has other labels, or none.
fn is_of_a_scenario(id: &str) -> bool {
    let entry = Catalogue::embedded().get(id);
    let rule = entry.and_then(|entry| serde_json::to_value(entry.rule.as_ref()?).ok());
    rule.is_some_and(|rule| names_a_label(&rule))
}

fn names_a_label(rule: &Value) -> bool {
    match rule {
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| (name == "label" && value.is_string()) || names_a_label(value)),
        Value::Array(elements) => elements.iter().any(names_a_label),
        _ => false,
    }
}
