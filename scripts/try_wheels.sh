#!/bin/sh
# Installs wheels where nothing else is and runs the smoke suite on them, for each interpreter given.
#
#   scripts/try_wheels.sh DIRECTORY PYTHON ...
#
# pip takes the wheel of the directory that fits the interpreter and its system; that there is none is a failure.
# Nothing is fetched. It is plain sh: the images of musl have no bash.
set -eu
wheels=$(cd "${1:?usage: scripts/try_wheels.sh DIRECTORY PYTHON ...}" && pwd)
smoke=$(cd "$(dirname "$0")/.." && pwd)/tests/wheels/smoke.py
shift
[ $# -gt 0 ] || {
    echo "no interpreter was given" >&2
    exit 2
}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
for python in "$@"; do
    "$python" --version
    rm -rf "$place/environment" "$place/empty"
    "$python" -m venv "$place/environment"
    "$place/environment/bin/python" -m pip --disable-pip-version-check install --quiet --no-cache-dir \
        --no-index --only-binary :all: --find-links "$wheels" oxlite
    mkdir "$place/empty"
    (cd "$place/empty" && "$place/environment/bin/python" -I "$smoke")
done
