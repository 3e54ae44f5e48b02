#!/usr/bin/env bash
# setup-kafka.sh FOLDER: fetch Spark's Kafka connector into FOLDER/connector and a Kafka broker into FOLDER/broker, both
# with Maven. Spark's connector of the installed version is taken, or the newest of an earlier one that can be had.
set -euo pipefail

folder=${1:?the folder to put them into}
python=$(dirname "$0")/../.venv/bin/python
[ -x "$python" ] || python=python3
spark=$("$python" -c 'import pyspark; print(pyspark.__version__)')
scala=2.13
broker=4.1.0
copy=org.apache.maven.plugins:maven-dependency-plugin:3.6.1

say() { printf 'sash: %s\n' "$@" >&2; }

command -v mvn >/dev/null || { say "Kafka's jars are fetched with Maven, and there is no mvn"; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/connector"

# fetch ARTIFACT: copy one jar, without what it depends on
fetch() {
    (cd "$work" && mvn -q -B "$copy:copy" -Dartifact="$1" -DoutputDirectory="$work/connector") >"$work/log" 2>&1 </dev/null
}

# fetch_newest GROUP:ARTIFACT VERSION...: the first version that can be had
fetch_newest() {
    local artifact=$1 version
    shift
    for version in "$@"; do
        if fetch "$artifact:$version"; then
            [ "$version" = "$spark" ] || say "there is no $artifact:$spark to be had; taking $version"
            return 0
        fi
    done
    say "Maven cannot fetch $artifact:" "$(grep -m 1 ERROR "$work/log" || tail -n 1 "$work/log")"
    exit 1
}

versions=("$spark" 4.2.0 4.1.1 4.1.0 4.0.1 4.0.0)
fetch_newest "org.apache.spark:spark-sql-kafka-0-10_$scala" "${versions[@]}"
fetch_newest "org.apache.spark:spark-token-provider-kafka-0-10_$scala" "${versions[@]}"
fetch org.apache.kafka:kafka-clients:3.9.1 || fetch org.apache.kafka:kafka-clients:3.9.0
fetch org.apache.commons:commons-pool2:2.12.1 || fetch org.apache.commons:commons-pool2:2.12.0

cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sash</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_$scala</artifactId><version>$broker</version></dependency>
  </dependencies>
</project>
POM
(cd "$work" && mvn -q -B "$copy:copy-dependencies" -DoutputDirectory="$work/broker" -DincludeScope=runtime) >"$work/log" 2>&1 </dev/null || {
    say "Maven cannot fetch the Kafka broker: $(grep -m 1 ERROR "$work/log" || tail -n 1 "$work/log")"
    exit 1
}
rm -rf "$folder"
mkdir -p "$(dirname "$folder")" "$folder"
mv "$work/connector" "$work/broker" "$folder"
