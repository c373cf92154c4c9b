#!/usr/bin/env bash
# Sees to it that there is a Chromium for the tests that open the lab's HTML report: the system's, the one
# that playwright keeps in its cache, or one of those two fetched now, which is said before. Without one
# those tests are skipped and say so; that is no reason to stop. Usage: browser.sh DIRECTORY_OF_PYTHON
set -u
BIN=$1

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
own=$("$BIN/playwright" install --dry-run --only-shell chromium 2>/dev/null |
  sed -n '/Install location/{s/.*: *//p;q}')
[ -n "$own" ] && [ -e "$own/INSTALLATION_COMPLETE" ] && exit 0
echo "No Chromium here. Fetching one (some 110 MB) into ${own:-the cache of playwright}"
"$BIN/playwright" install --only-shell chromium >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "That has failed. Installing the package 'chromium' on this system by apt-get"
  apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1 && exit 0
fi
echo "No Chromium could be installed: the tests that open the report in a browser will be skipped"
