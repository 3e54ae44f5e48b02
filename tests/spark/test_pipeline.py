from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest

pytestmark = pytest.mark.spark

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
    command = [str(home / "bin" / "spark-pipelines"), "run", "--remote", "local[2]"]
    done = subprocess.run(
        command, cwd=tmp_path / "project", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    tables = tmp_path / "project" / "spark-warehouse"
    answer = ds.dataset(tables / "totals", format="parquet").to_table().to_pylist()
    assert sorted(tuple(row.values()) for row in answer) == [(1, 1, 0.5), (2, 1, 4.0), (4, 1, 4.0)]
    assert (tmp_path / "storage" / "sash" / "total_changes" / "sash-fingerprint.json").exists()
