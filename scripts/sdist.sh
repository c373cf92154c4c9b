#!/usr/bin/env bash
# Builds the source archive of the commit that is checked out.
#
#   scripts/sdist.sh DIRECTORY
#
# Only what is committed gets in: it is built from an export of the commit, and whatever else lies in the
# tree stays out. The times in it are the commit's. So the same commit gives the same bytes, wherever and
# whenever it is built, and anybody can compare what was published with what he builds himself.
set -eu
out=$(realpath -m "${1:?usage: scripts/sdist.sh DIRECTORY}")
cd "$(dirname "$0")/.."
maturin=$(realpath -s "${MATURIN:-.venv/bin/maturin}")

if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
    echo "note: what is changed and not committed is not in the archive" >&2
fi
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git archive --format=tar HEAD | tar -x -C "$tree"
umask 022
(cd "$tree" && "$maturin" sdist --out "$out")
