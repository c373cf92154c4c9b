#!/usr/bin/env bash
# Sees to it that there is an nginx for the pages that put one before an application. As root it is installed
# by apt-get, which is said before; a service of the system's is not begun. Without one those pages are not
# played, and the tests say so; that is no reason to stop.
set -u
PATH=$PATH:/usr/sbin:/sbin

command -v nginx >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "No nginx here. Installing the package 'nginx' on this system by apt-get"
  # Whoever begins services at an installation asks this program, which refuses.
  policy=/usr/sbin/policy-rc.d
  [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy && trap 'rm -f $policy' EXIT; }
  apt-get -qq install -y --no-install-recommends nginx >/dev/null 2>&1 && exit 0
fi
echo "No nginx could be installed: the pages that put one before an application will not be played"
