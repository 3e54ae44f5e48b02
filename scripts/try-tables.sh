#!/usr/bin/env bash
# try-tables.sh [iceberg] [delta]: run the tests of INTO TABLE with tables of Iceberg and Delta, on the newest version of Spark that
# their jars are made for. It is installed into an environment of its own, and all else is that of .venv; jars come by Maven.
set -euo pipefail

spark=4.1.4
copy=org.apache.maven.plugins:maven-dependency-plugin:3.6.1

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/sash-tables-XXXXXX")
trap 'rm -rf "$work"' EXIT
export JAVA_HOME=${JAVA_HOME:-$("$root/scripts/setup-java.sh")} TMPDIR=$work PYTHONPATH=$root/src
[ $# -gt 0 ] || set -- iceberg delta

packages() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

"$root/.venv/bin/python" -m venv "$work/venv"
python=$work/venv/bin/python
"$python" -m pip install --disable-pip-version-check --quiet "pyspark==$spark" 2>"$work/log" || { cat "$work/log"; exit 1; }
packages "$root/.venv/bin/python" >"$(packages "$python")/dependencies.pth"

# fetch KIND GROUP ARTIFACT VERSION GROUPS: copy the jars of these groups that an artifact needs; Spark brings the others
fetch() {
    mkdir "$work/$1"
    cat >"$work/$1/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sash</groupId><artifactId>$1</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>$2</groupId><artifactId>$3</artifactId><version>$4</version></dependency>
  </dependencies>
</project>
POM
    mvn -q -B -f "$work/$1/pom.xml" "$copy:copy-dependencies" -DoutputDirectory="$work/venv/catalog-$1" -DincludeScope=runtime \
        -DincludeGroupIds="$5" </dev/null
}

for kind in "$@"; do
    case $kind in
        iceberg) fetch iceberg org.apache.iceberg iceberg-spark-runtime-4.1_2.13 1.12.0 org.apache.iceberg ;;
        delta) fetch delta io.delta delta-spark_4.1_2.13 4.3.0 io.delta,io.unitycatalog,org.roaringbitmap,org.locationtech.jts ;;
        *) echo "usage: try-tables.sh [iceberg] [delta]" >&2; exit 2 ;;
    esac
    printf '\n== %s, on Spark %s\n' "$kind" "$spark"
    (cd "$root" && SASH_CATALOG=$kind "$python" -m pytest -q -p no:cacheprovider tests/spark/sinks/test_catalog.py)
done
