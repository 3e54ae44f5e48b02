#!/usr/bin/env bash
# Make a virtual environment: setup-python.sh PYTHON DIRECTORY. Installs Debian's venv package where it is missing
# and we may; says what to do where we may not.
set -euo pipefail

python=$1
venv=$2

fail() {
    printf 'sash: %s\n' "$@" >&2
    exit 1
}

command -v "$python" >/dev/null || fail "there is no $python: install Python 3.11 or newer, or say which: make PYTHON=/path/to/python3.11"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old, 3.11 or newer is needed: make PYTHON=/path/to/python3.11"

[ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && exit 0

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "sash: installing python$version-venv" >&2
        export DEBIAN_FRONTEND=noninteractive
        { apt-get update -qq && apt-get install -y -qq "python$version-venv"; } </dev/null >/dev/null ||
            fail "could not install python$version-venv; install it by hand and try again"
    else
        fail "Python's venv module is missing: sudo apt-get install python$version-venv"
    fi
fi
"$python" -m venv --clear "$venv"
