#!/usr/bin/env bash
# Runs a command with its output in a file, and shows the file only if the command fails.
#
#   scripts/quietly.sh LOG COMMAND [ARGUMENT ...]
set -u
log=$1
shift
mkdir -p "$(dirname "$log")"
"$@" >"$log" 2>&1 || {
    status=$?
    cat "$log" >&2
    exit "$status"
}
