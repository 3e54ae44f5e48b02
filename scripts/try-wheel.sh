#!/usr/bin/env bash
# try-wheel.sh [PYTHON]: build the packages from this tree, and use the wheel as someone who has nothing else: in an empty folder
# and a new virtual environment, without the tree. Runs the demo to its end, and the tests and queries that `sash init` writes.
set -euo pipefail

python=${1:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/sash-wheel-XXXXXX")
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
JAVA_HOME=${JAVA_HOME:-$("$root/scripts/setup-java.sh")}
export JAVA_HOME
export HOME=$work/home XDG_CACHE_HOME=$work/cache PIP_DISABLE_PIP_VERSION_CHECK=1
mkdir -p "$HOME"

step() { printf '\n== %s\n' "$1"; }

step "build: an archive of the sources, and the wheel from it"
"$root/scripts/setup-python.sh" "$python" "$work/builder"
"$work/builder/bin/python" -m pip install --quiet build
"$work/builder/bin/python" -m build --outdir "$work/dist" "$root" >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log"; exit 1; }
ls "$work/dist"

step "install"
"$root/scripts/setup-python.sh" "$python" "$work/venv"
"$work/venv/bin/python" -m pip install --quiet "$work"/dist/sash-*.whl
mkdir "$work/empty"
cd "$work/empty"
PATH=$work/venv/bin:$PATH
test "$(command -v sash)" = "$work/venv/bin/sash"
python -c 'import sash; print(sash.__file__)'

step "sash demo --plain"
sash demo --plain

step "sash init x"
sash init x
python -m pip install --quiet pytest
(cd x && python -m pytest -q -p no:cacheprovider && sash validate job.sql)

step "shell completion"
test -n "$(_SASH_COMPLETE=source_bash sash)"
words=$(COMP_WORDS="sash de" COMP_CWORD=1 _SASH_COMPLETE=complete_bash sash)
echo "sash de: $words"
grep -qx demo <<<"$words"

step "the wheel works by itself"
