"""The end of the story: the comparison with a recomputation, and what to type next."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

from sash.cli.demo.picture import clock_time
from sash.cli.demo.story import Ending


def verdict_lines(ending: Ending) -> list[str]:
    """The result of the comparison."""
    compared, differences = ending.comparison, ending.comparison.differences
    first = (
        f"Act 3: all answers were recomputed from the {compared.readings:,} readings in the files, "
        f"{ending.unattended:,} of which arrived while no driver answered."
    )
    if not differences:
        return [first, f"They are equal at each of {compared.instants:,} instants: every change there was."]
    at, answer, truth = differences[0]
    return [
        first,
        f"They DIFFER at {len(differences):,} of {compared.instants:,} instants, first at {clock_time(at)}:",
        f"  the job answered {answer}",
        f"  recomputed       {truth}",
    ]


def next_steps(program: str) -> list[str]:
    """What to type next; `program` is the path of the command that runs."""
    activate = Path(program).parent / "activate"
    return [
        "",
        "Next, type:",
        *([f"  source {activate}"] if shutil.which("sash") is None and activate.exists() else []),
        "  sash sql               ask your own questions, such as",
        "      CREATE STREAM sales USING generator OPTIONS (rate 50, items 5);",
        "      SELECT item_id, COUNT(*) AS n",
        "      FROM sales [RANGE 10 SECONDS] GROUP BY item_id;",
        *(["  python -m pip install 'sash[console]'"] if find_spec("nicegui") is None else []),
        "  sash demo --console    see a job in the browser, at any instant",
        "  sash demo --explain    see the job of this story, and its plan",
        "  sash demo --query q4   see a stream joined with tables (q1 to q5)",
    ]
