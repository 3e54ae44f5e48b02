"""Peak memory is that of all processes; memory that a process shares with its parent counts once."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

psutil = pytest.importorskip("psutil")

from bench.memory import PeakMemory  # noqa: E402

_CHILD = "held = bytearray(b'x' * (200 << 20)); print(1, flush=True); input()"
_SHARING = """
import ctypes, os, signal, sys
import psutil
from bench.memory import PeakMemory

held = bytearray(b"x" * (200 << 20))
libc = ctypes.CDLL(None, use_errno=True)
stack = ctypes.create_string_buffer(1 << 16)
top = ctypes.c_void_p(ctypes.addressof(stack) + len(stack) - 64)
# A process that shares our memory and does nothing, as one does between its fork and its command.
child = libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), top, 0x100 | signal.SIGCHLD, None)
assert child > 0
try:
    assert [each.pid for each in psutil.Process().children()] == [child]
    with PeakMemory() as memory:
        pass
    print(memory.peak / psutil.Process().memory_info().rss)
finally:
    os.kill(child, signal.SIGKILL)
"""


def test_other_processes_count() -> None:
    before = _peak()
    with subprocess.Popen([sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        during = _peak()
        child.communicate(b"\n")
    assert during - before > 150 << 20


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "clone"), reason="processes are made so on Linux")
def test_memory_that_a_new_process_shares_with_its_parent_counts_once() -> None:
    ran = subprocess.run([sys.executable, "-c", _SHARING], capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr
    assert 0.9 < float(ran.stdout) < 1.3


def _peak() -> int:
    with PeakMemory() as memory:
        pass
    return memory.peak
