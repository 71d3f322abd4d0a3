//! Images on every wire.

use super::*;
use tokio::net::TcpListener;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";

fn part(image: &str, media_type: Option<&str>) -> ContentPart {
    ContentPart::Image {
        image: image.to_owned(),
        media_type: media_type.map(str::to_owned),
    }
}

fn shows(parts: Vec<ContentPart>) -> ModelRequest {
    ModelRequest {
        messages: vec![ChatMessage::User {
            content: Content::Parts(parts),
        }],
        streaming: true,
        ..ModelRequest::default()
    }
}

fn text(text: &str) -> ContentPart {
    ContentPart::Text {
        text: text.to_owned(),
    }
}

/// The parts of the only message as a wire sends them.
async fn sent(wire: Wire, parts: Vec<ContentPart>) -> Value {
    let mock = mock([Reply::text("seen")]).await;
    client(&mock, wire).ask(shows(parts)).await.result.unwrap();
    let body = bodies(&mock).remove(0);
    let place = match wire {
        Wire::OpenaiResponses => "/input/0/content",
        Wire::Gemini => "/contents/0/parts",
        _ => "/messages/0/content",
    };
    body.pointer(place).cloned().unwrap()
}

#[tokio::test]
async fn inline_images_have_each_wires_form_between_their_texts() {
    let url = format!("data:image/png;base64,{PNG}");
    for form in [PNG, &url] {
        for (wire, image, a) in [
            (
                Wire::OpenaiChat,
                json!({ "type": "image_url", "image_url": { "url": url } }),
                json!({ "type": "text", "text": "A" }),
            ),
            (
                Wire::GeminiOpenai,
                json!({ "type": "image_url", "image_url": { "url": url } }),
                json!({ "type": "text", "text": "A" }),
            ),
            (
                Wire::OpenaiResponses,
                json!({ "type": "input_image", "image_url": url }),
                json!({ "type": "input_text", "text": "A" }),
            ),
            (
                Wire::AnthropicMessages,
                json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } }),
                json!({ "type": "text", "text": "A" }),
            ),
            (
                Wire::Gemini,
                json!({ "inlineData": { "mimeType": "image/png", "data": PNG } }),
                json!({ "text": "A" }),
            ),
        ] {
            let parts = sent(wire, vec![text("A"), part(form, None), text("B")]).await;
            assert_eq!(parts[0], a, "{wire}");
            assert_eq!(parts[1], image, "{wire}");
            assert_eq!(parts.as_array().unwrap().len(), 3, "{wire}");
        }
    }
}

/// Nothing is fetched, and there is no media store that could be read: the gateway knows none.
#[tokio::test]
async fn an_image_goes_out_as_it_came_without_being_fetched() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rest = format!("{}/a%20b.png?x=1&y=2", listener.local_addr().unwrap());
    for (wire, scheme, place) in [
        (Wire::OpenaiChat, "http", "/0/image_url/url"),
        (Wire::GeminiOpenai, "http", "/0/image_url/url"),
        (Wire::OpenaiResponses, "http", "/0/image_url"),
        (Wire::AnthropicMessages, "https", "/0/source/url"),
    ] {
        let url = format!("{scheme}://{rest}");
        let parts = sent(wire, vec![part(&url, None)]).await;
        assert_eq!(parts.pointer(place), Some(&json!(url)), "{wire}");
    }
    let visited = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(visited.is_err(), "somebody fetched the image");
}

#[tokio::test]
async fn gemini_takes_its_own_files_and_refuses_other_urls_before_any_request() {
    let file = "https://generativelanguage.googleapis.com/v1beta/files/abc";
    let parts = sent(Wire::Gemini, vec![part(file, Some("image/png"))]).await;
    assert_eq!(
        parts[0],
        json!({ "fileData": { "mimeType": "image/png", "fileUri": file } })
    );

    let mock = mock([Reply::text("seen")]).await;
    let client = client(&mock, Wire::Gemini);
    for image in [
        part(file, None),
        part("https://img.test/a.png", Some("image/png")),
    ] {
        let error = client
            .ask(shows(vec![text("look"), image]))
            .await
            .result
            .unwrap_err();
        assert_eq!(
            (error.kind, error.code.as_deref()),
            (ErrorKind::Config, Some(CONFIG_ERROR))
        );
    }
    assert!(mock.journal().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn a_text_only_target_gets_the_text_alone() {
    let mock = mock([Reply::text("seen")]).await;
    let told = target(&mock, Wire::OpenaiChat).accepts(["text"]);
    let client = Client::new(config(told)).unwrap();

    client
        .ask(shows(vec![text("look"), part(PNG, None)]))
        .await
        .result
        .unwrap();
    client
        .ask(shows(vec![part(PNG, None)]))
        .await
        .result
        .unwrap();

    let bodies = bodies(&mock);
    assert_eq!(
        bodies[0]["messages"][0]["content"],
        json!([{ "type": "text", "text": "look" }])
    );
    assert_eq!(bodies[1]["messages"][0]["content"], "[image]");
}

/// What a host keeps as bytes is handed over as plain base64 with its type, and a reference to a stored
/// medium is no content at all.
#[test]
fn a_media_reference_is_no_content_part() {
    let media = json!({ "role": "user", "content": [{ "type": "media", "ref": { "id": "m-1" } }] });
    assert!(serde_json::from_value::<ChatMessage>(media).is_err());

    let stored = ContentPart::stored(b"\xff\xd8\xff", "image/jpeg");
    assert_eq!(
        serde_json::to_value(stored).unwrap(),
        json!({ "type": "image", "image": "/9j/", "mediaType": "image/jpeg" })
    );
}

#[tokio::test]
async fn a_fallback_of_which_nothing_is_known_gets_no_image() {
    for (preferred, fallback, images) in [
        ("gpt-5.2", "made-up", 0),
        ("gpt-5.2", "claude-x", 1),
        ("made-up", "other", 1),
    ] {
        let mock = mock([Reply::error(503), Reply::text("seen")]).await;
        let named = |model: &str| TargetConfig {
            model: model.to_owned(),
            ..target(&mock, Wire::OpenaiChat)
        };
        let config = ClientConfig {
            retry: RetryPolicy::NEVER,
            ..ClientConfig::new(named(preferred)).fallback(named(fallback))
        };
        let parts = vec![text("look"), part(PNG, None)];
        let reply = Client::new(config)
            .unwrap()
            .ask(shows(parts))
            .await
            .result
            .unwrap();

        assert_eq!(reply.target.model.as_deref(), Some(fallback));
        let bodies = bodies(&mock);
        let count = |body: &Value| body.to_string().matches("image_url\":{").count();
        assert_eq!(
            (count(&bodies[0]), count(&bodies[1])),
            (1, images),
            "{preferred} {fallback}"
        );
    }
}
