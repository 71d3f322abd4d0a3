//! What the stage sends, against a server that says yes to everything.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{covel::TokenPlace, *};
use crate::{
    drivers::{
        http::BaseUrl,
        target::{Launch, url::UrlTarget},
    },
    run::harness,
    transcript::{Header, Transcript, views::http::exchanges},
};

const YES: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
                   {\"id\":\"s/1\",\"ownerToken\":\"t\"}";

async fn stage(profile: Profile) -> (Stage, Recorder) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = socket.read(&mut [0; 4096]).await;
                let _ = socket.write_all(YES.as_bytes()).await;
            });
        }
    });
    let launch: Arc<dyn Launch> = Arc::new(UrlTarget {
        url,
        variants: [].into(),
    });
    let header = Header {
        suite: "covel-sse".to_owned(),
        ..Header::default()
    };
    let recorder = Recorder::new(header);
    let setting = Setting {
        scenario: "steps".to_owned(),
        seed: 7,
        recorder: recorder.clone(),
        instance: Arc::new(
            Instance::start(launch, "default", None, None)
                .await
                .unwrap(),
        ),
        model: None,
        profile: Arc::new(profile),
    };
    (Stage::new(setting).await.unwrap(), recorder)
}

async fn every_step() -> Transcript {
    let (stage, recorder) = stage(Profile::reference()).await;
    let session = stage.session().await.unwrap();
    stage.start_session(&session).await.unwrap();
    stage.say(&session, &stage.token()).await.unwrap();
    for place in [
        TokenPlace::Bearer,
        TokenPlace::SessionHeader,
        TokenPlace::Query,
    ] {
        let subscribe = Subscribe::to(&session)
            .topics(&["state", "job"])
            .after("e:1")
            .token_in(place);
        stage.subscribe(&subscribe).await.unwrap().close();
    }
    stage
        .subscribe(&Subscribe::to(&session).header_after("e:2").slow())
        .await
        .unwrap();
    stage.view(&session).await.unwrap();
    stage.messages(&session).await.unwrap();
    stage.execution(&session).await.unwrap();
    stage
        .query(&session, "/messages/page?limit=5")
        .await
        .unwrap();
    stage
        .put_plugin_data(&session, "p", "n", "k 1", json!({ "a": 1 }))
        .await
        .unwrap();
    stage.publish_one(&session).await.unwrap();
    stage
        .delete_plugin_data(&session, "p", "n", "k 1")
        .await
        .unwrap();
    stage
        .fixture(&session, "burst", json!({ "count": 3 }))
        .await
        .unwrap();
    stage
        .emit(&session, "custom.thing", json!({}))
        .await
        .unwrap();
    stage.get("/api/health").await.unwrap();
    stage.delete_session(&session).await.unwrap();
    stage.finish().await;
    recorder.transcript()
}

#[tokio::test]
async fn every_step_of_the_stage_keeps_to_the_protocol() {
    assert_eq!(harness::errors(&every_step().await), []);
}

#[tokio::test]
async fn requests_about_a_session_carry_its_owner_token() {
    let transcript = every_step().await;
    let about = exchanges(&transcript)
        .into_iter()
        .filter(|exchange| exchange.path().contains("s%2F1"));
    let tokens: Vec<_> = about
        .map(|exchange| exchange.request_header("authorization").map(str::to_owned))
        .collect();
    assert!(
        tokens.len() > 8
            && tokens
                .iter()
                .all(|token| token.as_deref() == Some("Bearer t")),
        "{tokens:?}"
    );
}

#[tokio::test]
async fn every_exchange_of_a_finished_stage_has_an_end() {
    let transcript = every_step().await;
    for exchange in exchanges(&transcript) {
        assert!(exchange.end.is_some(), "{}", exchange.request_line());
    }
}

#[tokio::test]
async fn tokens_are_the_same_in_every_run_and_none_is_part_of_another() {
    let (first, _) = stage(Profile::reference()).await;
    let (again, _) = stage(Profile::reference()).await;
    let tokens: Vec<_> = (0..12).map(|_| first.token()).collect();
    assert_eq!(tokens, (0..12).map(|_| again.token()).collect::<Vec<_>>());
    assert_eq!(tokens[0], "tw-0007-steps-00001");
    for (index, token) in tokens.iter().enumerate() {
        let holders = tokens.iter().filter(|other| other.contains(token.as_str()));
        assert_eq!(holders.count(), 1, "{index}: {token}");
    }
}

#[tokio::test]
async fn waits_are_scaled_but_patience_has_a_floor() {
    let (stage, _) = stage(Profile::reference()).await;
    let minute = Duration::from_secs(60);
    assert_eq!(stage.scaled(minute), Duration::from_millis(600));
    assert_eq!(stage.patience(minute), Duration::from_secs(1));
    assert_eq!(stage.patience(minute * 10), Duration::from_secs(6));
    let given = stage.allowance().follow().borrow().time;
    assert_eq!(
        given,
        Duration::from_millis(600),
        "what is sat out extends the limit of the scenario, and patience does not"
    );
}

#[tokio::test]
async fn what_the_profile_does_not_allow_is_told_with_what_would() {
    let (stage, _) = stage(Profile::reference()).await;
    let restart = stage.restart().await.unwrap_err().to_string();
    assert!(restart.contains("[target] command"), "{restart}");
    let model = stage.model().unwrap_err().to_string();
    assert!(model.contains("{model_url}"), "{model}");
}
