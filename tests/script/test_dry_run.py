"""What `sash validate` finds without Spark, and what it must leave to Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sash.cli.check import check
from sash.plan.types import BIGINT, TIMESTAMP, TIMESTAMP_NTZ
from sash.script.dry_run import DryRunBackend
from sash.script.reader import read_script
from sash.script.session import Session

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, v DOUBLE) USING csv OPTIONS (path 'in');\n"
PACKAGES = {"spark.jars.packages": "some:package:1"}
EXTENSIONS = {"spark.sql.extensions": "some.Extension"}


def problems(text: str, conf: dict[str, str] | None = None) -> list[tuple[int | None, int | None, str]]:
    return [(found.line, found.column, found.message) for found in check(text, DryRunBackend(conf))]


def query(select: str, into: str = "noop") -> str:
    return f"{STREAM}CREATE QUERY q AS\n{select}\nINTO {into};"


def over(expression: str, into: str = "noop") -> str:
    return query(f"SELECT {expression} AS x FROM s [RANGE 1 MINUTE]", into)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (over("SUMM(v)"), 3, 8, "there is no function summ; did you mean sum?"),
        (over("upper(SUMM(v))"), 3, 14, "there is no function summ; did you mean sum?"),
        (over("soundex(SUMM(v))"), 3, 16, "there is no function summ; did you mean sum?"),
        (over("regex_extract(k, 'a')"), 3, 8, "there is no function regex_extract; did you mean regexp_extract?"),
        (over("qwertz(k)"), 3, 8, "there is no function qwertz"),
        (over("regexp_extract(k)"), 3, 8, "regexp_extract takes 2 or 3 arguments, not 1"),
        (over("soundex(k, k)"), 3, 8, "soundex takes 1 argument, not 2"),
        (over("st_geogfromwkb(X'00')"), 3, 8, "since GEOMETRY and GEOGRAPHY cannot be columns: keep places as BINARY"),
        (over("1 + explode(split(k, ','))"), 3, 12, "explode makes several rows of one"),
        (over("vector_sum(array(k))"), 3, 8, "Sash does not run the aggregate vector_sum"),
        (over("soundex(uuid())"), 3, 16, "uuid is not deterministic"),
        (over("row_number()"), 3, 8, "Sash does not run window functions such as row_number"),
        (over("soundex(k) + DATE'2026-01-01'"), 3, 8, "add"),
        (over("approx_top_k(k, 5)"), 3, 1, "APPROX_TOP_K is available in snapshots"),
        (over("k", "postgress (url 'host=x', table 't')"), 4, 6, "there is no sink postgress; did you mean postgres?"),
        (over("k", "banana"), 4, 6, "there is no sink banana; there are changelog, console, csv"),
        (over("k", "jdbc"), 4, 6, "Spark's jdbc cannot be written to"),
        (over("k", "text (path 'x')"), 4, 6, "Spark's text cannot be written to"),
        (over("k", "parquet"), 4, 6, "parquet needs the option path"),
        (query("SELECT v AS _ts FROM s [NOW]", "parquet (path 'x')"), 2, 1, "parquet adds a column _ts"),
        (query("SELECT v AS batch FROM s [NOW]", "changelog (path 'x')"), 4, 6, "the changelog adds a column batch"),
        (over("k", "postgres (url 'host=x', table 'a.b.c')"), 4, 6, "'a.b.c' is not the name of a table"),
        (over("k", "postgres (url 'post gres', table 't')"), 4, 6, "the option url of postgres: "),
        (
            over("k", "postgres (url '', table 't', create maybe)"),
            4,
            6,
            "the option create of postgres is true or false",
        ),
        (over("k", "noop TRIGGER '5 bananas'"), 4, 19, "trigger must be"),
        (STREAM.replace(";", " PARTITION BY (z);"), 1, 92, "stream s has no column 'z' to be its partition"),
        (
            STREAM.replace(";", " BAD ROWS INTO kafka (topic 't');"),
            1,
            86,
            "kafka needs the option kafka.bootstrap.servers",
        ),
        (STREAM.replace(";", " LATE ROWS INTO parquet (path 'x');"), 1, 87, "dropped rows cannot be kept in parquet"),
        (STREAM.replace(";", " MAX BAD ROWS 101 PERCENT;"), 1, 86, "a share from 0 to 100 PERCENT"),
        (STREAM.replace(";", " MAX JUMP 'far';"), 1, 86, "max_jump must be a length of time"),
        (STREAM.replace(";", " MAX ROWS PER BATCH 0;"), 1, 86, "MAX ROWS PER BATCH must be at least 1"),
        ("CREATE STREAM s USING rate MAX ROWS PER BATCH 9;", 1, 32, "MAX ROWS PER BATCH is for kafka and files"),
        (
            "CREATE STREAM s (ts TIMESTAMP) USING json OPTIONS (path 'x', maxFilesPerTrigger 3) MAX ROWS PER BATCH 9;",
            *(1, 88),
            "MAX ROWS PER BATCH sets maxFilesPerTrigger: leave out that option",
        ),
        (STREAM.replace(";", " IDLE AFTER '1 hour';"), 1, 87, "IDLE AFTER is for streams with partitions"),
        (over("k", "noop KEY (z)"), 4, 15, "key column 'z' is not in the answer"),
        (over("k", "noop MODE upsert"), 4, 16, "upsert needs rows with a key"),
        (f"SET trigger = banana;{over('k')}", 1, 15, "trigger must be"),
        (f"SET strategy = banana;{over('k')}", 1, 16, "there is no strategy 'banana'"),
        (f"SET tau = banana;{over('k')}", 1, 11, "tau must be"),
        ("CREATE STREAM s (ts TIMESTAMP) USING cvs OPTIONS (path 'x');", 1, 38, "no source cvs; did you mean csv?"),
        ("CREATE STREAM s (ts TIMESTAMP) USING jdbc;", 1, 38, "Spark's jdbc cannot be read as a stream"),
        ("CREATE RELATION r (a INT) USING parket OPTIONS (path 'x');", 1, 33, "did you mean parquet?"),
        ("CREATE STREAM s USING rate OPTIONS (rowsPerSecond 0);", 1, 37, "rowsPerSecond must be a whole number from 1"),
        ("CREATE STREAM s USING generator OPTIONS (rat 5);", 1, 42, "did you mean rate?"),
        (
            "CREATE STREAM s USING rate OPTIONS (rowsPerSecond '²');",
            1,
            37,
            "rowsPerSecond must be a whole number from 1",
        ),
        (
            f"CREATE STREAM s USING generator OPTIONS (rate '{'9' * 5_000}');",
            1,
            42,
            "rate must be a whole number from 1",
        ),
        ("CREATE STREAM s USING socket OPTIONS (host 'h', port 99999);", 1, 49, "port must be a whole number from 1"),
        (
            "CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'x', header banana);",
            *(1, 61),
            "the option header must be true or false",
        ),
        (
            "CREATE STREAM s (ts TIMESTAMP) USING json OPTIONS (path 'x', maxFilesPerTrigger 0);",
            *(1, 62),
            "maxFilesPerTrigger must be a whole number from 1",
        ),
        (
            "CREATE STREAM s USING kafka OPTIONS (kafka.bootstrap.servers 'h:1');",
            1,
            1,
            "kafka needs one of the options",
        ),
        ("CREATE STREAM s USING rate SLACK 'long';", 1, 34, "slack must be a length of time"),
        ("CREATE STREAM s USING rate HEARTBEAT 'often';", 1, 38, "heartbeat must be a length of time"),
    ],
)
def test_problems_are_found_without_spark(text: str, line: int, column: int, message: str) -> None:
    found = problems(text)
    assert len(found) == 1
    assert found[0][:2] == (line, column)
    assert message in found[0][2]
    assert "\n" not in found[0][2]


@pytest.mark.parametrize(
    "expression",
    [
        "regexp_extract(k, '(a)', 1)",
        "split(k, ',')[0]",
        "element_at(split(k, ','), 1)",
        "from_json(k, 'a INT').a",
        "get_json_object(k, '$.a')",
        "aggregate(transform(split(k, ','), x -> length(x)), 0, (a, b) -> a + b)",
        "timestampdiff(HOUR, ts, ts)",
        "date_part('SECOND', ts)",
        "to_number(k, '999') + 1",
        "positive(v) * 2",
        "try_divide(v, 2) + 1.5",
        "concat(get_json_object(k, '$.a'), 'x')",
        "CASE WHEN element_at(split(k, ','), 1) = 'a' THEN try_add(v, 1) ELSE v END",
        "decode(k, 'a', 1, 'b', 2, 3) + 1",
        "upper(decode(k, 'a', 'x', 'y'))",
        "nanvl(v, 0) > 1",
        "SUM(try_divide(v, 2))",
        "MAX(element_at(split(k, ','), 1))",
    ],
)
def test_what_spark_evaluates_is_not_refused(expression: str) -> None:
    assert problems(over(expression)) == []


@pytest.mark.parametrize(
    ("sink", "conf"),
    [
        ("console", {}),
        ("memory", {}),
        ("xml (path 'x', rowTag 'r')", {}),
        ("delta (path 'x')", {}),
        ("com.example.Provider", {}),
        ("'com.example.Provider'", {}),
        ("banana (a 1)", PACKAGES),
        ("kafka (kafka.bootstrap.servers 'h:1', topic 't')", {}),
    ],
)
def test_sinks_that_spark_may_have_are_not_refused(sink: str, conf: dict[str, str]) -> None:
    assert problems(over("k", sink), conf) == []


def test_a_misspelt_sink_is_refused_even_if_packages_are_loaded() -> None:
    ((_, _, message),) = problems(over("k", "postgress"), PACKAGES)
    assert message == "there is no sink postgress; did you mean postgres?"


def test_functions_that_an_extension_may_add_are_not_refused() -> None:
    assert problems(over("st_banana(k)"), EXTENSIONS) == []
    assert len(problems(over("st_banana(k)"), PACKAGES)) == 1


def test_the_columns_that_only_spark_knows_are_not_guessed() -> None:
    text = f"{STREAM}CREATE RELATION items USING parquet OPTIONS (path 'x');\n"
    text += "CREATE QUERY q AS SELECT k, name FROM s [NOW] JOIN items ON k = name INTO noop;"
    backend = DryRunBackend()
    assert check(text, backend) == []
    assert backend.unchecked == {
        "q": "only Spark knows the columns of relation items: declare them, as items (column TYPE, ...)"
    }
    assert check(text + "DESCRIBE items; SHOW RELATIONS; DROP RELATION items;", DryRunBackend()) == []
    found = problems(text.replace("INTO noop", "INTO noop TRIGGER 'soon'"))
    assert [column for _, column, _ in found] == [88]


def test_a_type_that_only_spark_knows_does_not_make_other_types_wrong() -> None:
    backend = DryRunBackend()
    assert check(over("datediff(from_csv(k, 'a DATE'), v)"), backend) == []
    assert "only Spark knows the type of a function" in backend.unchecked["q"]
    assert len(check(over("datediff(ts, v)"), DryRunBackend())) == 1


def test_two_queries_do_not_write_to_one_table() -> None:
    into = "postgres (url 'host=x', table 't')"
    second = "CREATE QUERY r AS SELECT v FROM s [NOW]\nINTO {};"
    ((line, column, message),) = problems(over("k", into) + second.format(into))
    assert (line, column) == (5, 6)
    assert message == "query q writes to url host=x, table t too: choose another for one of them"
    assert problems(over("k", into) + second.format("postgres (url 'host=x', table 'u')")) == []
    assert problems(over("k", into) + "DROP QUERY q;" + second.format(into)) == []
    assert problems(over("k", "console") + second.format("console")) == []


@pytest.mark.parametrize(
    ("given", "time"),
    [("TIMESTAMP", TIMESTAMP), ("BIGINT", BIGINT), ("DATE", TIMESTAMP_NTZ), ("TIMESTAMP_NTZ", TIMESTAMP_NTZ)],
)
def test_a_sink_is_checked_with_the_times_that_it_will_get(given: str, time: pa.DataType) -> None:
    """Of a stream, and of a relation's updates: a table that the first run creates must fit the next one."""
    session = Session(DryRunBackend())
    updated = f"CREATE RELATION r (ts {given}, k STRING) USING json OPTIONS (path 'in') CHANGES KEY (k)"
    into = "INTO changelog (path 'out')"
    statements = (
        STREAM.replace("TIMESTAMP", given),
        updated,
        f"CREATE QUERY q AS SELECT k FROM s [RANGE 1 MINUTE] {into}",
        f"CREATE QUERY u AS SELECT COUNT(*) AS n FROM r {into}",
    )
    for statement in (one for text in statements for one in read_script(text)):
        session.execute(statement)
    found = {query.statement.name: query.output for query in session.backend.checked}
    assert {name: output.time for name, output in found.items()} == {"q": time, "u": time}
