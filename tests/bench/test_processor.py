from __future__ import annotations

import subprocess
import sys
import time

from bench.processor import ProcessorTime

WORK = "import time\nwhile time.process_time() < 0.3: pass"


def test_the_time_of_a_child_that_has_ended_is_counted() -> None:
    with ProcessorTime() as processor:
        began = time.time()
        subprocess.run([sys.executable, "-c", f"{WORK}\ntime.sleep(0.3)"], check=True)
    assert processor.seconds_since(began - 1) >= 0.2
    assert processor.seconds_since(time.time()) == 0
