#!/usr/bin/env bash
# Names what is missing on this machine, with the command that installs it.
set -u
python=${PYTHON:-python3}
missing=0

need() { # need WHAT HOW
    echo "missing: $1" >&2
    echo "  install it with: $2" >&2
    missing=1
}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    need "Python 3.11 or newer as '$python'" "apt-get install python3 python3-venv   (or: make PYTHON=/path/to/python)"
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    need "Python's venv module" "apt-get install python3-venv"
fi

if ! command -v cargo >/dev/null; then
    need "a Rust toolchain" "apt-get install rustup && rustup default stable   (or see https://rustup.rs)"
else
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(rustc --version | cut -d' ' -f2)
    if [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
        need "Rust $wanted or newer (found $found)" "rustup update stable"
    fi
fi

if ! command -v cc >/dev/null; then
    need "a C compiler (cc), to compile SQLite" "apt-get install gcc"
fi

exit $missing
