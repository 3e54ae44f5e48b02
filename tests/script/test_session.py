from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sash.engine import Engine
from sash.errors import CatalogError, OptionError, SashError, StrategyError, UnknownNameError
from sash.script.dry_run import DryRunBackend
from sash.script.reader import read_script
from sash.script.replies import MessageReply, TableReply
from sash.script.session import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = "CREATE STREAM sales (ts TIMESTAMP, item INT, price DOUBLE) USING csv OPTIONS (path 'x');"
ITEMS = "CREATE RELATION items (item INT, name STRING) USING csv OPTIONS (path 'x') KEY (item);"
TOTALS = "SELECT item, SUM(price) AS total FROM sales [RANGE 1 MINUTE] GROUP BY item"


def session(text: str = "") -> Session:
    made = Session(DryRunBackend())
    for statement in read_script(text):
        made.execute(statement)
    return made


def reply(to: Session, text: str) -> Any:
    (statement,) = read_script(text)
    return to.execute(statement)


def test_show_and_describe_declared_inputs() -> None:
    on = session(SALES + ITEMS)
    assert reply(on, "SHOW STREAMS").rows == [
        ("sales", "ts", "ts TIMESTAMP, item INT, price DOUBLE", None, None, None, None)
    ]
    assert reply(on, "SHOW RELATIONS").rows == [("items", "item INT, name STRING")]
    assert reply(on, "DESCRIBE Items") == TableReply(("column", "type"), [("item", "INT"), ("name", "STRING")])
    assert reply(on, "SHOW QUERIES").rows == []


def test_a_changing_relation_lacks_the_columns_of_its_updates() -> None:
    declared = "(ts TIMESTAMP, _op STRING, item INT, list DOUBLE) USING json OPTIONS (path 'x') NON RETROACTIVE CHANGES"
    on = session(f"{SALES} CREATE RELATION prices {declared};")
    assert reply(on, "SHOW RELATIONS").rows == [("prices", "item INT, list DOUBLE")]
    plan = reply(on, "EXPLAIN SELECT s.item, p.list FROM sales [RANGE 1 MINUTE] s JOIN prices p ON s.item = p.item")
    assert "NrrJoin" in str(plan)
    with pytest.raises(CatalogError, match="no column _op"):
        reply(on, "CREATE RELATION r (ts TIMESTAMP, a INT) USING json OPTIONS (path 'x') CHANGES")


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("KEY (item) CHANGES REFRESH '1 second'", "CHANGES is for a stream of updates, REFRESH for a table"),
        ("REFRESH '1 second'", "compares rows by key: add KEY"),
        ("KEY (item) REFRESH 'often'", "refresh must be a length of time"),
        ("KEY (item) HEARTBEAT '1 second'", "HEARTBEAT applies to updates: add CHANGES"),
        ("TIME item", "TIME applies to updates"),
        ("BAD ROWS DROP", "BAD ROWS applies to updates"),
        ("KEY (item) CHANGES TIME at", "has no column 'at'"),
        ("ROWS -1", "rows must be a number of at least 0"),
    ],
)
def test_clauses_of_a_relation_that_exclude_each_other(clauses: str, message: str) -> None:
    declared = "(ts TIMESTAMP, item INT, name STRING) USING csv OPTIONS (path 'x')"
    with pytest.raises(SashError, match=message):
        reply(session(), f"CREATE RELATION items {declared} {clauses}")


def test_a_relation_may_be_refreshed_or_have_updates_with_a_heartbeat() -> None:
    declared = "(ts TIMESTAMP, item INT, name STRING) USING csv OPTIONS (path 'x') KEY (item)"
    on = session(
        f"CREATE RELATION again {declared} REFRESH '10 seconds' ROWS 50 DISTINCT (item 50);"
        f"CREATE RELATION waited {declared} CHANGES HEARTBEAT '1 second';"
    )
    again, waited = (on.backend.catalog.relations[name] for name in ("again", "waited"))
    assert (again.changes, again.waits, again.timed, len(again.schema)) == (True, False, False, 3)
    assert (again.statistics.rows, again.statistics.of_column("item")) == (50, 50)
    assert (waited.changes, waited.waits, waited.timed, len(waited.schema)) == (True, True, True, 2)
    reply(on, SALES)
    query = "SELECT s.item, w.name FROM sales [RANGE 1 MINUTE] s JOIN waited w ON s.item = w.item"
    with pytest.raises(OptionError, match="has a heartbeat"):
        reply(on, f"CREATE QUERY q AS {query} INTO console TRIGGER 'available_now'")


def test_statistics_choose_plans() -> None:
    slow, fast = (f"{SALES.rstrip(';')} RATE {rate} DISTINCT (item 10);" for rate in (1, 5000))
    plans = [reply(session(declared), f"EXPLAIN {TOTALS}").text for declared in (slow, fast)]
    assert plans[0] != plans[1], "the estimates follow what is declared"


@pytest.mark.spark
def test_clauses_reach_the_engine(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "items").mkdir()
    (tmp_path / "items" / "a.csv").write_text("1,pen\n2,ink\n")
    (tmp_path / "sales").mkdir()
    (tmp_path / "sales" / "a.csv").write_text("1000000,1,2.5\n2000000,1,3.5\n9000000,2,9.0\n")
    engine = Engine(spark)
    on = Session.on(engine)
    reply(
        on,
        f"CREATE STREAM sales (at BIGINT, item INT, price DOUBLE) USING csv OPTIONS (path '{tmp_path}/sales') "
        "TIME at SLACK '1 second' BAD ROWS DROP RATE 7 PEAK 21 DISTINCT (item 3)",
    )
    reply(
        on,
        f"CREATE RELATION items (item INT, name STRING) USING csv OPTIONS (path '{tmp_path}/items') KEY (item) "
        "REFRESH '1 hour' ROWS 2",
    )
    sales, items = engine.catalog.streams["sales"], engine.catalog.relations["items"]
    assert (sales.time, sales.statistics.rate, sales.statistics.peak) == ("at", 7, 21)
    assert sales.statistics.of_column("item") == 3
    assert (items.changes, items.key, items.statistics.rows) == (True, (0,), 2)
    query = "SELECT s.item, i.name FROM sales [RANGE 1 MINUTE] s JOIN items i ON s.item = i.item"
    text = reply(on, f"EXPLAIN ANALYZE {query}").text
    assert "actual: " in text
    reply(on, f"CREATE QUERY named AS {query} INTO memory SEPARATE")
    on.launch()
    running = on.backend.separate()["named"]
    running.process_all()
    assert {row["name"] for row in spark.table("named").collect()} == {"pen"}
    (tmp_path / "items" / "b.csv").write_text("3,cap\n")
    assert running.refresh() == 1, "the folder is listed anew"
    assert "actual: " in reply(on, "EXPLAIN ANALYZE named").text
    assert reply(on, "SHOW QUERIES").rows[0][:4] == ("named", None, "memory", "running")
    engine.close()


def test_queries_are_kept_by_name_until_they_are_dropped() -> None:
    on = session(f"{SALES} CREATE QUERY q AS {TOTALS} INTO console;")
    assert [row[:3] for row in reply(on, "SHOW QUERIES").rows] == [("q", None, "console")]
    assert ("query", TOTALS) in reply(on, "DESCRIBE q").rows
    with pytest.raises(CatalogError, match="already a query Q"):
        reply(on, f"CREATE QUERY Q AS {TOTALS} INTO console")
    assert reply(on, "DROP QUERY q") == MessageReply("Dropped query q")
    with pytest.raises(CatalogError, match="there is no query q"):
        reply(on, "DROP QUERY q")
    assert reply(on, "DROP QUERY IF EXISTS q") == MessageReply("There is no query q to drop")


def test_a_name_means_one_thing_until_it_is_dropped() -> None:
    on = session(SALES)
    with pytest.raises(CatalogError, match="already a stream Sales"):
        reply(on, "CREATE RELATION Sales (a INT) USING csv OPTIONS (path 'x')")
    reply(on, "DROP STREAM sales")
    reply(on, "CREATE RELATION Sales (a INT) USING csv OPTIONS (path 'x')")
    with pytest.raises(CatalogError, match="no stream sales"):
        reply(on, "DROP STREAM sales")


def test_explain_needs_no_spark() -> None:
    text = reply(session(SALES), f"EXPLAIN {TOTALS}").text
    assert "Aggregate sum(price) BY item [fifo]" in text


def test_explain_all_shows_rejected_plans() -> None:
    on = session(SALES + SALES.replace("sales", "returned"))
    query = (
        "SELECT DISTINCT s.item FROM sales [RANGE 1 MINUTE] AS s, returned [RANGE 1 MINUTE] AS r WHERE s.item = r.item"
    )
    assert "Alternatives that cost more" in reply(on, f"EXPLAIN ALL {query}").text
    assert "Alternatives" not in reply(on, f"EXPLAIN {query}").text


def test_a_window_is_kept_until_it_is_dropped() -> None:
    on = session(SALES)
    assert reply(on, "KEEP Sales WINDOW '60 seconds' EVERY '1 second'").text.startswith("Keeping the window of Sales")
    assert reply(on, "SHOW WINDOWS").rows == [("Sales", "60 seconds", "1 second", None, None, None, None)]
    with pytest.raises(CatalogError, match="already a window sales: DROP WINDOW sales"):
        reply(on, "KEEP sales WINDOW 100 EVERY 10")
    assert reply(on, "KEEP Sales WINDOW '60 seconds' EVERY '5 seconds'").text.startswith(
        "Changing the sub-windows of Sales"
    )
    assert reply(on, "SHOW WINDOWS").rows == [("Sales", "60 seconds", "5 seconds", None, None, None, None)]
    assert reply(on, "DROP WINDOW sales") == MessageReply("Dropped window sales")
    reply(on, "KEEP sales WINDOW 100 EVERY 10 RETAIN 2 PATH 'kept'")


def test_a_dry_run_checks_snapshots() -> None:
    on = session(f"{SALES} KEEP sales WINDOW '60 seconds' EVERY '1 second';")
    query = "SELECT item, SUM(price) AS total FROM sales [RANGE 60 SECONDS] GROUP BY item"
    assert reply(on, f"SNAPSHOT {query}") == MessageReply("Snapshot query: OK")
    reply(on, f"EXPLAIN SNAPSHOT {query}")
    with pytest.raises(UnknownNameError, match="no column prize") as caught:
        reply(on, "SNAPSHOT SELECT prize FROM sales [RANGE 60 SECONDS]")
    assert (caught.value.line, caught.value.column) == (1, 17)
    with pytest.raises(SashError, match="keep a longer"):
        reply(on, "SNAPSHOT SELECT COUNT(*) FROM sales [RANGE 1 HOUR]")
    reply(on, "DROP WINDOW sales")
    with pytest.raises(SashError, match="sales is not kept"):
        reply(on, f"SNAPSHOT {query}")


@pytest.mark.spark
def test_a_kept_window_answers_snapshots(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1000000,1,2.5\n2000000,1,3.5\n3500000,2,9.0\n5000000,2,1.0\n")
    engine = Engine(spark)
    on = Session.on(engine)
    reply(on, SALES.replace("TIMESTAMP", "BIGINT").replace("'x'", f"'{tmp_path / 'in'}'"))
    reply(on, f"KEEP sales WINDOW '4 seconds' EVERY '1 second' PATH '{tmp_path / 'kept'}'")
    assert on.backend.keeping("sales") is None, "it is started with the queries"
    query = "SELECT item, SUM(price) AS total FROM sales [RANGE 4 SECONDS] GROUP BY item"
    answer = reply(on, f"SNAPSHOT {query}")  # waits for the first update of the window
    keeping = on.backend.keeping("sales")
    assert keeping is not None
    assert sorted(answer.rows) == [(1, 6.0), (2, 9.0)]
    assert "access path" in reply(on, f"EXPLAIN SNAPSHOT {query}").text
    other = Session.on(Engine(spark))
    reply(other, f"ATTACH sold PATH '{tmp_path / 'kept'}'")
    assert sorted(reply(other, f"SNAPSHOT {query.replace('sales', 'sold')}").rows) == [(1, 6.0), (2, 9.0)]
    assert reply(other, "SHOW WINDOWS").rows == [("sold", None, None, str(tmp_path / "kept"), None, None, None)]
    reply(other, "DROP WINDOW sold")
    with pytest.raises(SashError, match="sold"):
        reply(other, f"SNAPSHOT {query.replace('sales', 'sold')}")
    assert reply(on, "SHOW WINDOWS").rows[0][4:] == (4, 3, 0)
    engine.close()
    assert not keeping.active


def test_errors_in_a_query_have_positions_in_the_script() -> None:
    on = session(SALES)
    with pytest.raises(UnknownNameError) as caught:
        reply(on, "CREATE QUERY q AS\n  SELECT prize\n  FROM sales [NOW] INTO console")
    assert (caught.value.line, caught.value.column) == (2, 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE STREAM s USING csv OPTIONS (path 'x')", "stream s needs its columns"),
        ("CREATE STREAM s (ts TIMESTAMP) USING csv", "csv needs the option path"),
        ("CREATE STREAM s (a INT) USING csv OPTIONS (path 'x')", "needs a time column"),
        ("CREATE STREAM s (a INT, ts TIMESTAMP) USING csv OPTIONS (path 'x') TIME b", "has no column 'b'"),
        ("CREATE STREAM s (ts STRING) USING csv OPTIONS (path 'x')", "is STRING: make it TIMESTAMP"),
        ("CREATE STREAM s (ts TIMESTAMP) USING rate", "has fixed columns: timestamp TIMESTAMP, value BIGINT"),
        ("CREATE STREAM s (ts TIMESTAMP) USING socket OPTIONS (host 'h', port 1)", "its columns are parsed from text"),
        ("CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'x') SLACK 'long'", "slack must be a length of time"),
        ("CREATE RELATION r (a INT) USING csv OPTIONS (path 'x') KEY (b)", "no column 'b' to be its key"),
        ("KEEP sale WINDOW '1 minute' EVERY '1 second'", "did you mean sales"),
        ("KEEP sales WINDOW '1 minute' EVERY '7 seconds'", "whole multiple"),
        ("KEEP sales WINDOW '1 minute' EVERY 7", "both be durations"),
        ("EXPLAIN ANALYZE total", "there is no query total"),
        ("ATTACH w PATH 'nowhere'", "no window store in nowhere"),
        ("SNAPSHOT SELECT item FROM sales [NOW]", "sales is not kept"),
        ("SET isolation = high", "there is no isolation level 'high'"),
        ("SET join = lazy-hash", "needs the interval of its re-executions"),
        ("CREATE STREAM s USING rate RATE -1", "rate must be a number of at least 0"),
        ("CREATE STREAM s USING rate DISTINCT (item 5)", "s has no column 'item'"),
        ("DESCRIBE sale", "did you mean sales"),
        ("SET strategie = auto", "did you mean strategy"),
        (f"CREATE QUERY q AS {TOTALS} INTO postgres (url 'x')", "needs the option table"),
        (f"CREATE QUERY q AS {TOTALS} INTO console (mode upsert)", "write MODE after the options"),
        (f"CREATE QUERY q AS {TOTALS} INTO kafka (kafka.bootstrap.servers 'x', topic 't') MODE net", "not net"),
        (f"CREATE QUERY q AS {TOTALS} INTO console KEY (zzz)", "'zzz' is not in the answer"),
        (f"CREATE QUERY q AS {TOTALS} INTO console TRIGGER 'soon'", "trigger must be"),
        ("CREATE QUERY q AS SELECT item FROM sales [NOW] INTO console MODE upsert", "upsert needs rows with a key"),
        ("CREATE QUERY q AS SELECT item FROM beating [NOW] INTO console TRIGGER 'once'", "has a heartbeat"),
    ],
)
def test_errors_name_the_problem(text: str, message: str) -> None:
    beating = "CREATE STREAM beating (ts TIMESTAMP, item INT) USING csv OPTIONS (path 'x') HEARTBEAT '1 second';"
    with pytest.raises(SashError, match=message):
        reply(session(SALES + beating), text)


def test_settings_hold_for_what_follows() -> None:
    on = session(SALES)
    assert reply(on, "SET trigger = '1 second'") == MessageReply("Set trigger to 1 second")
    assert on.settings.trigger == "1 second"
    reply(on, "SET trigger = none")
    assert on.settings.trigger is None
    with pytest.raises(StrategyError):
        reply(on, "SET strategy = wild")
    with pytest.raises(OptionError, match=r"only in sash\.testing\.replay"):
        reply(on, "SET strategy = clock-triggered")
    with pytest.raises(OptionError, match=r"only in sash\.testing\.replay"):
        reply(on, "CREATE QUERY q AS SELECT COUNT(*) FROM sales [NOW] INTO noop STRATEGY clock-triggered")
    reply(on, "SET tau = '5 seconds'")
    reply(on, "SET join = lazy-hash")
    assert on.settings.options.options.tau == 5_000_000
    with pytest.raises(StrategyError, match="needs the interval"):
        reply(on, "SET tau = none")
    reply(on, "SET isolation = serial")
    assert on.settings.isolation == "serial"
    reply(on, "SET spark.sql.ansi.enabled = true")


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        ("rate", "timestamp TIMESTAMP, value BIGINT"),
        ("generator", "ts TIMESTAMP, store_id INT, item_id INT, price DOUBLE, quantity INT"),
        ("socket OPTIONS (host 'h', port 1)", "ts TIMESTAMP, value STRING"),
    ],
)
def test_sources_with_fixed_columns(source: str, columns: str) -> None:
    on = session(f"CREATE STREAM s USING {source}")
    assert reply(on, "SHOW STREAMS").rows[0][2] == columns


@pytest.mark.spark
def test_settings_that_spark_refuses(spark: SparkSession) -> None:
    on = Session.on(Engine(spark))
    with pytest.raises(OptionError, match=r"SET spark.executor.memory: Cannot modify the value of the Spark config"):
        reply(on, "SET spark.executor.memory = '1g'")
    with pytest.raises(OptionError, match=r"SET spark.sql.shuffle.partitions: The value 'banana' .* is invalid"):
        reply(on, "SET spark.sql.shuffle.partitions = 'banana'")
