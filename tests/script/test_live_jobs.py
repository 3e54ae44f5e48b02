from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from sash.errors import CatalogError, OptionError, SashError, SinkError
from sash.script.groups import job_names, trigger_key
from sash.script.reader import read_script
from sash.script.session import Session
from tests.script.fake_jobs import SALES, TOTALS, FakeBackend, FakeEngine, fake_session, query


def execute(session: Session, text: str) -> Any:
    (statement,) = read_script(text)
    return session.execute(statement)


def test_the_queries_of_a_script_are_started_together() -> None:
    session, engine = fake_session(SALES + query("a") + query("b", "MODE net"))
    assert engine.log == [], "only when the script ends"
    session.launch()
    session.launch()
    assert engine.log == ["start job: a, b"]
    assert session.backend.jobs().keys() == {"job"}
    assert (session.backend.job_of("A"), session.backend.job_of("c")) == ("job", None)


def test_unequal_triggers_make_jobs_of_their_own() -> None:
    text = SALES + query("a", "TRIGGER '1 second'") + query("b") + query("c", "TRIGGER '1000 milliseconds'")
    session, engine = fake_session(text + "SET trigger = 'available_now';" + query("d"))
    session.launch()
    assert engine.log == ["start job: a, c", "start job-continuous: b", "start job-available_now: d"]
    assert [job.trigger for job in engine.made] == ["1 second", None, "available_now"]


def test_a_separate_query_is_no_part_of_the_job() -> None:
    session, engine = fake_session(SALES + query("a") + query("b", "SEPARATE"))
    session.launch()
    assert engine.log == ["start job: a", "start separate b into noop"]
    assert session.backend.job_of("b") is None
    execute(session, "DROP QUERY b")
    assert engine.log[-1] == "stop b"
    with pytest.raises(CatalogError, match="not part of a running job"):
        session.backend.resume_query("b")


def test_a_query_whose_job_cannot_be_started_is_dropped_again() -> None:
    refused = "CREATE QUERY bad AS SELECT 'refused' AS x FROM sales [NOW] INTO noop;"
    session, engine = fake_session(SALES + refused)
    with pytest.raises(SinkError, match="cannot be opened"):
        session.launch()
    assert session.queries == {}
    session.launch()
    for statement in read_script(query("a") + query("s", "SEPARATE")):
        session.execute(statement)
    session.launch()
    execute(session, refused)
    execute(session, "ALTER QUERY a SET MODE net")
    with pytest.raises(SinkError, match="cannot be opened"):
        session.launch()
    assert session.queries.keys() == {"a", "s"}
    assert session.queries["a"].mode is None, "as it was"
    assert engine.log == ["start job: a", "start separate s into noop", "start job: a"], "the old job runs again"
    job: Any = session.backend.jobs()["job"]
    assert job.active
    for name in ("one", "two"):
        execute(session, f"CREATE QUERY {name} AS {TOTALS} INTO memory")
    with pytest.raises(CatalogError, match="two would write to the same target") as caught:
        session.launch()
    assert caught.value.query == "two"
    assert session.queries.keys() == {"a", "s"}


def test_clauses_reach_the_job() -> None:
    clauses = "MODE upsert KEY (item) ON ERROR SUSPEND MAX STATE '1 GB' OUTBOX '64 MB' WHEN COMPLETE BACKFILL"
    session, engine = fake_session(SALES + query("a", clauses))
    session.launch()
    assert engine.made[-1].queries["a"] == {
        "sink": "noop",
        "sql": TOTALS,
        "mode": "upsert",
        "key": ("item",),
        "on_error": "suspend",
        "max_state": "1 GB",
        "outbox": "64 MB",
        "when_complete": True,
        "backfill": True,
    }


@pytest.mark.parametrize("statement", ["SNAPSHOT SELECT item FROM sales [NOW]", "EXPLAIN ANALYZE a", "RESUME QUERY a"])
def test_statements_that_need_running_queries_launch_them(statement: str) -> None:
    session, engine = fake_session(SALES + "KEEP sales WINDOW '60 seconds' EVERY '1 second';" + query("a"))
    execute(session, statement)
    assert engine.log == ["start job: a, window sales"]


def test_kept_windows_are_part_of_the_job(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keep = "KEEP sales WINDOW '60 seconds' EVERY '1 second';"
    session, engine = fake_session(SALES + query("a") + keep, FakeEngine(str(tmp_path)))
    assert session.backend.keeping("sales") is None
    session.launch()
    assert engine.log == ["start job: a, window sales"]
    assert session.backend.keeping("Sales") is not None
    execute(session, "DROP WINDOW sales")
    assert engine.log[-1] == "apply job: a"
    (tmp_path / "windows" / "sales" / "checkpoint").mkdir(parents=True)
    with caplog.at_level(logging.WARNING, "sash"):
        execute(session, keep)
    session.launch()
    assert engine.log[-1] == "keep sales alone", "it goes on where an earlier version kept it"
    assert "goes on in its own checkpoint" in caplog.text
    assert session.backend.separate().keys() == {"window sales"}
    execute(session, "DROP WINDOW sales")
    assert engine.log[-1] == "stop sales"


def test_other_statements_do_not() -> None:
    session, engine = fake_session(SALES + query("a") + "SHOW QUERIES; SHOW JOBS; DESCRIBE a; EXPLAIN JOB;")
    assert engine.log == []
    assert execute(session, "EXPLAIN JOB").text == "dataflow of a"
    assert execute(session, "SHOW QUERIES").rows[0][:4] == ("a", None, "noop", "not started")


def test_a_query_that_is_created_later_joins_the_running_job() -> None:
    session, engine = fake_session(SALES + query("a"))
    session.launch()
    execute(session, query("b"))
    session.launch()
    assert engine.log == ["start job: a", "apply job: a, b"]
    execute(session, "DROP QUERY a")
    assert engine.log[-1] == "apply job: b", "at once"
    execute(session, "DROP QUERY b")
    assert engine.log[-1] == "stop job"
    assert session.backend.jobs() == {}
    execute(session, query("a"))
    session.launch()
    assert engine.log[-1] == "start job: a"


def test_a_query_that_is_dropped_before_the_launch_is_never_started() -> None:
    session, engine = fake_session(SALES + query("a") + query("b") + "DROP QUERY a;")
    session.launch()
    assert engine.log == ["start job: b"]


def test_a_query_is_altered() -> None:
    session, engine = fake_session(SALES + query("a") + query("b"))
    session.launch()
    execute(session, "ALTER QUERY A AS SELECT item FROM sales [NOW]")
    execute(session, "ALTER QUERY b SET TRIGGER '1 second' MODE net")
    session.launch()
    assert engine.log[1:] == ["apply job: a", "start job-1000ms: b"]
    assert engine.made[-2].queries["a"]["sql"] == "SELECT item FROM sales [NOW]"
    assert engine.made[-1].queries["b"]["mode"] == "net"
    with pytest.raises(CatalogError, match="there is no query c; there are a, b"):
        execute(session, "ALTER QUERY c SET MODE net")
    with pytest.raises(SashError, match="no column zzz"):
        execute(session, "ALTER QUERY a AS SELECT zzz FROM sales [NOW]")
    assert session.queries["a"].query.sql == "SELECT item FROM sales [NOW]", "as before the error"


def test_a_parked_query_is_resumed() -> None:
    session, _engine = fake_session(SALES + query("a", "ON ERROR SUSPEND"))
    session.launch()
    handle: Any = session.backend.running("a")
    handle.state = "parked: division by zero"
    assert execute(session, "SHOW QUERIES").rows[0][3] == "parked: division by zero"
    assert execute(session, "SHOW JOBS").rows[0][:4] == ("job", "running", 1, 1)
    assert execute(session, "RESUME QUERY a").text == "Resumed query a"
    assert handle.resumed == 1


def test_show_queries_has_what_each_takes() -> None:
    session, _ = fake_session(SALES + query("a"))
    session.launch()
    handle: Any = session.backend.running("a")
    handle.numbers = {
        "batch": 7,
        "total_rows_in": 100,
        "total_rows_out": 20,
        "total_late": 1,
        "share": 0.254,
        "state_bytes": 4096,
        "watermark": 1_767_225_600_000_000,
        "lag_seconds": 1.5,
    }
    shown = execute(session, "SHOW QUERIES")
    assert dict(zip(shown.columns, shown.rows[0], strict=True)) == {
        "query": "a",
        "job": "job",
        "sink": "noop",
        "state": "running",
        "batch": 7,
        "rows in": 100,
        "rows out": 20,
        "late": 1,
        "share": "25%",
        "state bytes": 4096,
        "watermark": "2026-01-01 00:00:00.000",
        "lag seconds": 1.5,
    }
    handle.numbers["lag_seconds"] = 27_859_300.25
    assert execute(session, "SHOW QUERIES").rows[0][-1] == 27_859_300


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("SEPARATE ON ERROR SUSPEND", "ON ERROR SUSPEND is for a query of a job"),
        ("SEPARATE MAX STATE '1 GB'", "MAX STATE is for a query of a job"),
        ("SEPARATE BACKFILL", "BACKFILL is for a query of a job"),
        ("MAX STATE 'big'", "MAX STATE must be a size such as"),
        ("MAX STATE '0 GB'", "MAX STATE must be a size such as"),
        ("OUTBOX '1 MB'", "add ON ERROR SUSPEND or MAX STATE"),
        ("OUTBOX 'x' ON ERROR SUSPEND", "OUTBOX must be a size"),
    ],
)
def test_clauses_that_do_not_fit_are_refused(clauses: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        fake_session(SALES + query("a", clauses))


@pytest.mark.parametrize("name", ["job", "Job", "`job-1000ms`"])
def test_a_separate_query_has_not_the_folder_of_a_job(name: str) -> None:
    with pytest.raises(OptionError, match="is that of a job's folder"):
        fake_session(SALES + query(name, "SEPARATE"))
    fake_session(SALES + query(name))


def test_a_query_with_a_checkpoint_of_its_own_stays_separate(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "sash-fingerprint.json").write_text("{}")
    with caplog.at_level(logging.WARNING, "sash"):
        session, engine = fake_session(SALES + query("a") + query("b"), FakeEngine(str(tmp_path)))
        session.launch()
    assert engine.log == ["start job: b", "start separate a into noop"]
    assert f"query a goes on in its own checkpoint {tmp_path}/a" in caplog.text
    with pytest.raises(CatalogError, match="whose checkpoint fits its text only"):
        execute(session, "ALTER QUERY a SET MODE net")


def test_another_script_takes_over_the_running_jobs() -> None:
    before, engine = fake_session(SALES + query("a") + query("s", "SEPARATE") + query("t", "SEPARATE"))
    before.launch()
    execute(before, query("old", "TRIGGER '9 seconds'"))
    before.launch()
    changed = (
        query("s", "SEPARATE")
        + query("t", "SEPARATE MODE net")
        + query("a")
        + query("b")
        + query("c", "TRIGGER '1 second'")
    )
    after, _ = fake_session(SALES + changed, engine)
    old, new = before.backend, after.backend
    assert isinstance(old, FakeBackend)
    assert isinstance(new, FakeBackend)
    started = len(engine.log)
    new.session_jobs.adopt(old.session_jobs)
    after.launch()
    assert engine.log[started:] == [
        "stop t",
        "apply job: a, b",
        "apply job-9000ms: c",
        "start separate t into noop",
    ]


def test_a_script_that_cannot_take_over_leaves_the_queries_that_run() -> None:
    before, engine = fake_session(SALES + query("a") + query("b"))
    before.launch()
    after, _ = fake_session(SALES + query("b") + query("c").replace("item,", "item AS refused,"), engine)
    assert isinstance(before.backend, FakeBackend)
    assert isinstance(after.backend, FakeBackend)
    after.backend.session_jobs.adopt(before.backend.session_jobs)
    with pytest.raises(SinkError, match="cannot be opened"):
        after.launch()
    assert engine.log == ["start job: a, b", "start job: a, b"]
    assert [row[0] for row in execute(after, "SHOW QUERIES").rows] == ["a", "b"]
    assert after.backend.session_jobs.started["job"].active


def test_a_job_goes_on_in_the_folder_of_its_queries_whatever_its_trigger(tmp_path: Path) -> None:
    for name, queries in (("job", ["a", "b"]), ("job-1000ms", ["c"])):
        (tmp_path / name / "g1").mkdir(parents=True)
        (tmp_path / name / "CURRENT").write_text("g1")
        manifest = {"queries": [{"name": query} for query in queries]}
        (tmp_path / name / "g1" / "sash-job.json").write_text(json.dumps(manifest))
    text = query("C") + query("b", "TRIGGER '1 second'") + query("d", "TRIGGER '2 seconds'")
    session, engine = fake_session(SALES + text, FakeEngine(str(tmp_path)))
    session.launch()
    assert engine.log == ["start job-1000ms: C", "start job: b", "start job-2000ms: d"]


def test_a_script_with_other_triggers_takes_over_the_running_job() -> None:
    before, engine = fake_session(SALES + query("a") + query("b"))
    before.launch()
    after, _ = fake_session(SALES + query("a", "TRIGGER '1 second'"), engine)
    assert isinstance(before.backend, FakeBackend)
    assert isinstance(after.backend, FakeBackend)
    after.backend.session_jobs.adopt(before.backend.session_jobs)
    after.launch()
    assert engine.log == ["start job: a, b", "apply job: a"]
    assert engine.made[-1].trigger == "1 second"


def test_equal_triggers_have_equal_keys() -> None:
    triggers = (None, "once", "available_now", "availableNow", "1 minute", "60 s", "1500 ms")
    keys = ["continuous", "once", "available_now", "available_now", "60000ms", "60000ms", "1500ms"]
    assert [trigger_key(trigger) for trigger in triggers] == keys


def test_names_of_jobs() -> None:
    assert job_names({"continuous": ["a"]}, {}) == {"continuous": "job"}
    assert job_names({"once": ["a"]}, {"job": ["z"]}) == {"once": "job"}, "a job whose queries have all changed"
    stored = {"job": ["z"], "job-once": ["y"]}
    assert job_names({"once": ["a"], "continuous": ["y"]}, stored) == {"once": "job", "continuous": "job-once"}
    assert job_names({"once": ["a"]}, stored, taken=["job", "job-once", "job-once-2"]) == {"once": "job-once-3"}
