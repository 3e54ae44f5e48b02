"""The programs in examples/: each runs to its end and prints the expected text."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[1] / "examples"

EXPECTED = {
    "quickstart": ["|  +|", "|  -|", "pen"],
    "network_monitoring": [
        "top talkers of link a:\n  10.0.0.1 ",
        "became so after link b fell silent, such as\n  10.0.0.",
    ],
    "retail": ["after batch 2: apples", "180 sales read, 0 of them too late"],
    "fraud": [
        "MultiJoin",
        "12:09 ALARM account 2: paid 900 in FR, login from BR",
        "12:15 over  account 2: paid 900 in FR, login from BR",
    ],
    "snapshots": ["of the last 10 seconds: 10, of the last 2 minutes: 120", "/page2", "0 restarts"],
}


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*EXPECTED, "own_tests"}


@pytest.mark.spark
@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_runs(name: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    output = capsys.readouterr().out
    for words in EXPECTED[name]:
        assert words in output


def test_own_tests_pass() -> None:
    code = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLES), str(EXAMPLES / "own_tests.py")])
    assert code == pytest.ExitCode.OK
