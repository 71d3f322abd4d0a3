//! Subscription cursors: what is read is written the same.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(broken) = turnwire::fuzzing::cursor(bytes) {
        panic!("{broken}");
    }
});
