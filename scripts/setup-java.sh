#!/usr/bin/env bash
# Find Java 17 or newer and print its home; install it where we may, say exactly how where we may not.
set -euo pipefail

needed=17

say() { printf 'sash: %s\n' "$@" >&2; }

# major JAVA: the major version of a java command, 0 if it does not run
major() {
    "$1" -version 2>&1 </dev/null | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1 | grep . || echo 0
}

# try JAVA: print the home of a java command that is new enough, and be done
try() {
    local java=$1 home
    [ -x "$java" ] && [ "$(major "$java")" -ge "$needed" ] || return 0
    home=$("$java" -XshowSettings:properties -version 2>&1 </dev/null | sed -n 's/^ *java\.home = //p')
    echo "$home"
    exit 0
}

look() {
    [ -n "${JAVA_HOME:-}" ] && try "$JAVA_HOME/bin/java"
    try "$(command -v java || true)"
    local home
    for home in /usr/lib/jvm/* /opt/homebrew/opt/openjdk* /usr/local/opt/openjdk*; do
        try "$home/bin/java"
    done
    if [ -x /usr/libexec/java_home ] && home=$(/usr/libexec/java_home -v "$needed+" 2>/dev/null); then
        try "$home/bin/java"
    fi
    return 0
}

install_with_apt() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || return 1
    local package
    for package in openjdk-21-jre-headless openjdk-17-jre-headless default-jre-headless; do
        apt-get install -y -qq --no-install-recommends "$package" && return 0
    done
    return 1
}

install_with_dnf() {
    local package
    for package in java-21-openjdk-headless java-17-openjdk-headless java-latest-openjdk-headless; do
        dnf install -y -q "$package" && return 0
    done
    return 1
}

look
say "Spark needs Java $needed or newer, and none was found"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing it with apt-get"
    install_with_apt </dev/null >&2 || true
elif [ "$(id -u)" = 0 ] && command -v dnf >/dev/null; then
    say "installing it with dnf"
    install_with_dnf </dev/null >&2 || true
elif command -v brew >/dev/null; then
    say "installing it with brew"
    brew install --quiet openjdk@21 </dev/null >&2 || true
fi
look
say "Install it and run the command again:"
if command -v apt-get >/dev/null; then
    say "  sudo apt-get update && sudo apt-get install openjdk-17-jre-headless    (or openjdk-21-jre-headless)"
elif command -v dnf >/dev/null; then
    say "  sudo dnf install java-21-openjdk-headless"
elif command -v brew >/dev/null; then
    say "  brew install openjdk@21"
else
    say "  https://adoptium.net has packages for every system; set JAVA_HOME to where it is unpacked"
fi
exit 1
