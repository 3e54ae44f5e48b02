#!/usr/bin/env bash
# Find Chromium or Chrome and print its path; install it where we are root, with apt-get or dnf. Tests of the web console need it.
set -euo pipefail

say() { printf 'sash: %s\n' "$@" >&2; }

look() {
    local name path
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        # Ubuntu's package without snapd is a script that fails: only a browser that starts is found.
        if path=$(command -v "$name") && "$path" --version >/dev/null 2>&1 </dev/null; then
            echo "$path"
            exit 0
        fi
    done
    return 0
}

look
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing Chromium with apt-get"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && timeout 600 apt-get install -y -qq --no-install-recommends chromium; } </dev/null >&2 || true
elif [ "$(id -u)" = 0 ] && command -v dnf >/dev/null; then
    say "installing Chromium with dnf"
    timeout 600 dnf install -y -q chromium </dev/null >&2 || true
fi
look
say "there is no Chromium"
exit 1
