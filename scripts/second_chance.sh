#!/usr/bin/env bash
# Runs pytest, and the few tests that failed once more, alone and one after the other, as CPython's own runner
# does (`--rerun`). Who then passes failed only beside others: it is named, and the run counts as passed.
#
#   scripts/second_chance.sh .venv/bin/python -m pytest --numprocesses 4 tests
#
# There is no second chance after a crash (see tests/conftest.py), nor after more than FEW failures.
set -u
readonly FEW=5
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
"$@" -o cache_dir="$cache"
status=$?
[ "$status" -eq 1 ] || exit "$status"
failed=$(grep -o '^  "[^"]*' "$cache/v/cache/lastfailed" | cut -c4-)
count=$(printf '%s\n' "$failed" | wc -l)
if [ -z "$failed" ] || [ "$count" -gt "$FEW" ]; then
    exit "$status"
fi
echo "== Failed beside others, so once more alone: $count"
"$@" -o cache_dir="$cache" --last-failed --last-failed-no-failures none --numprocesses 0 --dist no || exit
echo "== PASSED ALONE, after failing beside others (each is a fault of the test or of what it tests):"
printf '%s\n' "$failed"
