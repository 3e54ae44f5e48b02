#!/usr/bin/env bash
# setup-catalog.sh FOLDER: fetch the jar of Spark's own tests into FOLDER, with Maven. It has a catalog of tables in memory
# that MERGE INTO supports. The jar of the installed version is taken, or the newest of an earlier one that can be had.
set -euo pipefail

folder=${1:?the folder to put it into}
python=$(dirname "$0")/../.venv/bin/python
[ -x "$python" ] || python=python3
spark=$("$python" -c 'import pyspark; print(pyspark.__version__)')
copy=org.apache.maven.plugins:maven-dependency-plugin:3.6.1

command -v mvn >/dev/null || { echo "sash: the jar of Spark's tests is fetched with Maven, and there is no mvn" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for version in "$spark" 4.2.0; do
    jar=org.apache.spark:spark-catalyst_2.13:$version:jar:tests
    if (cd "$work" && mvn -q -B "$copy:copy" -Dartifact="$jar" -DoutputDirectory="$work/jars") >"$work/log" 2>&1 </dev/null; then
        rm -rf "$folder"
        mkdir -p "$(dirname "$folder")"
        mv "$work/jars" "$folder"
        exit 0
    fi
done
echo "sash: Maven cannot fetch the jar of Spark's tests: $(grep -m 1 ERROR "$work/log" || tail -n 1 "$work/log")" >&2
exit 1
