//! Plays a story and compares it with its file.

use std::{path::PathBuf, sync::Arc};

use turnwire::{
    drivers::{
        http::{BaseUrl, HttpClient, HttpLimits},
        model::ModelServer,
        target::{DEFAULT_VARIANT, Instance},
    },
    profile::Profile,
    run::judge,
    scenarios::Running,
    stage::{Setting, Stage},
    suites,
    transcript::{Header, Transcript, record::Recorder, text},
    verdict::Verdict,
};
use turnwire_mock::{MockConfig, MockServer, Script};
use turnwire_spec::catalogue::Catalogue;

use crate::naming;

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
    /// By a client of the mock, which answers by this script.
    Mock {
        script: fn() -> Script,
        run: for<'a> fn(&'a HttpClient) -> Running<'a>,
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
    fn path(&self) -> PathBuf {
        crate::files::root()
            .join(self.suite)
            .join(format!("{}.twire", self.name))
    }

    fn header(&self, time_scale: f64) -> Header {
        Header {
            suite: self.suite.to_owned(),
            scenario: self.name.to_owned(),
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
        } => {
            let recorder = Recorder::new(story.header(*time_scale));
            let profile = Profile::reference().with_time_scale(*time_scale);
            let model = ModelServer::start().await.map_err(|e| e.to_string())?;
            let url = Some(model.base_url());
            let instance = Instance::start(profile.launcher(), variant, url, None)
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
        Act::Mock { script, run } => {
            let recorder = Recorder::new(story.header(1.0));
            let mock = MockServer::start(MockConfig::default())
                .await
                .map_err(|error| error.to_string())?;
            mock.load(script());
            let base =
                BaseUrl::parse(&format!("http://{}", mock.addr())).map_err(|e| e.to_string())?;
            let client = HttpClient::new(base, recorder.clone(), HttpLimits::default());
            run(&client).await.map_err(|error| error.to_string())?;
            client.finish().await;
            Ok(recorder.transcript())
        }
    }
}

/// No check finds a fault in the run, and what it claims to show is shown, where a check can say.
fn judged(story: &Story, live: &Transcript) -> Result<(), String> {
    for id in story.shows {
        if Catalogue::embedded().get(id).is_none() {
            return Err(format!("{id} is no requirement"));
        }
    }
    let Ok(suite) = suites::find(story.suite) else {
        return Ok(());
    };
    if matches!(story.act, Act::Mock { .. }) {
        // The suites of the wires judge those who call a provider.
        return Ok(());
    }
    let entries: Vec<_> = suite.entries(None).collect();
    let verdicts = judge(
        std::slice::from_ref(live),
        suite,
        &entries,
        &Profile::reference(),
    );
    let mut wrong = Vec::new();
    for (id, verdict) in &verdicts {
        match verdict {
            Verdict::Fail { evidence, .. } => wrong.push(format!("{id} fails: {evidence:?}")),
            Verdict::Pass { .. } => {}
            other if story.shows.contains(&id.as_str()) => {
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
