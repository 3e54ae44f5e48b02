"""`sash init`: a folder with a job, a generator of data for it, and tests of its queries."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from sash.errors import OptionError

FILES = ("job.sql", "generate.py", "test_job.py")

_NEXT = """Created {folder} with {files}. Next:
  cd {folder}
  pip install pytest && pytest          test the queries, without Spark
  python generate.py --seconds 60 &     write orders for a minute
  sash run job.sql                      run the job until Ctrl-C; answers are in the folder answers"""


def init(folder: Path) -> str:
    """Write the files, unless one of them exists; return what to do next."""
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise OptionError(f"{folder} has a {there[0]} already: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / name).write_text(files("sash.cli").joinpath("template", name).read_text(encoding="utf-8"))
    return _NEXT.format(folder=folder, files=", ".join(FILES))
