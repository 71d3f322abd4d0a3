//! The text form of transcripts: what is written reads back as the same transcript, and is no different from itself.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(broken) = turnwire::fuzzing::transcript(bytes) {
        panic!("{broken}");
    }
});
