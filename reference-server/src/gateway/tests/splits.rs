//! Where the bytes of an answer are cut changes nothing: every single cut, and random ones.

use super::*;
use crate::gateway::continuation::Origin;
use crate::gateway::read::{Body, Progress};
use crate::gateway::refusal::Fault;
use crate::gateway::wires;
use ::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use proptest::prelude::*;

/// Reads an answer that comes in these pieces.
fn read(wire: Wire, pieces: &[&[u8]]) -> (String, String, Result<ModelReply, Fault>) {
    let mut headers = HeaderMap::new();
    headers.insert(
        "content-type",
        HeaderValue::from_static("text/event-stream"),
    );
    let origin = Origin::new(wire, "m", "http://127.0.0.1:1");
    let mut reader = wires::reader(&origin, &ModelRequest::default());
    let mut body = Body::new(&headers);
    let mut out = Vec::new();
    let mut over = Ok(Progress::More);
    for piece in pieces {
        if over == Ok(Progress::More) {
            over = body.feed(&Bytes::copy_from_slice(piece), reader.as_mut(), &mut out);
        }
    }
    let result = match over {
        Err(fault) => Err(fault),
        Ok(Progress::Over) => reader.finish(&mut out),
        Ok(Progress::More) => body
            .end(reader.as_mut(), &mut out)
            .and_then(|()| reader.finish(&mut out)),
    };
    let (mut text, mut thinking) = (String::new(), String::new());
    for event in out {
        match event {
            ModelEvent::Text(piece) => text.push_str(&piece),
            ModelEvent::Reasoning(piece) => thinking.push_str(&piece),
            _ => {}
        }
    }
    (text, thinking, result)
}

const CHAT: &str = "\u{feff}: OPENROUTER PROCESSING\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"<thi\"}}]}\n\ndata:{\"choices\":[{\"delta\":{\"content\":\"nk>pl\u{e9}\u{4f60}\"}}]}\r\n\r\nevent: message\rdata: {\"choices\":[{\"delta\":\rdata: {\"content\":\"an</think>R\u{1f469}\u{200d}\u{1f680}\u{2028}ain\"}}]}\r\rdata:\n\nid: 7\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"look\",\"arguments\":\"{\\\"a\\\":\\\"\u{4f60}\"}}]}}]}\n\r\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"}\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":\"4\"}}\n\ndata:  [DONE] \n\n";

const RESPONSES: &str = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"status\":\"in_progress\",\"output\":[]}}\n\ndata: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"message\",\"id\":\"msg_1\",\"content\":[]}}\n\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"content_index\":0,\"delta\":\"R\u{e9}\"}\n\ndata: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"summary_index\":0,\"delta\":\"pl\"}\n\ndata: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"summary_index\":1,\"delta\":\"an\"}\n\ndata: {\"type\":\"response.sparkle.delta\",\"delta\":\"x\"}\n\ndata: {\"type\":\"response.output_text.done\",\"output_index\":1,\"content_index\":0,\"text\":\"R\u{e9}\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}}\n\n";

const ANTHROPIC: &str = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":2,\"output_tokens\":1}}}\r\n\r\nevent: ping\r\ndata: {\"type\":\"ping\"}\r\n\r\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\r\n\r\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"pl\u{e9}\"}}\r\n\r\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"S\"}}\r\n\r\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"R\"}}\r\n\r\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\ud83d\\ude80\"}}\r\n\r\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":15}}\r\n\r\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null}}\r\n\r\nevent: message_stop\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n";

const GEMINI: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"pl\u{4f60}\",\"thought\":true}]}}]}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"R\u{e9}\"},{\"functionCall\":{\"name\":\"look\"},\"thoughtSignature\":\"S\"}]}}]}\r\n\r\ndata: {\"candidates\":[{\"finish_reason\":\"STOP\"}],\"usage_metadata\":{\"prompt_token_count\":3,\"candidatesTokenCount\":5,\"thoughtsTokenCount\":20}}";

fn samples() -> [(Wire, &'static str); 5] {
    [
        (Wire::OpenaiChat, CHAT),
        (Wire::GeminiOpenai, CHAT),
        (Wire::OpenaiResponses, RESPONSES),
        (Wire::AnthropicMessages, ANTHROPIC),
        (Wire::Gemini, GEMINI),
    ]
}

#[test]
fn the_samples_say_what_they_say() {
    let texts = samples().map(|(wire, sample)| {
        let (text, thinking, reply) = read(wire, &[sample.as_bytes()]);
        let reply = reply.unwrap();
        assert_eq!(
            (&reply.text, &reply.reasoning),
            (&text, &thinking),
            "{wire}"
        );
        let usage = (reply.usage.input_tokens, reply.usage.output_tokens);
        (text, thinking, reply.tool_calls.len(), usage)
    });
    let said = |text: &str, thinking: &str, calls, input, output| {
        (
            text.to_owned(),
            thinking.to_owned(),
            calls,
            (Some(input), Some(output)),
        )
    };
    let chat = || {
        said(
            "R\u{1f469}\u{200d}\u{1f680}\u{2028}ain",
            "pl\u{e9}\u{4f60}an",
            1,
            3,
            4,
        )
    };
    assert_eq!(
        texts,
        [
            chat(),
            chat(),
            said("R\u{e9}", "pl\n\nan", 0, 3, 4),
            said("R\u{1f680}", "pl\u{e9}", 0, 5, 15),
            said("R\u{e9}", "pl\u{4f60}", 1, 3, 25),
        ]
    );
}

#[test]
fn every_single_cut_of_an_answer_gives_the_same() {
    for (wire, sample) in samples() {
        let bytes = sample.as_bytes();
        let whole = read(wire, &[bytes]);
        for cut in 0..=bytes.len() {
            let (one, two) = bytes.split_at(cut);
            assert_eq!(read(wire, &[one, two]), whole, "{wire}, cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(wire, &single), whole, "{wire}, byte by byte");
    }
}

#[test]
fn every_early_end_of_an_answer_is_cut_or_whole() {
    for (wire, sample) in samples() {
        let bytes = sample.as_bytes();
        let whole = read(wire, &[bytes]).2.unwrap();
        for end in 0..bytes.len() {
            match read(wire, &[&bytes[..end]]).2 {
                Ok(reply) => assert_eq!(
                    (reply.text, reply.tool_calls, reply.finish),
                    (
                        whole.text.clone(),
                        whole.tool_calls.clone(),
                        whole.finish.clone()
                    ),
                    "{wire}, ended at {end}"
                ),
                Err(fault) => {
                    assert_eq!(fault.kind, ErrorKind::Interrupted, "{wire}, ended at {end}")
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_cuts_of_an_answer_give_the_same(place in 0_usize..5, cuts in prop::collection::vec(0_usize..3_000, 0..20)) {
        let (wire, sample) = samples()[place];
        let bytes = sample.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(wire, &pieces), read(wire, &[bytes]));
    }

    #[test]
    fn no_bytes_whatever_crash_a_reader(place in 0_usize..5, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let wire = Wire::ALL[place];
        let _ = read(wire, &[&bytes]);
        let mut event = b"data: ".to_vec();
        event.extend(bytes);
        event.extend(b"\n\n");
        let _ = read(wire, &[&event]);
    }
}
