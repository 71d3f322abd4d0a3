//! A client that a person points at a URL by hand.
//!
//! It takes no lines and reports nothing. The person is told which conversation waits for the client, how many there are,
//! and what to do then.

use std::{net::SocketAddr, time::Duration};

use super::{ClientStart, LaunchClient, PROBE, Waits};
use crate::drivers::{
    DriveError,
    target::Pending,
    testee::{About, Testee},
};

/// A person with a client.
#[derive(Debug)]
pub struct ByHand {
    /// Where the scripted server listens.
    pub listen: SocketAddr,
    /// What will be played: scenarios in their order, each with its number of conversations.
    pub programme: Vec<(String, usize)>,
    /// Told what to do next, in words.
    pub say: fn(&str),
}

impl ByHand {
    /// What there is to do, in a line.
    pub fn overview(&self) -> String {
        let conversations: usize = self.programme.iter().map(|(_, count)| count).sum();
        let (several, scenarios) = (plural(conversations), self.programme.len());
        let minutes = Waits::BY_HAND.first.as_secs() / 60;
        format!(
            "{conversations} conversation{several} in {scenarios} scenario{}; each waits {minutes} minutes for your client; \
             Ctrl-C ends the run with a report of what was seen",
            plural(scenarios)
        )
    }

    /// Which conversation this is, of how many.
    fn place(&self, start: &ClientStart) -> String {
        let (name, number) = (&start.scenario, start.conversation);
        let place = self.programme.iter().position(|(found, _)| found == name);
        let Some(place) = place else {
            return name.clone();
        };
        let count = |programme: &[(String, usize)]| -> usize {
            programme.iter().map(|(_, count)| count).sum()
        };
        let before = count(&self.programme[..place]);
        let (all, here) = (count(&self.programme), self.programme[place].1);
        format!("{} of {all}: {name} ({number} of {here})", before + number)
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

impl LaunchClient for ByHand {
    fn start<'a>(&'a self, start: &'a ClientStart) -> Pending<'a, Result<Testee, DriveError>> {
        if start.scenario != PROBE {
            let session = start.env.get("TURNWIRE_SESSION");
            let session = session.map_or_else(String::new, |name| format!(", session {name}"));
            (self.say)(&format!(
                "{}: let your client connect to {}{session}",
                self.place(start),
                start.url
            ));
        }
        let say = self.say;
        let silent = Testee::in_process(About::default(), move |mut lines, said| async move {
            // As long as it is open, the client is there.
            let _silent = said;
            while let Some(line) = lines.recv().await {
                say(&format!("  then: {}", String::from_utf8_lossy(&line)));
            }
            std::future::pending::<()>().await;
        });
        Box::pin(async move { Ok(silent) })
    }

    fn waits(&self) -> Option<Waits> {
        Some(Waits::BY_HAND)
    }

    fn listens(&self) -> Option<SocketAddr> {
        Some(self.listen)
    }
}

impl Waits {
    /// A person has to find the window first.
    pub const BY_HAND: Self = Self {
        first: Duration::from_secs(300),
        later: Duration::from_secs(30),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_hand() -> ByHand {
        let counted = |name: &str, count| (name.to_owned(), count);
        ByHand {
            listen: ([127, 0, 0, 1], 0).into(),
            programme: vec![counted("connect", 2), counted("redirects", 5)],
            say: |_| {},
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_started_by_hand_is_there_before_it_has_said_anything() {
        let by_hand = by_hand();
        let mut client = by_hand.start(&ClientStart::default()).await.unwrap();
        assert_eq!(client.hear(Duration::from_secs(300)).await, None);
    }

    #[test]
    fn a_person_is_told_which_conversation_it_is_of_how_many() {
        let place = |scenario: &str, conversation| {
            by_hand().place(&ClientStart {
                scenario: scenario.to_owned(),
                conversation,
                ..ClientStart::default()
            })
        };
        assert_eq!(place("connect", 1), "1 of 7: connect (1 of 2)");
        assert_eq!(place("redirects", 3), "5 of 7: redirects (3 of 5)");
        assert_eq!(place("unheard-of", 3), "unheard-of");
        insta::assert_snapshot!(by_hand().overview(), @"7 conversations in 2 scenarios; each waits 5 minutes for your client; Ctrl-C ends the run with a report of what was seen");
    }
}
