"""The whole story, with a real driver that is really killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sash.cli.demo.command import INTERRUPTED, run_story
from sash.cli.demo.processes import descendants
from sash.cli.demo.story import Pace
from tests.cli.command import QUICK, ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUICK_PACE = Pace(sliding=1, alert=0, warning=0, down=1, resumed=0)


def test_the_story_is_right_although_its_driver_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK["JDK_JAVA_OPTIONS"])
    before = set(descendants(os.getpid()))

    code = run_story(plain=True, pace=QUICK_PACE)

    text = capsys.readouterr().out
    assert code == 0
    assert re.search(
        r"^Act 1: the hopping window was wrong \d+% of the time, .* the sliding window never\.$", text, re.MULTILINE
    )
    assert re.search(r"^Act 2: the pump's alert is of .*, 5\.000000 s after its last reading\.$", text, re.MULTILINE)
    killed = re.search(
        r"^\$ kill -KILL (\d+) \d+ \.\.\.   gone: the driver, its JVM and its workers, \d+ processes$",
        text,
        re.MULTILINE,
    )
    drivers = list(dict.fromkeys(re.findall(r"driver (\d+) (?:starting|running)", text)))
    assert killed
    assert len(drivers) == 2
    assert killed[1] == drivers[0]
    assert re.search(
        r"^The new driver has caught up: the oven's alert is of .*, when no driver was answering$", text, re.MULTILINE
    )
    readings, unattended = _numbers(r"from the ([\d,]+) readings in the files, ([\d,]+) of which", text)
    (instants,) = _numbers(r"^They are equal at each of ([\d,]+) instants", text)
    assert 0 < unattended < readings < instants
    assert text.index("Next, type:") > text.index("They are equal")
    assert "\x1b" not in text
    assert "Physical plan" not in text
    assert list(tmp_path.iterdir()) == []
    assert set(descendants(os.getpid())) <= before


def _numbers(pattern: str, text: str) -> list[int]:
    found = re.search(pattern, text, re.MULTILINE)
    assert found, text
    return [int(number.replace(",", "")) for number in found.groups()]


@pytest.mark.parametrize("moment", ["0 readings", "Spark is starting", "Spark has started"])
def test_an_interrupt_leaves_no_process_and_no_file(tmp_path: Path, moment: str) -> None:
    environment = {**os.environ, **QUICK, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "sash.cli", "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    ) as demo:  # fmt: skip
        assert demo.stdout is not None
        assert demo.stderr is not None
        assert any(moment in line for line in demo.stdout)
        running = descendants(demo.pid)
        demo.send_signal(signal.SIGINT)
        demo.send_signal(signal.SIGINT)
        rest, errors = demo.communicate(timeout=60)
    assert demo.returncode == INTERRUPTED
    assert (rest.splitlines()[-1], errors) == ("Stopped.", "")
    assert running
    assert not [pid for pid in running if _is_running(pid)]
    assert list(tmp_path.iterdir()) == []


def _is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
