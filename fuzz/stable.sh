#!/bin/sh
# Builds and runs the fuzz targets with the stable compiler: libFuzzer with coverage, and without a sanitizer.
#
#   fuzz/stable.sh build
#   fuzz/stable.sh run TARGET SECONDS [SEEDS...]
#   fuzz/stable.sh run TARGET FILE
set -eu
cd "$(dirname "$0")/.."
usage() {
    sed -n '2,6s/^# \{0,1\}//p' fuzz/stable.sh >&2
    exit 2
}
case "${1:-}" in
build)
    # The versions of the project, as far as they are the same crates.
    [ -e fuzz/Cargo.lock ] || cp Cargo.lock fuzz/Cargo.lock
    RUSTC_WRAPPER="$PWD/fuzz/counted.sh" CARGO_INCREMENTAL=0 \
        cargo build --manifest-path fuzz/Cargo.toml --bins
    ;;
run)
    [ $# -ge 3 ] || usage
    program=${CARGO_TARGET_DIR:-fuzz/target}/debug/$2
    [ -x "$program" ] || {
        echo "$program is not there: fuzz/stable.sh build" >&2
        exit 2
    }
    if [ -f "$3" ]; then
        exec "$program" "$3"
    fi
    mkdir -p "fuzz/corpus/$2"
    target=$2 seconds=$3
    shift 3
    exec "$program" -max_total_time="$seconds" -artifact_prefix=fuzz/ "fuzz/corpus/$target" "$@"
    ;;
*) usage ;;
esac
