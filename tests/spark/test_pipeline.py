from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest

from tests.catalog import NAME, catalog_settings

pytestmark = pytest.mark.spark

COPY = """
import os

from pyspark import pipelines as dp
from pyspark.sql import SparkSession


@dp.materialized_view(name="copied")
def copied():
    return SparkSession.active().read.table(os.environ["SASH_PIPELINE_TABLE"])
"""
"""The rows of the table that the auto-CDC flow merges into, which is in the memory of the driver, in files."""

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline"


def test_the_example_keeps_an_answer_in_a_declarative_pipeline(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="pipelines run over Spark Connect: pip install 'sash[connect]'")
    shutil.copytree(EXAMPLE, tmp_path / "project")
    spec = tmp_path / "project" / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("/tmp/sash-pipeline", str(tmp_path)))
    (tmp_path / "sales").mkdir()
    rows = ("12:00:00,1,2.5", "12:00:01,2,1.0", "12:00:02,1,0.5", "12:59:59,2,4.0", "13:00:01,4,4.0", "13:00:02,5,1.0")
    (tmp_path / "sales" / "1.csv").write_text("".join(f"2026-01-01T{row}\n" for row in rows))
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SASH_PIPELINE": str(tmp_path),
    }
    if catalog_settings():
        (tmp_path / "conf").mkdir()
        settings = "".join(f"{name} {value}\n" for name, value in catalog_settings().items())
        (tmp_path / "conf" / "spark-defaults.conf").write_text(settings)
        environment |= {"SPARK_CONF_DIR": str(tmp_path / "conf"), "SASH_PIPELINE_TABLE": f"{NAME}.db.totals"}
        (tmp_path / "project" / "transformations" / "copied.py").write_text(COPY)
    command = [str(home / "bin" / "spark-pipelines"), "run", "--remote", "local[2]"]
    done = subprocess.run(
        command, cwd=tmp_path / "project", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    tables = tmp_path / "project" / "spark-warehouse"
    for name in ("totals", "copied") if catalog_settings() else ("totals",):
        answer = ds.dataset(tables / name, format="parquet").to_table(["item_id", "n", "total"]).to_pylist()
        assert sorted(tuple(row.values()) for row in answer) == [(1, 1, 0.5), (2, 1, 4.0), (4, 1, 4.0)]
    assert (tmp_path / "storage" / "sash" / "total_changes" / "sash-fingerprint.json").exists()
