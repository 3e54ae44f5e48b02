from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sash.errors import OptionError
from sash.window_store.options import SnapshotOptions
from tests.window_store.feeding import Fed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"isolation": "snapshot"},
            "no isolation level 'snapshot'; use one of latest, ttu, latest-window-serializable",
        ),
        ({"access": "index"}, "no access path 'index'; use one of auto, WS, SS, IS, ISS"),
        ({"reads": "remote"}, "no reads option 'remote'; use one of local, spark"),
        ({"timeout": -1.0}, "timeout must be a number of at least 0, not -1"),
        ({"every": 0}, "every must be at least 1, not 0"),
    ],
)
def test_wrong_values_raise_option_errors(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        SnapshotOptions(**options)


def test_spark_reads_need_a_session(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.feed(20)
    with pytest.raises(OptionError, match="needs a Spark session"):
        fed.snapshot("SELECT COUNT(*) AS n FROM s", reads="spark")
    fed.close()


def test_options_are_shown_in_the_plan(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.feed(50)
    (answer,) = fed.snapshot("SELECT COUNT(*) AS n FROM s", isolation="serial", priority=3)
    assert answer.explain().splitlines()[-1] == "isolation serial, priority 3"
    with fed.periodic("SELECT COUNT(*) AS n FROM s", every=2) as periodic:
        assert periodic.explain().splitlines()[-1] == "every 2 updates, isolation ttu, priority 0"
        assert next(periodic)[0].explain() == periodic.explain()
    fed.close()
