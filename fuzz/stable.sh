#!/bin/sh
# Builds and runs the fuzz targets with the stable compiler: libFuzzer with coverage, and without a sanitizer.
#
#   fuzz/stable.sh build
#   fuzz/stable.sh run TARGET SECONDS [SEEDS...]
#   fuzz/stable.sh run TARGET FILE
set -eu
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
case "${1:-}" in
build)
    # The flags with which cargo-fuzz counts coverage; `-C` flags are stable.
    RUSTFLAGS="-Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares \
-Ccodegen-units=1"
    export RUSTFLAGS
    # Build scripts and macros are not counted, which needs a target that is named.
    CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=false CARGO_INCREMENTAL=0 \
        cargo build --manifest-path fuzz/Cargo.toml --target "$host" --bins
    ;;
run)
    program=${CARGO_TARGET_DIR:-fuzz/target}/$host/debug/$2
    if [ -f "$3" ]; then
        exec "$program" "$3"
    fi
    mkdir -p "fuzz/corpus/$2"
    target=$2 seconds=$3
    shift 3
    exec "$program" -max_total_time="$seconds" -artifact_prefix=fuzz/ "fuzz/corpus/$target" "$@"
    ;;
*)
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
