//! Web pages as clients, in a real Chromium. `cargo xtask test --step browser` installs it and runs this.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

mod served;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use served::serve;
use tokio::{sync::watch, time::timeout};
use tokio_util::task::AbortOnDropHandle;
use turnwire::drivers::browser::{
    Browser, Page, Tab, find,
    har::{self, HarLog},
    tab::{Heard, Opening},
};

/// A busy machine takes its time; nothing here waits for a period to pass.
const LONG: Duration = Duration::from_secs(60);

/// Of the second frame of an action.
const SECOND: &str = "\"seq\":2,";

/// How often something is said at most until the frames of an action are known.
const TURNS: usize = 20;

fn chromium() -> PathBuf {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    find::chromium(named.as_deref())
        .unwrap_or_else(|error| panic!("{error}; `cargo xtask test` installs it"))
}

fn testees() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testees")
}

/// A page that somebody looks at, and what it has reported.
struct Shown {
    tab: Arc<Tab>,
    reports: watch::Receiver<Vec<Value>>,
    _hearing: AbortOnDropHandle<()>,
}

impl Shown {
    async fn open(browser: &Browser, opening: Opening) -> Self {
        let (tab, mut events) = Tab::open(browser, opening).await.unwrap();
        let tab = Arc::new(tab);
        let (tell, reports) = watch::channel(Vec::new());
        let hears = Arc::clone(&tab);
        let hearing = tokio::spawn(async move {
            while let Some(heard) = hears.hear(&mut events).await {
                let report = match heard {
                    Heard::Report(text) => serde_json::from_str(&text).unwrap(),
                    Heard::Remark(words) => json!({ "remark": words }),
                };
                tell.send_modify(|reports: &mut Vec<Value>| reports.push(report));
            }
        });
        tab.navigate().await.unwrap();
        Self {
            tab,
            reports,
            _hearing: AbortOnDropHandle::new(hearing),
        }
    }

    /// Waits until it has reported something that fits, and gives the newest that does.
    async fn reported(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let newest = |reports: &Vec<Value>| reports.iter().rev().find(|it| fits(it)).cloned();
        let waiting = self.reports.wait_for(|reports| newest(reports).is_some());
        let found = match timeout(LONG, waiting).await {
            Ok(Ok(reports)) => newest(&reports),
            _ => None,
        };
        found.unwrap_or_else(|| panic!("{what}: {:?}", self.reports.borrow()))
    }

    async fn told(&self, line: Value) {
        assert_eq!(self.tab.take(&line.to_string()).await, Ok(None));
    }
}

/// A page that says what happens to it.
const WATCHING: &str = r#"<script type="module">
  import { say } from "./say.mjs";
  sessionStorage.loads = Number(sessionStorage.loads ?? 0) + 1;
  const reach = () => fetch("/reach").then((answer) => answer.status, () => "nobody");
  document.addEventListener("visibilitychange", () => say({ visibility: document.visibilityState }));
  addEventListener("offline", async () => say({ offline: await reach() }));
  addEventListener("online", async () => say({ online: await reach() }));
  window.turnwire = (line) => say({ took: JSON.parse(line) });
  say({ loads: sessionStorage.loads, start: turnwireStart, origin: location.origin });
</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_told_hidden_cut_off_and_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("index.html"), WATCHING).unwrap();
    let module = "export const say = (what) => turnwireReport(what);";
    fs::write(folder.path().join("say.mjs"), module).unwrap();
    let (_served, url) = serve();
    let browser = Browser::start(&chromium(), false).await.unwrap();
    let opening = Opening {
        page: Page::named(folder.path().to_str().unwrap()).unwrap(),
        server: url.clone(),
        start: [("TURNWIRE_URL".to_owned(), url.clone())].into(),
        har: None,
    };
    let mut page = Shown::open(&browser, opening).await;

    page.told(json!({ "do": "say", "text": "\"`${1}" })).await;
    let first = page.reported("it loads", |it| it["loads"] == "1").await;
    assert_eq!(first["start"], json!({ "TURNWIRE_URL": url }));
    assert_eq!(first["origin"], url, "the page is at home at the server");
    let took = page
        .reported("it takes a line", |it| !it["took"].is_null())
        .await;
    assert_eq!(took["took"]["text"], "\"`${1}");

    page.tab.hide(true).await.unwrap();
    page.reported("it is hidden", |it| it["visibility"] == "hidden")
        .await;
    page.tab.hide(false).await.unwrap();
    page.reported("it is shown", |it| it["visibility"] == "visible")
        .await;

    page.tab.offline(true).await.unwrap();
    let offline = page
        .reported("offline", |it| !it["offline"].is_null())
        .await;
    assert_eq!(offline["offline"], "nobody");
    page.tab.offline(false).await.unwrap();
    let online = page.reported("online", |it| !it["online"].is_null()).await;
    assert_eq!(online["online"], 404);

    page.tab.reload().await.unwrap();
    page.reported("it loads again", |it| it["loads"] == "2")
        .await;
}

/// Waits until the newest subscription has brought a frame.
async fn subscribed(log: &Mutex<HarLog>) {
    let newest = || {
        let file = har::lock(log).to_har("turnwire");
        let entries = file["log"]["entries"].as_array()?;
        let is_stream = |entry: &&Value| of(entry, "/api/events/stream");
        entries.iter().rfind(is_stream).cloned()
    };
    let brought = async {
        while newest().is_none_or(|it| {
            !it["response"]["_error"].is_null() || it["_eventSourceMessages"].is_null()
        }) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, brought).await.unwrap();
}

/// Whether an entry is about this path.
fn of(entry: &Value, path: &str) -> bool {
    let url = entry["request"]["url"].as_str().unwrap();
    url.split('?').next().unwrap().ends_with(path)
}

/// Says something, and waits until it is answered and the page has subscribed again.
async fn say(page: &mut Shown, said: &str) {
    page.told(json!({ "do": "say", "text": said })).await;
    page.reported("it is answered", |it| {
        let shown = &it["state"];
        let messages = shown["messages"].as_array().into_iter().flatten();
        let times = messages.filter(|message| message["text"] == said).count();
        let open = shown["executing"] == false && shown["connection"] == "open";
        open && times == 1
            && shown["messages"].as_array().unwrap().last().unwrap()["role"] == "assistant"
    })
    .await;
}

/// The place of an exchange that is an action, of whose stream the second frame is known.
fn action_with_frames(har: &Value) -> Option<usize> {
    let entries = har["log"]["entries"].as_array()?;
    entries.iter().position(|entry| {
        let text = entry["response"]["content"]["text"].as_str();
        of(entry, "/api/actions") && text.is_some_and(|text| text.contains(SECOND))
    })
}

/// A HAR file of the client in a page that opens a session of the reference server and says something at least twice.
async fn capture() -> Value {
    let (_served, url) = serve();
    let browser = Browser::start(&chromium(), false).await.unwrap();
    let log: Arc<Mutex<HarLog>> = Arc::default();
    let opening = Opening {
        page: Page::named(testees().join("covel").to_str().unwrap()).unwrap(),
        server: url.clone(),
        start: [("TURNWIRE_URL".to_owned(), url)].into(),
        har: Some(Arc::clone(&log)),
    };
    let mut page = Shown::open(&browser, opening).await;
    let created = page.tab.evaluate(
        r#"fetch("/api/sessions", {
            method: "POST", headers: { "content-type": "application/json" },
            body: JSON.stringify({ plugins: ["story"] }),
        }).then((answer) => answer.json()).then((session) => session.id)"#,
    );
    let session = created.await.unwrap();
    page.told(json!({ "do": "open", "session": session })).await;
    page.reported("it is open", |it| it["state"]["connection"] == "open")
        .await;
    // On a busy machine an action may be over before its bytes were asked for; then another one is tried.
    for turn in 1..=TURNS {
        say(&mut page, &format!("This is {turn}.")).await;
        subscribed(&log).await;
        let known = action_with_frames(&har::lock(&log).to_har("turnwire")).is_some();
        if turn > 1 && known {
            break;
        }
    }
    // Bodies are asked for when an exchange is over.
    let whole = async {
        loop {
            let file = har::lock(&log).to_har("turnwire");
            let entries = file["log"]["entries"].as_array().unwrap();
            let lacks = |entry: &&Value| {
                let response = &entry["response"];
                response["status"] == 200
                    && response["_error"].is_null()
                    && response["content"]["text"].is_null()
            };
            if entries.iter().filter(lacks).count() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, whole).await.unwrap();
    drop(page);
    har::lock(&log).to_har("turnwire")
}

/// `turnwire check` on a HAR file.
fn checked(file: &Path, har: &Value) -> Output {
    fs::write(file, har.to_string()).unwrap();
    let name = file.file_name().unwrap();
    Command::new(env!("CARGO_BIN_EXE_turnwire"))
        .arg("check")
        .arg(name)
        .current_dir(file.parent().unwrap())
        .env("XDG_STATE_HOME", file.parent().unwrap())
        .output()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_har_file_of_chromium_passes_and_fails_on_the_frame_that_was_edited() {
    let mut har = capture().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capture.har");

    let ended = checked(&file, &har);
    let text = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{text}");
    assert!(text.contains("covel-sse in 1 files: conformant"), "{text}");

    let place = action_with_frames(&har).expect("the frames of an action are known");
    let entries = har["log"]["entries"].as_array_mut().unwrap();
    let brought_events = |entry: &Value| {
        let events = entry["_eventSourceMessages"].as_array();
        of(entry, "/api/events/stream") && events.is_some_and(|events| !events.is_empty())
    };
    assert!(entries.iter().any(brought_events));
    let content = &mut entries[place]["response"]["content"];
    let edited = content["text"]
        .as_str()
        .unwrap()
        .replacen(SECOND, "\"seq\":0,", 1);
    content["text"] = edited.into();

    let ended = checked(&file, &har);
    let text = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1), "{text}");
    let named = format!("exchange {}, frame 2", place + 1);
    assert!(text.contains(&named), "{named} is not named: {text}");
}

/// The command, with a folder of its own for what is temporary.
fn client(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_turnwire"))
        .arg("client")
        .args(args)
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("TMPDIR", folder.join("temporary"))
        .env("CHROMIUM", chromium())
        .output()
        .unwrap()
}

#[test]
fn the_event_source_of_chromium_is_a_client_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let page = testees().join("sse/page.html");
    let har = folder.path().join("out.har");
    let args = [
        "--suite",
        "sse",
        "--scenario",
        "redirects",
        "--browser",
        page.to_str().unwrap(),
        "--har",
        har.to_str().unwrap(),
    ];
    let ended = client(folder.path(), &args);
    let (text, words) = (
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr),
    );
    assert_eq!(ended.status.code(), Some(0), "{text}{words}");
    let har: Value = serde_json::from_slice(&fs::read(har).unwrap()).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    assert!(
        entries
            .iter()
            .any(|entry| entry["response"]["status"] == 301)
    );

    let left: Vec<_> = temporary.read_dir().unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    #[cfg(target_os = "linux")]
    assert_eq!(staying(temporary.to_str().unwrap()), Vec::<String>::new());
}

/// Command lines of processes that hold a text and do not end by themselves, as the watchers of a browser that was ended
/// do once they notice.
#[cfg(target_os = "linux")]
fn staying(text: &str) -> Vec<String> {
    let until = Instant::now() + LONG;
    loop {
        let left = speaking_of(text);
        if left.is_empty() || Instant::now() > until {
            return left;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Command lines of processes that hold a text.
#[cfg(target_os = "linux")]
fn speaking_of(text: &str) -> Vec<String> {
    let processes = Path::new("/proc").read_dir().unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(text))
        .collect()
}

#[test]
fn a_browser_that_is_missing_is_one_line_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let page = testees().join("sse/page.html");
    let args = [
        "--browser",
        page.to_str().unwrap(),
        "--chromium",
        "/nowhere/chromium",
    ];
    let ended = client(folder.path(), &args);
    let words = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(
        (ended.status.code(), words.lines().count()),
        (Some(2), 1),
        "{words}"
    );
    assert!(words.contains("apt-get install chromium"), "{words}");
}
