"""Running answers in this process, and what notebooks show of engines, queries and answers."""

from __future__ import annotations

import datetime
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.errors import OptionError
from tests.spark.files import batches_of, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark

SQL = "SELECT k, COUNT(*) AS n, MAX(ts) AS last FROM s [RANGE UNBOUNDED] GROUP BY k ORDER BY n DESC, k LIMIT 3"
TIMES = "SELECT v, timestamp_micros(ts) AS at, '<b>' AS text FROM s [RANGE 1 HOUR] WHERE v > 8"


def test_the_current_answer(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(2)
    engine = file_engine(spark, tmp_path / "in")
    engine.checkpoint = str(tmp_path / "c")
    first, second = batches_of(rows)
    write_batch(tmp_path / "in", 0, first)
    with engine.sql(SQL).live(trigger="100 milliseconds", name="top") as answer:
        for known in (first, rows):
            answer.process_all_available()
            counts: dict[str, int] = {}
            for row in known[:-1]:
                counts[row["k"]] = counts.get(row["k"], 0) + 1
            best = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
            assert [(row["k"], row["n"]) for row in answer.rows()] == best
            assert answer.to_pandas()["n"].tolist() == [count for _, count in best]
            assert list(engine.running) == ["top"]
            if known is first:
                write_batch(tmp_path / "in", 1, second)
        assert "top: running; last change at" in str(answer)
        assert str(answer.running) == "RunningQuery('top', running)"
        assert "<th>rows_in</th>" in answer.running._repr_html_()
        assert repr(engine) == "Engine(streams: s; relations: none; queries: top)"
    assert not answer.running.active
    assert "top: stopped; " in str(answer)
    assert not (tmp_path / "c").exists()


def test_times_are_in_utc_and_everything_is_escaped(spark: SparkSession, tmp_path: Path) -> None:
    write_batch(tmp_path / "in", 0, [{"ts": 10**15, "k": "a", "v": 9}, {"ts": 10**15 + 1, "k": "a", "v": 1}])
    engine = file_engine(spark, tmp_path / "in")
    query = engine.sql(TIMES)
    answer = query.live(trigger="available_now")
    answer.running.await_termination()
    at = datetime.datetime(2001, 9, 9, 1, 46, 40, tzinfo=datetime.UTC)
    assert answer.rows() == [{"v": 9, "at": at, "text": "<b>"}]
    assert answer.to_arrow().to_pylist() == answer.rows()
    for shown in (answer, query, engine):
        assert "<b>" not in shown._repr_html_()
    assert "<td>&lt;b&gt;</td>" in answer._repr_html_()
    assert "v &gt; 8" in query._repr_html_()
    assert "<td>ts BIGINT, k STRING, v BIGINT</td>" in engine._repr_html_()
    assert repr(query).startswith(f"Query({TIMES!r}, columns: v BIGINT, at TIMESTAMP, text STRING)")
    answer.stop()


class Notebook:
    """What IPython offers to code in a kernel: a display that can be updated."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.updated = threading.Event()
        self.module = SimpleNamespace(HTML=str, display=self.display)

    def display(self, html: str, display_id: bool) -> Notebook:
        assert display_id
        self.shown.append(html)
        return self

    def update(self, html: str) -> None:
        self.shown.append(html)
        self.updated.set()


def test_a_notebook_shows_the_answer_while_it_changes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook()
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.module)  # type: ignore[arg-type]
    engine = file_engine(spark, tmp_path / "in")
    write_batch(tmp_path / "in", 0, made_up_rows(1))
    with engine.sql(SQL).live(trigger="100 milliseconds") as answer:
        answer._ipython_display_()
        assert "<th>k</th>" in notebook.shown[0]
        answer.process_all_available()
        assert notebook.updated.wait(60)
    shown = [thread for thread in threading.enumerate() if thread.name == "sash-live-answer"]
    for thread in shown:
        thread.join(60)
    assert "stopped" in notebook.shown[-1]
    assert all(row["k"] in notebook.shown[-1] for row in answer.rows())


def test_a_terminal_shows_the_answer(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = file_engine(spark, tmp_path / "in")
    write_batch(tmp_path / "in", 0, made_up_rows(1))
    answer: Any = engine.sql(SQL).live(trigger="available_now")
    answer.running.await_termination()
    answer.show()
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()[1:4]] == [row["k"] for row in answer.rows()]
    with pytest.raises(OptionError, match="seconds must be a number of at least 0, not -1"):
        answer.show(seconds=-1)
    answer.stop()
