"""Try the wheel as a user with Kafka would: install it, and follow docs/kafka.md until the answer changes.

python scripts/try_kafka_page.py: builds the wheel of this tree, installs it without its dependencies into an empty environment, which
takes these from the environment that runs this, starts a broker, runs the job of the page with the installed `sash`, and sends
records until the topic with the answer has changed. Part of a release; takes a minute or two.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from pathlib import Path

HOME = Path(__file__).parents[1]
sys.path.insert(0, str(HOME))
_PATIENCE = 300
_ALONE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""The environment of programs that must not find the sources of this tree."""


def installed(folder: Path) -> Path:
    """Build the wheel, install it into an environment of its own, and return the installed command."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(HOME)]
    subprocess.run(build, check=True)
    (wheel,) = folder.glob("sash-*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True)
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(asked, capture_output=True, text=True, check=True, env=_ALONE).stdout.strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (folder / "venv" / "kafka").symlink_to(Path(sys.prefix, "kafka"))
    shown = subprocess.run(
        [python, "-c", "import sash; print(sash.__file__)"], capture_output=True, text=True, check=True, env=_ALONE
    )
    if not shown.stdout.startswith(str(packages)):
        raise SystemExit(f"the installed Sash is not the one of the wheel: {shown.stdout}")
    return folder / "venv" / "bin" / "sash"


def follow(sash: Path, folder: Path) -> None:
    """Run the job of the page, and send records until its answer has changed."""
    from tests.kafka import broker

    page = (HOME / "docs" / "kafka.md").read_text()
    (job,) = re.findall(r'```sql title="job.sql"\n(.*?)```', page, re.DOTALL)
    records = re.findall(r"^\{.*\}$", page, re.MULTILINE)
    with broker() as kafka, (folder / "log").open("wb") as log:
        kafka.create_topic("clicks", 1)
        kafka.create_topic("popular", 1, cleanup_policy="compact")
        kafka.produce("clicks", [{"value": text} for text in records])
        (folder / "job.sql").write_text(job.replace("localhost:9092", kafka.servers))
        begun = time.monotonic()
        command = [sash, "run", "job.sql", "--with", "kafka", "--checkpoint", "state"]
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=_ALONE)
        try:
            first = answer(kafka, running, folder, {})
            print(f"first answer after {time.monotonic() - begun:.0f} s: {first}")
            later = {"ts": "2026-01-31T12:05:00Z", "page": "/later"}
            end = {"ts": "2026-01-31T12:05:01Z", "page": "/end"}
            kafka.produce("clicks", [{"value": json.dumps(one)} for one in (later, end)])
            print(f"and it changes: {answer(kafka, running, folder, first)}")
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(60)


def answer(kafka: object, running: subprocess.Popen[bytes], folder: Path, before: dict[str, int]) -> dict[str, int]:
    """The answer in the topic, when it is another one than before."""
    for _ in range(_PATIENCE):
        if running.poll() is not None:
            raise SystemExit(f"the job has ended:\n{(folder / 'log').read_text()}")
        latest = {record.key(): record.value() for record in kafka.records("popular")}  # type: ignore[attr-defined]
        found = {row["page"]: row["n"] for value in latest.values() if value is not None and (row := json.loads(value))}
        if found != before:
            return found
        time.sleep(1)
    raise SystemExit(f"the answer does not change:\n{(folder / 'log').read_text()}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        follow(installed(Path(made)), Path(made))
