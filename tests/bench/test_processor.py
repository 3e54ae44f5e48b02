from __future__ import annotations

import subprocess
import sys

from bench.processor import ProcessorTime

WORK = """
import time
while time.process_time() < 0.3:
    pass
print("worked", flush=True)
input()
"""


def test_the_time_of_a_child_that_has_ended_is_counted() -> None:
    processor = ProcessorTime()
    processor.sample()
    with subprocess.Popen([sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"worked\n"
        processor.sample()
        child.communicate(b"\n")
    processor.sample()
    assert processor.seconds_since(0) >= 0.25
    assert processor.seconds_since(float("inf")) == 0
