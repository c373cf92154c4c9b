#!/usr/bin/env bash
# Sees to it that there is a Chromium for the test of the lab's HTML report: the system's, the one that
# playwright keeps in its cache, or one of those two fetched now. Without one the test is skipped and
# says so; that is no reason to stop the set-up. Usage: browser.sh DIRECTORY_OF_PYTHON
set -u
BIN=$1

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
"$BIN/playwright" install --only-shell chromium >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1 && exit 0
fi
echo "No Chromium could be installed: the test that opens the report in a browser will be skipped"
