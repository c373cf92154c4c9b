#!/usr/bin/env bash
# Builds the extension module with another set of compile-time options of the same SQLite.
#
#   scripts/builds.sh stock seed
#
# The options are in crates/oxlite-python/builds/NAME.toml, a Cargo configuration laid over the
# project's own. The result goes to python/oxlite/bench/builds/NAME/, which the wheel leaves out;
# the lab's workers load it in place of the module that is installed.
set -eu
cd "$(dirname "$0")/.."
python=.venv/bin/python
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
for name in "$@"; do
    echo "Building $name"
    PYO3_PYTHON=$PWD/$python cargo --config "crates/oxlite-python/builds/$name.toml" build \
        --release --quiet --package oxlite-python --target-dir "target/builds/$name"
    mkdir -p "python/oxlite/bench/builds/$name"
    cp "target/builds/$name/release/lib_native.so" "python/oxlite/bench/builds/$name/_native$suffix"
done
