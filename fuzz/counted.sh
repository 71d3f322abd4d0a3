#!/bin/sh
# In place of rustc, for cargo's RUSTC_WRAPPER: counts coverage in the crates whose parsers are fuzzed, with the flags of
# cargo-fuzz, and compiles all others as they are, which takes less than half the time.
rustc=$1
shift
case " $* " in
*" --crate-name turnwire "* | *" --crate-name turnwire_spec "*)
    exec "$rustc" "$@" -Cpasses=sancov-module \
        -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares \
        -Ccodegen-units=1
    ;;
*) exec "$rustc" "$@" ;;
esac
