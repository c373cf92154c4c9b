#!/usr/bin/env bash
# Runs the tests of the driver and of the Django backend on every supported Python on this machine other
# than that of .venv, the latter with the newest Django for it, and then CPython's own tests of sqlite3 on
# Oxlite, on all of them.
#
#   scripts/test_interpreters.sh [driver] [django] [cpython]      only these; without a word, all
#
# Interpreters are taken from PATH and from pyenv's folder; a shim that does not run is passed over.
# Which ones were found, and which were not, is printed.
set -eu
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
cd "$(dirname "$0")/.."
wanted=${*:-driver django cpython}
interpreters=.venv/bin/python
done_already=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
tested=$done_already
missing=
for version in 3.11 3.12 3.13; do
    [ "$version" = "$done_already" ] && continue
    interpreter=
    for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
        if "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
            interpreter=$candidate
            break
        fi
    done
    if [ -z "$interpreter" ]; then
        missing="$missing $version"
        continue
    fi
    echo "== Python $version ($interpreter)"
    venv=.venvs/$version
    if [ ! "$venv/.ready" -nt pyproject.toml ] || [ ! "$venv/.ready" -nt scripts/test_interpreters.sh ]; then
        "$interpreter" -m venv "$venv"
        "$venv/bin/python" -m pip install --upgrade pip
        # With what `oxlite bench` needs there: the command line's packages and the lab's peers.
        "$venv/bin/python" -m pip install 'maturin>=1.16,<2' pytest pytest-timeout pytest-xdist --group peers \
            dj-database-url gunicorn numpy pandas tblib uvicorn
        touch "$venv/.ready"
    fi
    VIRTUAL_ENV=$PWD/$venv PYO3_PYTHON=$PWD/$venv/bin/python \
        scripts/quietly.sh "target/build-$version.log" "$venv/bin/maturin" develop --release --extras cli
    pytest="scripts/second_chance.sh $venv/bin/python -m pytest --quiet --numprocesses logical --maxprocesses 8 --dist loadfile"
    case $wanted in
        *driver*) $pytest tests/sqlite3 tests/test_connect.py ;;
    esac
    case $wanted in
        *django*) $pytest tests/django tests/upstream/django ;;
    esac
    case $wanted in
        *cpython*) $pytest tests/upstream/cpython ;;
    esac
    interpreters="$interpreters $venv/bin/python"
    tested="$tested $version"
done
case $wanted in
    *cpython*)
        echo "== CPython's own tests"
        # shellcheck disable=SC2086 # none of these relative paths holds a space
        .venv/bin/python tests/upstream/cpython/run.py $interpreters
        ;;
esac
echo "Tested on Python: $tested ($wanted)"
if [ -n "$missing" ]; then
    echo "Not on this machine, so not tested:$missing"
fi
