//! Faults of reconnects over `chat-ws` that the fuzzer has to find, planted between the harness and a conformant server.
//!
//! Each is one mistake that a server's author could make; [`at`] knows where a socket stands, and what passed by on all
//! of them.

use serde_json::Value;

use crate::fuzz::PlantedFault;

mod at;

use at::{flushed, kind, next_number, resync_for, seq, session};

macro_rules! fault {
    ($name:literal, $about:literal, client: $act:expr) => {
        fault!($name, $about, server: at::pass, client: $act)
    };
    ($name:literal, $about:literal, server: $act:expr) => {
        fault!($name, $about, server: $act, client: at::pass)
    };
    ($name:literal, $about:literal, server: $server:expr, client: $client:expr) => {
        PlantedFault {
            name: $name,
            about: $about,
            make: || at::plant($server, $client),
        }
    };
}

/// The planted faults.
pub const FAULTS: &[PlantedFault] = &[
    fault!("replay-off-by-one", "the first frame after lastSeq is not replayed", client: |at, frame, out| {
        if !(at.replays(&frame) && at.replayed == 1) {
            out.push(frame);
        }
    }),
    fault!("replay-includes-last", "the frame of lastSeq itself is replayed too", server: |_, mut frame, out| {
        match at::last(&frame) {
            Some(last) if last >= 0.0 => at::set_last(&mut frame, last - 1.0),
            _ => {}
        }
        out.push(frame);
    }),
    fault!("partial-replay", "only the newest two frames are replayed, and nothing says so", client: |at, frame, out| {
        at.hold_replay(frame, out, |_, held| held.split_off(held.len().saturating_sub(2)));
    }),
    fault!("buffer-trimmed-early", "three frames are kept; a gap of more is answered with chat:resync", client: |at, frame, out| {
        at.hold_replay(frame, out, |_, held| match held.first() {
            Some(first) if held.len() > 3 => vec![resync_for(first)],
            _ => std::mem::take(held),
        });
    }),
    fault!("resync-swallowed", "a gap that is gone is not told", client: |_, frame, out| {
        if kind(&frame) != "chat:resync" {
            out.push(frame);
        }
    }),
    fault!("partial-replay-after-resync", "chat:resync is followed by what is still there of the gap", client: |at, frame, out| {
        let gone = kind(&frame) == "chat:resync";
        let rest = at.memory(|memory| memory.newest(session(&frame), 3));
        out.push(frame);
        if gone {
            out.extend(rest);
        }
    }),
    fault!("resync-beside-replay", "a replay is preceded by chat:resync", client: |at, frame, out| {
        if at.replays(&frame) && at.replayed == 1 {
            out.push(resync_for(&frame));
        }
        out.push(frame);
    }),
    fault!("duplicate-at-the-seam", "the last replayed frame is sent again before the first live one", client: |at, frame, out| {
        if at.replays(&frame) {
            at.last = Some(frame.clone());
        } else if at::is_numbered(&frame) {
            out.extend(at.last.take().filter(|last| session(last) == session(&frame)));
        }
        out.push(frame);
    }),
    fault!("loss-at-the-seam", "the first live frame after a replay is lost", client: |at, frame, out| {
        if at.replays(&frame) {
            at.last = Some(frame.clone());
        } else if at::is_numbered(&frame) && at.last.take().is_some() {
            return;
        }
        out.push(frame);
    }),
    fault!("replay-out-of-order", "the first two frames of a replay change places", client: |at, frame, out| {
        at.hold_replay(frame, out, |_, held| {
            if held.len() > 1 {
                held.swap(0, 1);
            }
            std::mem::take(held)
        });
    }),
    fault!("replay-numbered-anew", "replayed frames are numbered from 0", client: |at, mut frame, out| {
        if at.replays(&frame) {
            frame["payload"]["seq"] = (at.replayed - 1).into();
        }
        out.push(frame);
    }),
    fault!("replay-with-other-content", "replayed texts are cut", client: |at, mut frame, out| {
        if at.replays(&frame) && kind(&frame) == "chat:response" {
            frame["payload"]["chunk"] = "...".into();
        }
        out.push(frame);
    }),
    fault!("end-not-replayed", "chat:complete is not kept for a replay", client: |at, frame, out| {
        if !(at.replays(&frame) && kind(&frame) == "chat:complete") {
            out.push(frame);
        }
    }),
    fault!("turn-forgotten-at-its-end", "a turn that is over is not kept for a replay", client: |at, frame, out| {
        at.hold_replay(frame, out, |at, held| {
            if at.runs { std::mem::take(held) } else { Vec::new() }
        });
    }),
    fault!("replay-unasked", "a subscription without wantReplay gets the whole turn", server: |_, mut frame, out| {
        if kind(&frame) == "chat:subscribe" && frame["payload"]["wantReplay"] != true {
            frame["payload"]["wantReplay"] = true.into();
            frame["payload"]["lastSeq"] = (-1).into();
        }
        out.push(frame);
    }),
    fault!("zero-taken-for-none", "lastSeq 0 is read as no number, and all is replayed", server: |_, mut frame, out| {
        if at::last(&frame) == Some(0.0) {
            at::set_last(&mut frame, -1.0);
        }
        out.push(frame);
    }),
    fault!("future-number-replays-all", "a number beyond the newest frame gets the whole turn", server: |at, mut frame, out| {
        let newest = at.memory(|memory| memory.newest(session(&frame), 1)).pop();
        let newest = newest.and_then(|newest| seq(&newest));
        match (at::last(&frame), newest) {
            (Some(last), Some(newest)) if last > next_number(newest) => at::set_last(&mut frame, -1.0),
            _ => {}
        }
        out.push(frame);
    }),
    fault!("resync-for-the-future", "a number beyond the newest frame is answered with chat:resync", server: |at, frame, out| {
        let newest = at.memory(|memory| memory.newest(session(&frame), 1)).pop();
        if let (Some(last), Some(newest)) = (at::last(&frame), newest)
            && seq(&newest).is_some_and(|seq| last > next_number(seq))
        {
            at.outlet.to_client(&resync_for(&newest));
        }
        out.push(frame);
    }),
    fault!("numbering-goes-on", "a turn goes on with the numbers of the turn before it", client: |at, mut frame, out| {
        if at::is_numbered(&frame) {
            let base = at.memory(|memory| memory.base(&frame));
            frame["payload"]["seq"] = (seq(&frame).unwrap_or_default() + base).into();
        }
        out.push(frame);
    }),
    fault!("job-reused-after-restart", "the first turn after a restart has the job of the turn that was interrupted", client: |at, mut frame, out| {
        if let Some(job) = at.memory(|memory| memory.former_job(&frame)) {
            frame["payload"]["jobId"] = job.into();
        }
        out.push(frame);
    }),
    fault!("wrong-subscriber", "a socket hears the end of turns that it did not ask for", client: |at, frame, out| {
        let other = session(&frame).to_owned();
        let ends = kind(&frame) == "chat:active" && frame["payload"]["running"] == false;
        let stranger = !at.says && !at.subscribed.is_empty() && !at.subscribed.contains(&other);
        out.push(frame);
        if ends && stranger {
            out.extend(at.memory(|memory| memory.newest(&other, 1)));
        }
    }),
    fault!("older-socket-forgotten", "a session has one subscriber: a second one takes its place", client: |at, frame, out| {
        let owner = at.memory(|memory| memory.owners.get(session(&frame)).copied());
        let forgotten = owner.is_some_and(|owner| owner != at.me) && !at.says;
        if !(forgotten && at::is_numbered(&frame)) {
            out.push(frame);
        }
    }),
    fault!("queue-drained-twice", "what waits is taken twice", client: |at, frame, out| {
        if let Some(text) = flushed(&frame)
            // A case that is played again has the same texts, in other sessions.
            && at.memory(|memory| memory.once(&format!("{} {text}", session(&frame))))
        {
            let payload = serde_json::json!({
                "projectSlug": frame["payload"]["projectSlug"], "sessionId": session(&frame), "text": text,
            });
            at.outlet.to_server(&crate::stage::chat_ws::frame("chat:set_queue", payload));
        }
        out.push(frame);
    }),
    fault!("queue-never-drained", "what is queued during a turn is never taken", server: |at, frame, out| {
        let runs = at.memory(|memory| memory.running.contains_key(session(&frame)));
        if !(runs && at::queued(&frame).is_some()) {
            out.push(frame);
        }
    }),
    fault!("queue-lost-at-cancel", "what waits when a turn is called off is lost", server: |at, frame, out| {
        let of = at.memory(|memory| memory.session_of(&frame));
        if let Some(of) = of.filter(|_| kind(&frame) == "chat:cancel") {
            let payload = serde_json::json!({
                "projectSlug": frame["payload"]["projectSlug"], "sessionId": of, "text": null,
            });
            out.push(crate::stage::chat_ws::frame("chat:set_queue", payload));
        }
        out.push(frame);
    }),
    fault!("queue-not-cleared", "what is cleared is said all the same", server: |_, frame, out| {
        if !(kind(&frame) == "chat:set_queue" && at::queued(&frame).is_none()) {
            out.push(frame);
        }
    }),
    fault!("flush-told-to-one", "only who says something hears of the text that is taken", client: |at, frame, out| {
        if at.says || kind(&frame) != "chat:queued_flushed" {
            out.push(frame);
        }
    }),
    fault!("stop-not-told", "only who says something hears that a turn is over", client: |at, frame, out| {
        let stops = kind(&frame) == "chat:active" && frame["payload"]["running"] == false;
        if at.says || !stops {
            out.push(frame);
        }
    }),
    fault!("subscriber-not-told", "a subscription is not answered with what runs", client: |at, frame, out| {
        let runs = kind(&frame) == "chat:active" && frame["payload"]["running"] == true;
        if !(runs && at.asked.as_ref().is_some_and(|asked| asked.session == session(&frame))) {
            out.push(frame);
        }
    }),
    fault!("cancel-of-the-past", "a job that is over, called off, stops the one that runs", server: |at, mut frame, out| {
        let job = frame["payload"]["jobId"].as_str().unwrap_or_default().to_owned();
        if kind(&frame) == "chat:cancel"
            && !at.jobs.contains_key(&job)
            && let Some(runs) = at.jobs.keys().next()
        {
            frame["payload"]["jobId"] = Value::from(runs.clone());
        }
        out.push(frame);
    }),
];
