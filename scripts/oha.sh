#!/usr/bin/env bash
# Builds oha, the load generator of `oxlite bench web`, below the directory given; nothing is done if
# it is there.
set -eu
root=${1:?usage: scripts/oha.sh DIRECTORY}

if [ -x "$root/bin/oha" ]; then
    "$root/bin/oha" --version
    exit 0
fi
if ! command -v cargo >/dev/null; then
    echo "missing: cargo, to build oha" >&2
    echo "  install it with: apt-get install rustup && rustup default stable   (or see https://rustup.rs)" >&2
    exit 1
fi
echo "Building oha, the load generator (some minutes)"
# Without what takes longest: it asks for a thousand pages a second at most, and is not what is measured.
CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
    cargo install oha --locked --quiet --root "$root"
