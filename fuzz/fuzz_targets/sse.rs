//! The SSE codec: frames keep every byte, however the stream is cut, and the decoder agrees with them.

#![no_main]

use turnwire_spec::sse::{Limits, properties};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (cuts, stream) = bytes.split_at(bytes.len().min(4));
    let cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut)).collect();
    properties::frames_are_lossless(stream);
    properties::cuts_do_not_matter(stream, &cuts, Limits::NONE);
    properties::decoder_agrees_with_frames(stream, Limits::NONE);
});
