#!/usr/bin/env bash
# Builds cargo-deny, which holds deny.toml, below the directory given; nothing is done if it is there.
set -eu
root=${1:?usage: scripts/deny.sh DIRECTORY}

if [ -x "$root/bin/cargo-deny" ]; then
    "$root/bin/cargo-deny" --version
    exit 0
fi
echo "Building cargo-deny, which looks at what we link (some minutes, once)"
CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
    cargo install cargo-deny --version '^0.20' --locked --quiet --root "$root"
