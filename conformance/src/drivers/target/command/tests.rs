//! Programs of the shell that misbehave on purpose.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;
use crate::drivers::process::LINES;

/// A program of the shell whose readiness somebody else answers.
fn shell(script: &str, url: &str) -> CommandTarget {
    CommandTarget {
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        url: url.to_owned(),
        ready_within: Duration::from_millis(300),
        ..CommandTarget::default()
    }
}

fn start() -> Start {
    Start {
        variant: DEFAULT_VARIANT.to_owned(),
        home: PathBuf::from("/tmp/home"),
        model_url: Some("http://model/v1".to_owned()),
    }
}

async fn ready() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 4096]).await;
            let _ = socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    });
    url
}

async fn wait_for_line(running: &dyn Running) -> String {
    for _ in 0..200 {
        if let Some(line) = running.output().first() {
            return line.clone();
        }
        sleep(LOOK_EVERY).await;
    }
    panic!("no output");
}

#[tokio::test]
async fn a_program_that_ends_early_is_told_with_its_last_words() {
    let target = shell("echo no such database >&2; exit 3", "http://127.0.0.1:9");
    let error = target.start(&start()).await.unwrap_err();
    let DriveError::NotStarted { why, output } = error else {
        panic!("{error}")
    };
    assert_eq!(why, "it ended before it was ready (exit status: 3)");
    assert_eq!(output, ["no such database"]);
}

#[tokio::test]
async fn a_program_that_does_not_get_ready_is_told_with_where_to_look() {
    let error = shell("sleep 60", "http://127.0.0.1:9")
        .start(&start())
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("was not ready within 300ms") && text.contains("[target] ready"),
        "{text}"
    );
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_named() {
    let mut target = shell("", "http://127.0.0.1:9");
    target.command = vec!["no-such-program-anywhere".to_owned()];
    let text = target.start(&start()).await.unwrap_err().to_string();
    assert!(
        text.contains("no-such-program-anywhere") && text.contains("[target] command"),
        "{text}"
    );
}

#[tokio::test]
async fn placeholders_and_the_variant_reach_the_program() {
    let mut target = shell("echo $A {model_url} {variant} $0; sleep 60", &ready().await);
    target.env.insert("A".to_owned(), "{home}".to_owned());
    target.variants.insert(
        "demo".to_owned(),
        CommandVariant {
            args: vec!["tier={variant}".to_owned()],
            ..CommandVariant::default()
        },
    );
    assert!(target.offers("demo").is_ok() && target.offers("other").is_err());
    let running = target
        .start(&Start {
            variant: "demo".to_owned(),
            ..start()
        })
        .await
        .unwrap();
    assert_eq!(
        wait_for_line(&*running).await,
        "/tmp/home http://model/v1 demo tier=demo"
    );
}

#[tokio::test]
async fn killing_ends_the_whole_process_group() {
    let running = shell("sleep 60 & echo $!; wait", &ready().await)
        .start(&start())
        .await
        .unwrap();
    let child = wait_for_line(&*running).await;
    running.kill().await.unwrap();
    assert_gone(&child).await;
}

#[tokio::test]
async fn dropping_ends_the_whole_process_group() {
    let running = shell("sleep 60 & echo $!; wait", &ready().await)
        .start(&start())
        .await
        .unwrap();
    let child = wait_for_line(&*running).await;
    drop(running);
    assert_gone(&child).await;
}

#[tokio::test]
async fn a_program_that_is_asked_to_stop_may_do_it_its_own_way() {
    let script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let running = shell(script, &ready().await).start(&start()).await.unwrap();
    assert_eq!(wait_for_line(&*running).await, "up");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn an_output_without_an_end_is_kept_within_bounds() {
    let ring = Ring::default();
    let endless = vec![b'x'; 1 << 20];
    ring.clone().follow(&endless[..]).await;
    ring.clone().follow(&b"line\n".repeat(1000)[..]).await;
    let lines = ring.lines();
    assert_eq!((lines.len(), lines[0].len()), (LINES, 4));
}

/// A zombie is gone, too: it is only not waited for.
async fn assert_gone(pid: &str) {
    for _ in 0..100 {
        let ps = Command::new("ps")
            .args(["-o", "stat=", "-p", pid])
            .output()
            .await
            .unwrap();
        let state = String::from_utf8_lossy(&ps.stdout).trim().to_owned();
        if state.is_empty() || state.starts_with('Z') {
            return;
        }
        sleep(LOOK_EVERY).await;
    }
    panic!("process {pid} still runs");
}
