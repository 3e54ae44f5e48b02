from __future__ import annotations

import subprocess
import sys

from sash.cli.demo.processes import descendants, kill_tree

CHILD = "import sys; print('there', flush=True); sys.stdin.read()"
PARENT = (
    "import subprocess, sys;"
    f"child = subprocess.Popen([sys.executable, '-c', {CHILD!r}], stdin=subprocess.PIPE, start_new_session=True);"
    "child.wait()"
)


def test_a_process_and_all_below_it_are_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "there\n"
        (child,) = descendants(parent.pid)
        assert kill_tree(parent.pid) == [parent.pid, child]
        assert parent.wait() == -9
    assert descendants(parent.pid) == []
