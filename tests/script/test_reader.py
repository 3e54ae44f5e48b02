from __future__ import annotations

from dataclasses import replace

import pytest

from sash.errors import SqlSyntaxError, UnknownNameError
from sash.script.cursor import is_complete
from sash.script.reader import read_script
from sash.script.sources import bounded
from sash.script.statements import (
    AlterQuery,
    Analyze,
    Attach,
    CreateQuery,
    CreateRelation,
    CreateStream,
    Describe,
    Drop,
    Explain,
    ExplainJob,
    Keep,
    Position,
    ResumeQuery,
    Select,
    SetOption,
    Show,
    SnapshotStatement,
)

JOB = """
-- sales, as they come; in files
CREATE STREAM sales (ts TIMESTAMP, `item id` INT, price DECIMAL(10, 2))
USING csv OPTIONS (path '/data/it''s; here/', header true, maxFilesPerTrigger = 5, "x.y" -1.5, a.b 'c')
TIME ts SLACK '5 seconds' HEARTBEAT '1 second' BAD ROWS DROP RATE 200 PEAK 900 DISTINCT (`item id` 50, price = 1000);

CREATE QUERY totals AS
  SELECT item, SUM(price) AS total /* ; */ FROM sales [RANGE 1 MINUTE] GROUP BY item
INTO postgres (url "postgresql://localhost/db", table 'totals')
MODE upsert KEY (item) TRIGGER '1 second' STRATEGY update-pattern-aware JOIN lazy-hash REORDER OFF TAU '5 seconds';
"""


def test_a_job_is_read() -> None:
    stream, query = read_script(JOB)
    assert isinstance(stream, CreateStream)
    assert stream.position == Position(3, 1)
    assert [str(field) for field in stream.declaration.columns or ()] == [
        "ts TIMESTAMP",
        "item id INT",
        "price DECIMAL(10,2)",
    ]
    assert dict(stream.declaration.options) == {
        "path": "/data/it's; here/",
        "header": True,
        "maxFilesPerTrigger": 5,
        "x.y": -1.5,
        "a.b": "c",
    }
    assert (stream.time, stream.slack, stream.heartbeat, stream.bad_rows) == ("ts", "5 seconds", "1 second", "drop")
    assert (stream.rate, stream.peak, stream.distinct) == (200, 900, {"item id": 50, "price": 1000})
    assert isinstance(query, CreateQuery)
    assert query.query.sql == ("SELECT item, SUM(price) AS total /* ; */ FROM sales [RANGE 1 MINUTE] GROUP BY item")
    assert query.query.position == Position(8, 3)
    assert (query.sink, dict(query.options)) == (
        "postgres",
        {"url": "postgresql://localhost/db", "table": "totals"},
    )
    assert (query.mode, query.key, query.trigger) == ("upsert", ("item",), "1 second")
    assert (query.strategy, query.join, query.reorder, query.tau) == (
        "update-pattern-aware",
        "lazy-hash",
        False,
        "5 seconds",
    )


def test_the_smaller_statements_are_read() -> None:
    text = (
        "show streams; SHOW relations; SHOW QUERIES; DESCRIBE s; DESC STREAM s; DROP QUERY IF EXISTS q; DROP STREAM s;"
        "SET spark.a.b = 'c'; SET strategy = negative-tuple; SELECT 1 FROM s; EXPLAIN SELECT 1; EXPLAIN ALL SELECT 1;"
        "EXPLAIN ANALYZE WITH a AS (SELECT 1) SELECT 1; SNAPSHOT SELECT 1; EXPLAIN ANALYZE q;"
        "EXPLAIN SNAPSHOT SELECT 1; ATTACH w PATH 'kept'"
    )
    found = read_script(text)
    assert [s.what for s in found if isinstance(s, Show)] == ["STREAM", "RELATION", "QUERY"]
    assert [s.name for s in found if isinstance(s, Describe)] == ["s", "s"]
    assert [(s.what, s.if_exists) for s in found if isinstance(s, Drop)] == [("QUERY", True), ("STREAM", False)]
    settings = [(s.name, s.value) for s in found if isinstance(s, SetOption)]
    assert settings == [("spark.a.b", "c"), ("strategy", "negative-tuple")]
    assert [s.form for s in found if isinstance(s, Explain)] == ["plan", "all", "analyze", "snapshot"]
    assert [s.query.sql for s in found if isinstance(s, Select)] == ["SELECT 1 FROM s"]
    assert [s.query.sql for s in found if isinstance(s, SnapshotStatement)] == ["SELECT 1"]
    assert [s.name for s in found if isinstance(s, Analyze)] == ["q"]
    assert [(s.name, s.path) for s in found if isinstance(s, Attach)] == [("w", "kept")]


def test_clauses_of_a_query_in_a_job_are_read_in_any_order() -> None:
    plain, full = read_script(
        "CREATE QUERY a AS SELECT 1 INTO noop ON ERROR FAIL;"
        "CREATE QUERY b AS SELECT 1 INTO noop BACKFILL OUTBOX '64 MB' WHEN COMPLETE MODE net MAX STATE '1 GB' "
        "ON ERROR SUSPEND SEPARATE TAU '1 second'"
    )
    assert isinstance(plain, CreateQuery)
    assert isinstance(full, CreateQuery)
    assert (plain.separate, plain.on_error, plain.max_state, plain.outbox) == (False, "fail", None, None)
    assert (plain.when_complete, plain.backfill) == (False, False)
    assert (full.separate, full.on_error, full.max_state, full.outbox) == (True, "suspend", "1 GB", "64 MB")
    assert (full.when_complete, full.backfill, full.mode, full.tau) == (True, True, "net", "1 second")
    assert full.place("max") == Position(1, 140), "after the word of the clause"


def test_statements_about_running_queries_are_read() -> None:
    text, whole, clauses, resume, explain, show = read_script(
        "ALTER QUERY q AS SELECT 2 FROM s; ALTER QUERY q AS SELECT 3 INTO console (a 1) MODE net;"
        "ALTER QUERY q SET ON ERROR SUSPEND KEY (a); RESUME QUERY q; EXPLAIN JOB; SHOW JOBS"
    )
    assert isinstance(text, AlterQuery)
    assert isinstance(whole, AlterQuery)
    assert isinstance(clauses, AlterQuery)
    assert isinstance(resume, ResumeQuery)
    assert isinstance(explain, ExplainJob)
    assert isinstance(show, Show)
    (old,) = read_script("CREATE QUERY q AS SELECT 1 INTO noop (x 'y') TRIGGER '1 second' ON ERROR FAIL")
    assert isinstance(old, CreateQuery)
    altered = text.applied_to(old)
    assert (altered.query.sql, altered.sink, altered.options, altered.trigger) == (
        "SELECT 2 FROM s",
        "noop",
        {"x": "y"},
        "1 second",
    )
    altered = clauses.applied_to(old)
    assert (altered.query, altered.on_error, altered.key, altered.trigger) == (old.query, "suspend", ("a",), "1 second")
    altered = whole.applied_to(old)
    assert (altered.query.sql, altered.sink, altered.options, altered.mode, altered.trigger) == (
        "SELECT 3",
        "console",
        {"a": 1},
        "net",
        None,
    )
    assert (resume.name, show.what) == ("q", "JOB")


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ".", ".hidden", "a\\\\b", "a\nb", "x" * 300])
def test_a_query_has_a_name_that_stays_in_its_folder(name: str) -> None:
    with pytest.raises(SqlSyntaxError, match="the name of a query") as caught:
        read_script(f"SHOW STREAMS; CREATE QUERY `{name}` AS SELECT 1 FROM s INTO noop")
    assert (caught.value.line, caught.value.column) == (1, 28)


def test_windows_are_kept_by_time_or_by_rows() -> None:
    by_time, by_rows = read_script(
        "KEEP s WINDOW '1 minute' EVERY '1 second'; KEEP s WINDOW 10 EVERY 2 PATH 'p' RETAIN 3"
    )
    assert by_time == Keep(Position(1, 1), "s", "1 minute", "1 second")
    assert by_rows == Keep(Position(1, 44), "s", 10, 2, "p", 3)


def test_clauses_of_relations() -> None:
    (plain, changing, again) = read_script(
        "CREATE RELATION items (id INT) USING csv OPTIONS (path 'x') KEY (id) ROWS 50 DISTINCT (id 50);"
        "CREATE RELATION prices (id INT) USING csv OPTIONS (path 'x') NON RETROACTIVE CHANGES TIME at HEARTBEAT '1 s' "
        "BAD ROWS DROP;"
        "CREATE RELATION items USING csv OPTIONS (path 'x') KEY (id) REFRESH '10 seconds'"
    )
    assert isinstance(plain, CreateRelation)
    assert isinstance(changing, CreateRelation)
    assert (plain.key, plain.retroactive, plain.changes) == (("id",), True, False)
    assert isinstance(again, CreateRelation)
    assert (changing.key, changing.retroactive, changing.changes) == (None, False, True)
    assert (changing.time, changing.heartbeat, changing.bad_rows) == ("at", "1 s", "drop")
    assert (plain.rows, plain.distinct, plain.refresh, again.refresh) == (50, {"id": 50}, None, "10 seconds")


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("CREAT STREAM x", "did you mean create?", 1, 1),
        (
            "SHOW STREAMS;\n CREATE TABLE x",
            "expected STREAM or RELATION or QUERY or FUNCTION or AGGREGATE; found TABLE",
            2,
            9,
        ),
        ("CREATE STREAM s (a MONEY) USING csv", "no type MONEY", 1, 20),
        ("CREATE STREAM s (a INT, A INT) USING csv", "column A is declared twice", 1, 25),
        ("CREATE STREAM s USING csv OPTIONS (path 'x'", "expected ); the text ends", 1, 44),
        ("CREATE STREAM s USING csv OPTIONS (a 1, A 2)", "option A is given twice", 1, 41),
        ("CREATE STREAM s USING rate TIMES ts", "did you mean time?", 1, 28),
        ("CREATE STREAM s USING rate SLACK 5", "a time such as '5 seconds'; found 5", 1, 34),
        ("CREATE STREAM s USING rate TIME a TIME b", "TIME is given twice", 1, 35),
        ("SELECT a,\n  'open FROM s", "this string is not closed", 2, 3),
        ("CREATE QUERY q AS SELECT 1 FROM s;", "INTO and a sink", 1, 34),
        ("CREATE QUERY q AS SELECT 1 INTO console MODE all", "CHANGES or NET or UPSERT", 1, 46),
        ("CREATE QUERY q AS SELECT 1 INTO noop ON FAILURE", "expected ERROR; found FAILURE", 1, 41),
        ("CREATE QUERY q AS SELECT 1 INTO noop ON ERROR STOP", "expected SUSPEND or FAIL; found STOP", 1, 47),
        ("CREATE QUERY q AS SELECT 1 INTO noop MAX STATE 5", "a size such as '1 GB'; found 5", 1, 48),
        ("CREATE QUERY q AS SELECT 1 INTO noop BACKFILL BACKFILL", "BACKFILL is given twice", 1, 47),
        ("ALTER QUERY q MODE net", "expected AS or SET; found MODE", 1, 15),
        ("ALTER QUERY q SET;", "expected a clause (MODE, KEY", 1, 18),
        ("ALTER STREAM s SET x", "expected QUERY; found STREAM", 1, 7),
        ("RESUME q", "expected QUERY or JOB; found q", 1, 8),
        ("STOP q", "expected JOB; found q", 1, 6),
        ("PAUSE JOB 7", "expected the name of a job, in quotes if it has a dot; found 7", 1, 11),
        ("KEEP s WINDOW 1.5 EVERY 1", "or a number of rows", 1, 15),
        ("KEEP s WINDOW 10", "expected EVERY; the text ends", 1, 17),
        ("KEEP s WINDOW 10 EVERY 1 RETAIN '2'", "expected a number of sub-windows", 1, 33),
        ("SET a 1", "expected =; found 1", 1, 7),
        (f"SET a = {'9' * 4_400}", "expected a number of at most 9,223,372,036,854,775,807", 1, 9),
        (f"SET a = -{'9' * 400}.5", "expected a number of at most", 1, 10),
        ("CREATE STREAM s USING rate RATE 'fast'", "expected a number", 1, 33),
        ("CREATE STREAM s USING rate DISTINCT (value many)", "columns with a number each", 1, 37),
        ("ATTACH w 'kept'", "expected PATH; found 'kept'", 1, 10),
    ],
)
def test_errors_have_a_position(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        read_script(text)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_positions_in_a_query_become_positions_in_the_script() -> None:
    position = Position(3, 7)
    with pytest.raises(UnknownNameError) as first, position.relocate_errors():
        raise UnknownNameError("no x", 1, 2)
    with pytest.raises(UnknownNameError) as second, position.relocate_errors():
        raise UnknownNameError("no x", 2, 2)
    assert (first.value.line, first.value.column) == (3, 8)
    assert str(second.value) == "no x (line 4, column 2)"


def test_the_position_is_marked_in_the_text() -> None:
    text = "SELECT a,\n\tb FROM s"
    assert UnknownNameError("no b", 2, 2).marked(text) == "no b\n  2 | \tb FROM s\n    | \t^"
    assert UnknownNameError("no b").marked(text) == "no b"


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SHOW STREAMS", False),
        ("SHOW STREAMS;", True),
        ("SHOW STREAMS; -- done", True),
        ("SELECT ';", False),
        ("SELECT ';' /* ;", False),
        ("SELECT 1 -- ;", False),
        ("", False),
    ],
)
def test_a_statement_is_complete_at_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_stream_may_be_kept_for_ever() -> None:
    written = "CREATE STREAM s (ts TIMESTAMP) USING parquet OPTIONS (path 'in') UNBOUNDED {};"
    for word in ("ALLOW", "REFUSE"):
        (statement,) = read_script(written.format(word))
        assert isinstance(statement, CreateStream)
        assert statement.unbounded == word.lower()


def test_the_partitions_of_a_stream() -> None:
    (statement,) = read_script(
        "CREATE STREAM s (ts TIMESTAMP, p INT) USING csv OPTIONS (path 'in') PARTITION BY (p) IDLE AFTER '5 minutes'"
    )
    assert isinstance(statement, CreateStream)
    assert (statement.partition_by, statement.idle_after) == (("p",), "5 minutes")


def test_where_dropped_rows_go() -> None:
    text = "CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'in') BAD ROWS INTO 'bad' LATE ROWS INTO kafka (topic 't')"
    (statement,) = read_script(f"{text} MAX BAD ROWS 0.5 PERCENT")
    assert isinstance(statement, CreateStream)
    assert (statement.bad_rows, statement.max_bad_rows) == ("drop", 0.5)
    assert statement.bad_rows_into == ("changelog", {"path": "bad"})
    assert statement.late_rows_into == ("kafka", {"topic": "t"})


def test_how_far_rows_may_jump_ahead() -> None:
    text = "CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'in') MAX JUMP '1 day'"
    (statement,) = read_script(f"{text} MAX BAD ROWS 2 PERCENT")
    assert isinstance(statement, CreateStream)
    assert (statement.max_jump, statement.max_bad_rows) == ("1 day", 2)
    with pytest.raises(SqlSyntaxError, match="MAX JUMP is given twice"):
        read_script(f"{text} MAX JUMP '2 days'")
    with pytest.raises(SqlSyntaxError, match="expected BAD or JUMP or ROWS"):
        read_script(text.replace("JUMP", "STATE"))


def test_how_many_rows_a_batch_reads() -> None:
    text = "CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'in') MAX ROWS PER BATCH 5000"
    (statement,) = read_script(f"{text} MAX JUMP '1 day'")
    assert isinstance(statement, CreateStream)
    assert (statement.max_rows_per_batch, statement.max_jump) == (5_000, "1 day")
    assert bounded(statement.declaration, 5_000).options == {"path": "in", "maxFilesPerTrigger": 1}
    kafka = replace(statement.declaration, source="kafka", options={"subscribe": "t"})
    assert bounded(kafka, 5_000).options == {"subscribe": "t", "maxOffsetsPerTrigger": 5_000}
    with pytest.raises(SqlSyntaxError, match="MAX ROWS is given twice"):
        read_script(f"{text} MAX ROWS PER BATCH 7")


def test_commas_in_types_belong_to_them() -> None:
    text = "CREATE STREAM s (a MAP<STRING, ARRAY<INT>>, b STRUCT<x: INT, y: DECIMAL(3, 1)>, c INT) USING csv"
    (statement,) = read_script(text)
    assert isinstance(statement, CreateStream)
    assert statement.declaration.columns is not None
    assert [field.name for field in statement.declaration.columns] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "text", ["SELECT 1", "WITH t AS (SELECT 1) SELECT * FROM t", "VALUES (1, 'a;')", "FROM s |> LIMIT 3", "TABLE s"]
)
def test_what_a_query_starts_with(text: str) -> None:
    created, shown = read_script(f"CREATE QUERY q AS {text} INTO console; {text}")
    assert isinstance(created, CreateQuery)
    assert isinstance(shown, Select)
    assert created.query.sql.strip() == shown.query.sql == text
