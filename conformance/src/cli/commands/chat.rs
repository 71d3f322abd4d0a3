//! `turnwire chat`: a terminal chat on the reference client.
//!
//! What is typed is said; `/stop`, `/retry`, `/answer FORM JSON` and `/quit` are the terminal's own. Text is printed as it
//! streams; a text that the server replaced is printed again.

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    sync::mpsc,
};
use turnwire_client::{
    covel::{Person, Shown, edge},
    http::send,
};

use crate::cli::{
    args::ChatArgs,
    console::{self, Console},
    exit::{CONFORMANT, CliError},
};

/// Bytes of the answer to the creation of a session that are read.
const ANSWER: usize = 1 << 20;

pub(in crate::cli) fn run(args: &ChatArgs, console: &Console) -> Result<u8, CliError> {
    console::block_on(chat(args, console))?;
    Ok(CONFORMANT)
}

async fn chat(args: &ChatArgs, console: &Console) -> Result<(), CliError> {
    let url = args.url.trim_end_matches('/').to_owned();
    let (session, token) = match &args.session {
        Some(session) => (session.clone(), args.token.clone()),
        None => create(&url, args.token.as_deref()).await?,
    };
    console.note(&format!(
        "session {session}; /stop, /retry, /answer FORM JSON, /quit"
    ));
    let (does, person) = mpsc::channel(16);
    // The channel is empty and its other end lives in this function.
    let _ = does.send(Person::Open(session)).await;
    let server = edge::Server {
        url,
        token,
        time_scale: args.time_scale.unwrap_or(1.0),
        store: None,
    };
    let mut screen = Screen::default();
    let showing = edge::run(server, person, |shown| screen.show(shown, console));
    let typing = async {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let Some(doing) = read(line.trim()) else {
                if line.trim() == "/quit" {
                    return;
                }
                continue;
            };
            if does.send(doing).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = showing => {}
        () = typing => {}
    }
    Ok(())
}

/// Creates a session; its id and the token of its owner.
async fn create(url: &str, token: Option<&str>) -> Result<(String, Option<String>), CliError> {
    let refused = |what: String| CliError::Target {
        what,
        remedy: "give the base URL of a Covel server, or --session".to_owned(),
    };
    let mut request = http::Request::post("/").header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let answer = send(
        &format!("{url}/api/sessions"),
        request,
        Bytes::from_static(b"{}"),
    )
    .await
    .map_err(|error| refused(error.to_string()))?;
    let status = answer.status;
    let body = answer
        .body(ANSWER)
        .await
        .map_err(|error| refused(error.to_string()))?;
    let record: Value = serde_json::from_slice(&body).unwrap_or_default();
    match record["id"].as_str() {
        Some(id) => Ok((
            id.to_owned(),
            record["ownerToken"].as_str().map(str::to_owned),
        )),
        None => Err(refused(format!("the server creates no session: {status}"))),
    }
}

/// What a line means; nothing for an empty one and for the end.
fn read(line: &str) -> Option<Person> {
    let mut words = line.splitn(3, ' ');
    match (words.next()?, words.next(), words.next()) {
        ("" | "/quit", ..) => None,
        ("/stop", ..) => Some(Person::Stop),
        ("/retry", ..) => Some(Person::Retry),
        ("/answer", Some(form), Some(values)) => {
            let values = serde_json::from_str(values).unwrap_or_default();
            Some(Person::Answer(form.to_owned(), values))
        }
        _ => Some(Person::Say(line.to_owned())),
    }
}

/// What was printed.
#[derive(Debug, Default)]
struct Screen {
    /// The text of each message as it was printed.
    messages: Vec<String>,
    remarks: Vec<String>,
    open_line: bool,
}

impl Screen {
    fn show(&mut self, shown: &Shown, console: &Console) {
        for (place, message) in shown.messages.iter().enumerate() {
            if message.role == "player" {
                // The player sees what was typed already.
                self.keep(place, &message.text);
                continue;
            }
            let before = self.messages.get(place).cloned().unwrap_or_default();
            if message.text == before {
                continue;
            }
            match message.text.strip_prefix(&before) {
                Some(more) if !before.is_empty() => self.write(more, console),
                _ => {
                    self.end_line(console);
                    self.write(&message.text, console);
                }
            }
            self.keep(place, &message.text);
        }
        self.messages.truncate(shown.messages.len());
        self.remark(shown, console);
    }

    fn remark(&mut self, shown: &Shown, console: &Console) {
        let forms = shown
            .messages
            .iter()
            .filter_map(|message| message.form.as_ref());
        let asked = forms
            .filter(|form| !form.submitted)
            .map(|form| format!("[form {}]", form.block_id));
        let wrong = shown
            .execution_error
            .iter()
            .map(|error| format!("[error: {error}]"));
        let noted = shown.notice.iter().map(|notice| format!("[{notice}]"));
        let remarks: Vec<_> = asked.chain(wrong).chain(noted).collect();
        for remark in remarks
            .iter()
            .filter(|remark| !self.remarks.contains(remark))
        {
            if self.open_line {
                console.note("");
                self.open_line = false;
            }
            console.note(remark);
        }
        self.remarks = remarks;
        if !shown.executing {
            self.end_line(console);
        }
    }

    fn keep(&mut self, place: usize, text: &str) {
        self.messages
            .resize(self.messages.len().max(place + 1), String::new());
        text.clone_into(&mut self.messages[place]);
    }

    fn write(&mut self, text: &str, console: &Console) {
        // A terminal that is closed ends the chat with the next line that is read.
        let _ = console.stream(text);
        self.open_line = true;
    }

    fn end_line(&mut self, console: &Console) {
        if std::mem::take(&mut self.open_line) {
            let _ = console.print("\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_said_unless_it_is_the_terminals_own() {
        assert_eq!(
            read("Hello there"),
            Some(Person::Say("Hello there".to_owned()))
        );
        assert_eq!(read("/roll 2d6"), Some(Person::Say("/roll 2d6".to_owned())));
        assert_eq!(read("/stop"), Some(Person::Stop));
        let values = serde_json::json!({"a": 1});
        assert_eq!(
            read(r#"/answer b1 {"a": 1}"#),
            Some(Person::Answer("b1".to_owned(), values))
        );
        assert_eq!(read("/quit"), None);
        assert_eq!(read(""), None);
    }
}
