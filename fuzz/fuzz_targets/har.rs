//! HAR files: imported or refused with a place, and what is imported can be written.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(broken) = turnwire::fuzzing::har(bytes) {
        panic!("{broken}");
    }
});
