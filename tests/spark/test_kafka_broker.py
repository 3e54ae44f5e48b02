"""Topics of a real Kafka broker as sources and sinks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.engine import Engine
from sash.errors import JobChangedError, SashError
from sash.script.reader import read_script
from sash.script.session import Session
from tests.avro.written import encoded, framed, record
from tests.kafka import Broker, broker
from tests.registry import SchemaRegistry, schema_registry
from tests.spark.files import SQL, Rows, batches_of, expected, made_up_rows

pytestmark = pytest.mark.spark

LONGER = SQL.replace("60 MILLISECONDS", "90 MILLISECONDS")


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with broker() as running:
        yield running


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as running:
        yield running


def declared(kafka: Broker, topic: str, columns: str = "ts BIGINT, k STRING, v BIGINT", options: str = "") -> str:
    return (
        f"CREATE STREAM s ({columns}) USING kafka OPTIONS (kafka.bootstrap.servers '{kafka.servers}', "
        f"subscribe '{topic}', startingOffsets 'earliest', format 'json'{options})"
    )


def session_of(spark: SparkSession, checkpoint: Path, *statements: str) -> Session:
    session = Session.on(Engine(spark, str(checkpoint), shards=2))
    for text in statements:
        for statement in read_script(text):
            session.execute(statement)
    return session


def run(session: Session) -> None:
    """Let the jobs process all that there is, and stop them."""
    session.launch()
    for job in session.backend.jobs().values():
        try:
            job.process_all()
        finally:
            job.finish()


def put(kafka: Broker, topic: str, rows: Rows) -> None:
    kafka.produce(topic, [{"value": json.dumps(row)} for row in rows])


def query(kafka: Broker, topic: str, sql: str = SQL, clauses: str = "", name: str = "q") -> str:
    into = f"INTO kafka (kafka.bootstrap.servers '{kafka.servers}', topic '{topic}') {clauses}"
    return f"CREATE QUERY {name} AS {sql} {into}"


def header(record: Any, name: str) -> str:
    return str(dict(record.headers())[name].decode())


def identity(record: Any) -> tuple[str, ...]:
    return tuple(header(record, name) for name in ("sash-query", "sash-batch", "sash-sequence"))


def changes(records: list[Any]) -> Counter[tuple[Any, ...]]:
    """The changes in a topic, each once."""
    once = {identity(record): json.loads(record.value()) for record in records}
    return Counter((row.pop("_op"), row.pop("_ts"), *row.values()) for row in once.values())


def test_a_topic_is_read_and_every_change_is_written_to_another(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    rows = made_up_rows(3)
    kafka.create_topic("in", 1)
    kafka.create_topic("out", 3)
    statements = declared(kafka, "in", options=", maxOffsetsPerTrigger 40"), query(kafka, "out", clauses="MODE changes")
    for batch in batches_of(rows):
        put(kafka, "in", batch)
        run(session_of(spark, tmp_path / "state", *statements))
    records = kafka.records("out")
    assert changes(records) == expected(SQL, rows)
    assert len(records) == expected(SQL, rows).total(), "nothing was repeated"
    last: dict[tuple[int, bytes], int] = {}
    for one in records:
        key, ts = (one.partition(), one.key()), json.loads(one.value())["_ts"]
        assert last.get(key, 0) <= ts, "the changes of a key are in the order of time"
        last[key] = ts


def test_a_backlog_is_read_in_bounded_batches_and_told(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """A source that is faster than the job: batches stay as large as allowed, and nothing is lost."""
    rows, largest = made_up_rows(5), 50
    kafka.create_topic("in-backlog", 1)
    kafka.create_topic("out-backlog", 1)
    put(kafka, "in-backlog", rows)
    stream = f"{declared(kafka, 'in-backlog')} MAX ROWS PER BATCH {largest}"
    session = session_of(spark, tmp_path / "state", stream, query(kafka, "out-backlog", clauses="MODE changes"))
    run(session)
    (job,) = session.backend.jobs().values()
    told = [batch for batch in job.queries["q"].drain_progress() if batch["rows_in"]]
    assert [batch["rows_in"] for batch in told] == [largest] * 4
    assert [batch["backlog_rows"] for batch in told] == [150, 100, 50, 0]
    assert all(batch["lag_seconds"] > 10**9 / 2 for batch in told), "the rows are of the year 1970"
    assert changes(kafka.records("out-backlog")) == expected(SQL, rows)


def test_messages_of_a_repeated_batch_are_recognized(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    rows = made_up_rows(2)
    kafka.create_topic("in-twice", 1)
    kafka.create_topic("out-twice", 2)
    statements = declared(kafka, "in-twice"), query(kafka, "out-twice", clauses="MODE changes")
    put(kafka, "in-twice", rows)
    run(session_of(spark, tmp_path / "state", *statements))
    written = len(kafka.records("out-twice"))
    (commit,) = (path for path in (tmp_path / "state" / "job").rglob("commits/0") if not path.name.endswith(".crc"))
    for file in (commit, commit.with_name(".0.crc"), *(tmp_path / "state").rglob("ledger/*")):
        if file.is_file():
            file.unlink()
    run(session_of(spark, tmp_path / "state", *statements))
    records = kafka.records("out-twice")
    assert len(records) > written, "the batch was written again"
    assert changes(records) == expected(SQL, rows)


def test_a_topic_has_every_change_although_the_job_is_killed(kafka: Broker, tmp_path: Path) -> None:
    """The process dies with half of a batch in the topic; that all of one is repeated is another test."""
    rows = made_up_rows(3)
    kafka.create_topic("in-killed", 2)
    kafka.create_topic("out-killed", 3)
    kafka.produce("in-killed", [{"value": json.dumps(row), "partition": n % 2} for n, row in enumerate(rows)])
    stream = declared(kafka, "in-killed", options=", maxOffsetsPerTrigger 40")
    (tmp_path / "job.sql").write_text(f"{stream}; {query(kafka, 'out-killed', clauses='MODE changes')};")
    codes = [
        subprocess.run(
            [sys.executable, "-m", "tests.spark.kafka_driver", str(tmp_path), *deadly], capture_output=True, check=False
        ).returncode
        for deadly in (("1", "half"), ())
    ]
    assert codes == [-signal.SIGKILL, 0]
    records, last = kafka.records("out-killed"), rows[-2]["ts"]
    assert changes(records) == Counter({c: n for c, n in expected(SQL, rows).items() if c[1] < last})
    assert len(records) > len(set(map(identity, records))), "batches were repeated"


def test_an_upsert_topic_has_the_answer(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    rows = made_up_rows(4)
    kafka.create_topic("in-upsert", 1)
    kafka.create_topic("out-upsert", 2, cleanup_policy="compact")
    statements = (
        declared(kafka, "in-upsert", options=", maxOffsetsPerTrigger 30"),
        query(kafka, "out-upsert", clauses="MODE upsert KEY (k)"),
    )
    put(kafka, "in-upsert", rows)
    run(session_of(spark, tmp_path / "state", *statements))
    answer = {record.key(): record.value() for record in kafka.records("out-upsert")}
    folded: Counter[tuple[Any, ...]] = Counter()
    for (op, _, *row), count in expected(SQL, rows).items():
        folded[tuple(row)] += count if op == "+" else -count
    found = {tuple(json.loads(value).values()) for value in answer.values() if value is not None}
    assert found == set(+folded)


def test_columns_are_taken_from_the_record(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    kafka.create_topic("records", 2)
    kafka.produce("records", [{"partition": 0, "timestamp": 500, "value": "{}"}])  # before the first to be read
    given = [("a", 0, 1_000, {"from": b"x"}), ("b", 1, 1_500, {"from": b"y", "n": b"1"}), ("a", 0, 2_000, {})]
    kafka.produce(
        "records",
        [
            {"key": key, "partition": at, "timestamp": ts, "headers": headers, "value": json.dumps({"v": ts})}
            for key, at, ts, headers in given
        ],
    )
    columns = (
        "_timestamp TIMESTAMP, v BIGINT, _key STRING, _partition INT, _offset BIGINT, _headers MAP<STRING, STRING>"
    )
    since = declared(kafka, "records", columns).replace("'earliest'", "'1970-01-01 00:00:01'")
    session = session_of(
        spark,
        tmp_path / "state",
        f"{since} TIME _timestamp",
        query(
            kafka,
            "out-records",
            "SELECT _key, _partition, _offset, _headers['from'] AS origin, v FROM s [RANGE 1 HOUR]",
            "MODE changes",
        ),
    )
    kafka.create_topic("out-records", 1)
    run(session)
    found = [tuple(json.loads(record.value()).values())[2:] for record in kafka.records("out-records")]
    assert sorted(found) == [("a", 0, 1, "x", 1_000)], "the other partition is at 1.5 seconds"


PURCHASE = record(("ts", "long"), ("k", "string"), ("v", "int"))
RENAMED = record(("note", ["null", "string"]), ("v", ["null", "long"]), ("k", ["null", "string"]), ("ts", "long"))


def test_values_in_avro_and_csv(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """By a registry whose schema changes, by a file, and text in columns; each row has what its record has beside the value."""
    rows = made_up_rows(2)
    for topic in ("in-avro", "in-file", "in-csv", "out-formats"):
        kafka.create_topic(topic, 1)
    (tmp_path / "purchase.avsc").write_text(json.dumps(PURCHASE))
    with schema_registry("me:secret") as registry:
        old, new = (registry.add("in-avro-value", schema) for schema in (PURCHASE, RENAMED))
        later = [{**row, "note": None} for row in rows[40:]]
        values = [*framed(old, PURCHASE, rows[:40]), b"{no Avro}", *framed(new, RENAMED, later)]
        kafka.produce("in-avro", [{"key": f"key{n}", "value": value} for n, value in enumerate(values)])
        kafka.produce("in-file", [{"value": value} for value in encoded(PURCHASE, rows)])
        csv = [{"value": f'{row["ts"]},"{row["k"]}",{row["v"]}', "headers": {"from": b"x"}} for row in rows]
        kafka.produce("in-csv", [{**one, "timestamp": n * 10 + 10} for n, one in enumerate(csv)])
        by_registry = f"format 'avro', registry '{registry.url}', registry.user 'me', registry.password 'secret'"

        def of(topic: str, columns: str, options: str) -> str:
            return declared(kafka, topic, columns).replace("format 'json'", options)

        with pytest.raises(
            SashError, match=r"subject in-avro-value of the registry has no field w; it has note, v, k, ts"
        ):
            session_of(spark, tmp_path / "state", of("in-avro", "ts BIGINT, w STRING", by_registry))
        columns = "ts BIGINT, k STRING, v BIGINT, _key STRING, note STRING"
        streams = (
            of("in-avro", columns, by_registry) + f" BAD ROWS INTO '{tmp_path}/bad'",
            of("in-file", "ts BIGINT, v BIGINT, k STRING", f"format 'avro', schema '{tmp_path}/purchase.avsc'"),
            of(
                "in-csv",
                "n BIGINT, k STRING, v BIGINT, _timestamp TIMESTAMP, _headers MAP<STRING, STRING>",
                "format 'csv'",
            ),
        )
        names = ("s", "from_file", "from_csv")
        made = [text.replace("STREAM s ", f"STREAM {name} ") for text, name in zip(streams, names, strict=True)]
        made[2] += " TIME _timestamp"
        with_key = SQL.replace("COUNT(*)", "COUNT(_key)")
        of_csv = "SELECT k, v, n, _headers['from'] AS origin FROM from_csv [RANGE 1 HOUR]"
        run(
            session_of(
                spark,
                tmp_path / "state",
                *made,
                query(kafka, "out-formats", with_key, "MODE changes", name="q"),
                query(kafka, "out-formats", SQL.replace("FROM s", "FROM from_file"), "MODE changes", name="of_file"),
                query(kafka, "out-formats", of_csv, "MODE changes", name="of_csv"),
            )
        )
    records = kafka.records("out-formats")
    of_query: dict[str, list[Any]] = {}
    for one in records:
        of_query.setdefault("csv" if b"origin" in one.value() else header(one, "sash-query"), []).append(one)
    texts = of_query.pop("csv")
    assert sorted(tuple(json.loads(one.value()).values())[2:] for one in texts) == sorted(
        (row["k"], row["v"], row["ts"], "x") for row in rows[:-1]
    )
    assert [changes(some) for some in of_query.values()] == [expected(SQL, rows)] * 2
    (bad,) = spark.read.parquet(f"{tmp_path}/bad").collect()
    assert (b64decode(bad.row), bad.origin) == (b"{no Avro}", "in-avro/0/40")


HOUR = 3_600_000_000
BY_VALUE = "SELECT v, COUNT(*) AS n FROM s [RANGE 60 MILLISECONDS] GROUP BY v"


def late(session: Session) -> int:
    (job,) = session.backend.jobs().values()
    return sum(int(batch["late"]) for batch in job.drain_progress())


def test_partitions_an_hour_apart_lose_no_row(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """A backlog in small batches, over a restart and a change of the job: its first batch has rows of one partition only."""
    for topic in ("in-apart", "out-apart", "out-apart-later"):
        kafka.create_topic(topic, 2 if topic.startswith("in") else 1)
    behind = made_up_rows(4)
    ahead = [{**row, "ts": row["ts"] + HOUR} for row in made_up_rows(6, seed=1)]
    end = [{"ts": 2 * HOUR, "k": "end", "v": 9}] * 2
    stream = declared(kafka, "in-apart", options=", maxOffsetsPerTrigger 60") + " IDLE AFTER '1 day'"
    totals = query(kafka, "out-apart", clauses="MODE changes")
    by_value = query(kafka, "out-apart-later", BY_VALUE, "MODE changes", name="by_value")
    dropped = 0
    for number, (slow, fast) in enumerate(
        ((behind[:80], ahead[:80]), ([], ahead[80:]), (behind[80:], []), (end[:1], end[:1]))
    ):
        kafka.produce(
            "in-apart",
            [{"value": json.dumps(row), "partition": at} for at, rows in ((0, fast), (1, slow)) for row in rows],
        )
        session = session_of(spark, tmp_path / "state", stream, totals, *([by_value] if number else []))
        session.backend.session_jobs.on_change = "apply"  # type: ignore[attr-defined]
        run(session)
        dropped += late(session)
    assert dropped == 0
    everything = sorted([*behind, *ahead, *end], key=lambda row: row["ts"])
    assert changes(kafka.records("out-apart")) == expected(SQL, everything)
    window, written = 60_000, changes(kafka.records("out-apart-later"))
    for begin, until in ((behind[79]["ts"] + window, HOUR), (ahead[79]["ts"] + window, 2 * HOUR)):
        whole = expected(BY_VALUE, everything)
        assert {c: n for c, n in written.items() if begin < c[1] < until} == {
            c: n for c, n in whole.items() if begin < c[1] < until
        }, "the new query lacks no row that came after its begin"


def test_a_topic_that_was_created_again_is_read_from_its_beginning(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    """Once while the job runs, with fewer records than were read; and once between two runs, with more."""
    rows = made_up_rows(6)
    for topic in ("in-again", "out-again"):
        kafka.create_topic(topic, 1)
    statements = declared(kafka, "in-again"), query(kafka, "out-again", clauses="MODE changes")
    put(kafka, "in-again", rows[:60])
    session = session_of(spark, tmp_path / "state", *statements)
    session.launch()
    (job,) = session.backend.jobs().values()
    job.process_all()
    kafka.recreate_topic("in-again")
    put(kafka, "in-again", rows[60:80])
    with pytest.raises(
        SashError, match=r"gone from Kafka \(Partition in-again-0 .*start the job with --on-change apply"
    ):
        job.process_all()
    job.finish()
    for more in (rows[80:90], rows[90:]):
        put(kafka, "in-again", more)
        with pytest.raises(JobChangedError, match="topic in-again of stream s is not the one that the job has read"):
            run(session_of(spark, tmp_path / "state", *statements))
        session = session_of(spark, tmp_path / "state", *statements)
        session.backend.session_jobs.on_change = "apply"  # type: ignore[attr-defined]
        run(session)
        assert late(session) == 0
        if more[-1] is not rows[-1]:
            kafka.recreate_topic("in-again")
    assert changes(kafka.records("out-again")) == expected(SQL, rows)


def test_an_idle_partition_is_not_waited_for(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    for topic in ("in-idle", "out-idle"):
        kafka.create_topic(topic, 2 if topic.startswith("in") else 1)
    rows = made_up_rows(2)
    statements = (
        declared(kafka, "in-idle") + " IDLE AFTER '0 seconds'",
        query(kafka, "out-idle", clauses="MODE changes"),
    )
    for batch, places in ((rows[:40], 2), (rows[40:], 1)):
        kafka.produce("in-idle", [{"value": json.dumps(row), "partition": n % places} for n, row in enumerate(batch)])
        session = session_of(spark, tmp_path / "state", *statements)
        run(session)
        assert late(session) == 0
    assert changes(kafka.records("out-idle")) == expected(SQL, rows)


def test_a_new_query_is_filled_from_the_topic(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """Its values are in Avro."""
    rows = made_up_rows(6)
    first, rest = rows[:160], rows[160:]
    for topic in ("in-fill", "out-a", "out-b"):
        kafka.create_topic(topic, 1)
    (tmp_path / "purchase.avsc").write_text(json.dumps(PURCHASE))
    in_avro = f"format 'avro', schema '{tmp_path}/purchase.avsc'"
    stream = declared(kafka, "in-fill", options=", maxOffsetsPerTrigger 40").replace("format 'json'", in_avro)
    kafka.produce("in-fill", [{"value": value} for value in encoded(PURCHASE, first)])
    run(session_of(spark, tmp_path / "state", stream, query(kafka, "out-a", clauses="MODE changes")))
    session = session_of(
        spark,
        tmp_path / "state",
        stream,
        query(kafka, "out-a", clauses="MODE changes"),
        query(kafka, "out-b", LONGER, "MODE changes BACKFILL", name="longer"),
    )
    jobs = session.backend.session_jobs  # type: ignore[attr-defined]
    (diff,) = jobs.changes().values()
    assert "complete at once by backfill" in diff.render()
    jobs.on_change = "apply"
    kafka.produce("in-fill", [{"value": value} for value in encoded(PURCHASE, rest)])
    run(session)
    begin = max(row["ts"] for row in first)
    written = changes(kafka.records("out-b"))
    folded: Counter[tuple[Any, ...]] = Counter()
    whole: Counter[tuple[Any, ...]] = Counter()
    for counter, found in ((folded, written), (whole, expected(LONGER, rows))):
        for (op, _, *row), count in found.items():
            counter[tuple(row)] += count if op == "+" else -count
    assert +folded == +whole
    later = {change: n for change, n in written.items() if change[1] > begin}
    assert later == {change: n for change, n in expected(LONGER, rows).items() if change[1] > begin}
    assert changes(kafka.records("out-a")) == expected(SQL, rows)


def test_a_broker_that_cannot_be_reached_is_named_and_may_come_back(spark: SparkSession, tmp_path: Path) -> None:
    """Before the job starts, which then fails; and while it runs, which goes on."""
    rows = made_up_rows(2)
    with broker() as other:
        other.create_topic("in", 1)
        put(other, "in", rows[:40])
        short = ", kafka.default.api.timeout.ms 2000, kafka.request.timeout.ms 1500"
        into = f"CREATE QUERY q AS {SQL} INTO changelog (path '{tmp_path}/log')"
        session = session_of(spark, tmp_path / "state", declared(other, "in", options=short), into)
        other.stop()
        with pytest.raises(SashError, match="Kafka brokers cannot be reached"):
            run(session)
        other.start()
        session = session_of(spark, tmp_path / "state", declared(other, "in"), into)
        session.launch()
        (job,) = session.backend.jobs().values()
        try:
            job.process_all()
            other.stop()
            other.start()
            put(other, "in", rows[40:])
            job.process_all()
        finally:
            job.finish()
    written = spark.read.parquet(f"{tmp_path}/log").select("_op", "_ts", "k", "n", "total")
    assert Counter(tuple(row) for row in written.collect()) == expected(SQL, rows)


def test_dropped_rows_are_kept_once(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """Rows without a time go to a folder and late ones to a topic, as they came, although the batch is repeated."""
    for topic in ("in-dropped", "out-dropped", "late-rows"):
        kafka.create_topic(topic, 1)
    late_into = f"kafka (kafka.bootstrap.servers '{kafka.servers}', topic 'late-rows')"
    statements = (
        declared(kafka, "in-dropped") + f" BAD ROWS INTO '{tmp_path}/bad' LATE ROWS INTO {late_into}",
        query(kafka, "out-dropped", clauses="MODE changes"),
    )
    rows = made_up_rows(2)
    put(kafka, "in-dropped", rows[:40])
    run(session_of(spark, tmp_path / "state", *statements))
    texts = ["not JSON", '{"k": "no time"}', json.dumps({**rows[0], "v": 1}), json.dumps(rows[1])]
    kafka.produce("in-dropped", [{"value": text} for text in (*texts, *map(json.dumps, rows[40:]))])
    run(session_of(spark, tmp_path / "state", *statements))
    (commit,) = (path for path in (tmp_path / "state" / "job").rglob("commits/1") if not path.name.endswith(".crc"))
    for file in (commit, commit.with_name(".1.crc"), *(tmp_path / "state").rglob("ledger/*")):
        if file.is_file():
            file.unlink()
    run(session_of(spark, tmp_path / "state", *statements))
    bad = spark.read.parquet(f"{tmp_path}/bad").orderBy("origin").collect()
    assert [tuple(row[2:]) for row in bad] == [
        ("s", "no time", None, f"in-dropped/0/{40 + n}", text, 1) for n, text in enumerate(texts[:2])
    ]
    records = kafka.records("late-rows")
    assert len(records) > 2, "the batch was written again"
    once = {identity(record): json.loads(record.value()) for record in records}
    assert sorted((one["reason"], one["origin"], one["row"]) for one in once.values()) == [
        ("late", f"in-dropped/0/{42 + n}", text) for n, text in enumerate(texts[2:])
    ], "although the filter of the query drops one of them"
    assert changes(kafka.records("out-dropped")) == expected(SQL, rows)


def test_too_many_bad_rows_fail_the_job(spark: SparkSession, tmp_path: Path) -> None:
    """Of lines as of files that Spark parses, what is kept is the text; of rows that only have no time, their columns."""
    for source in ("text", "json"):
        (tmp_path / source).mkdir()
    (tmp_path / "text" / "a").write_text("".join(f"{n * 10},k,{n}\n" for n in range(90)) + "x,k,1\n" * 11)
    odd = '{"ts": "soon", "k": "k", "v": 1}'
    (tmp_path / "json" / "a").write_text('{"ts": 10, "k": "k", "v": 1}\n' + odd + '\n{"k": "no time", "v": 2}\n')

    def of(name: str, source: str, folder: str, form: str = "") -> str:
        columns, path = "(ts BIGINT, k STRING, v BIGINT)", f"path '{tmp_path}/{folder}'{form}"
        return f"CREATE STREAM {name} {columns} USING {source} OPTIONS ({path}) BAD ROWS INTO '{tmp_path}/bad-{name}'"

    def written(name: str, sql: str) -> str:
        return f"CREATE QUERY of_{name} AS {sql} INTO changelog (path '{tmp_path}/log-{name}')"

    stream = of("s", "text", "text", ", format 'csv'") + " MAX BAD ROWS 1 PERCENT"
    parsed = (of("c", "csv", "text"), of("j", "json", "json"))
    queries = [written(name, SQL.replace("FROM s", f"FROM {name}")) for name in ("s", "c", "j")]
    with pytest.raises(
        SashError, match=r"11 of 101 rows of stream s have no time, more than MAX BAD ROWS 1 PERCENT: see .*/bad-s"
    ):
        run(session_of(spark, tmp_path / "state", stream, *parsed, *queries))
    found = spark.read.parquet(f"{tmp_path}/bad-s").collect()
    assert {(row.row, row.origin.removeprefix("file:")) for row in found} == {("x,k,1", f"{tmp_path}/text/a")}
    run(session_of(spark, tmp_path / "state", stream.replace("1 P", "2 P"), *parsed, *queries))
    assert spark.read.parquet(f"{tmp_path}/bad-s").count() == 11, "the batch that failed is repeated"
    bad = {name: spark.read.parquet(f"{tmp_path}/bad-{name}").collect() for name in ("c", "j")}
    assert [row.row for row in bad["c"]] == ["x,k,1"] * 11
    assert sorted(row.row for row in bad["j"]) == ['{"k":"no time","v":2}', odd]
    assert {row.origin.removeprefix("file:") for row in bad["j"]} == {f"{tmp_path}/json/a"}


def test_change_events_of_a_database_drive_a_relation(
    spark: SparkSession, kafka: Broker, registry: SchemaRegistry, tmp_path: Path
) -> None:
    """Updates that are retroactive change the results of rows that are already in the window; others only those after them.

    The events of one relation are JSON, and those of the other are Avro, whose schema changes as the table gets a column.
    """
    for topic in ("events", "events-avro", "in-joined", "out-joined", "out-joined-on"):
        kafka.create_topic(topic, 1)

    def event(op: str, before: Any, after: Any, ms: int) -> str:
        return json.dumps(
            {"payload": {"op": op, "before": before, "after": after, "ts_ms": ms, "source": {"ts_ms": ms}}}
        )

    def table(*columns: tuple[str, Any]) -> tuple[Any, int]:
        row = record(("id", "long"), ("name", ["null", "string"]), *columns, name="Value")
        schema = record(
            ("before", ["null", row]), ("after", ["null", "Value"]), ("op", "string"), ("ts_ms", ["null", "long"]),
            ("source", record(("db", "string"), ("ts_ms", "long"), name="Source")), name="Envelope",
        )  # fmt: skip
        return schema, registry.add("events-avro-value", schema)

    def in_avro(text: str | None, schema: Any, number: int) -> bytes | None:
        if text is None:
            return None
        given = json.loads(text)["payload"]
        for row in (given["before"], given["after"]):
            if row is not None:
                row.setdefault("name", None)
        (value,) = framed(number, schema, [{**given, "source": {**given["source"], "db": "shop"}}])
        return value

    relation = (
        "CREATE RELATION {} (ts TIMESTAMP, id BIGINT, name STRING) USING kafka OPTIONS (kafka.bootstrap.servers "
        f"'{kafka.servers}', subscribe 'events', startingOffsets 'earliest', format 'debezium-json') CHANGES KEY (id) {{}}"
    )
    sql = "SELECT s.v, r.name FROM s [RANGE 1 HOUR] JOIN {} AS r ON s.v = r.id"
    statements = (
        declared(kafka, "in-joined"),
        relation.format("names", ""),
        relation.format("names_then", "NON RETROACTIVE")
        .replace("subscribe 'events'", "subscribe 'events-avro'")
        .replace("format 'debezium-json'", f"format 'debezium-avro', registry '{registry.url}'"),
        query(kafka, "out-joined", sql.format("names"), "MODE changes"),
        query(kafka, "out-joined-on", sql.format("names_then"), "MODE changes", name="then"),
    )
    one, other = {"id": 1, "name": "one"}, {"id": 1, "name": "uno", "new": True}
    first = [event("r", None, one, 10), event("c", None, {"id": 2, "name": "two"}, 20)]
    then = [event("u", one, other, 2_000), event("d", {"id": 2}, None, 2_500), None]
    for events, rows, added in (
        (first, (1_000_000, 1_200_000), ()),
        (then, (3_000_000, 4_000_000), (("new", ["null", "boolean"]),)),
    ):
        kafka.produce("events", [{"key": "k", "value": value} for value in events])
        described = table(*added)
        kafka.produce("events-avro", [{"key": "k", "value": in_avro(value, *described)} for value in events])
        put(kafka, "in-joined", [{"ts": ts, "k": "k", "v": v} for ts in rows for v in (1, 2)])
        run(session_of(spark, tmp_path / "state", *statements))

    def answer(topic: str) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for (op, _, *row), count in changes(kafka.records(topic)).items():
            found[tuple(row)] += count if op == "+" else -count
        return +found

    assert answer("out-joined") == {(1, "uno"): 3}, "the rows at the clock wait"
    assert answer("out-joined-on") == {(1, "one"): 2, (1, "uno"): 1, (2, "two"): 2}
