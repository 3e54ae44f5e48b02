"""Options that several benchmarks have."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Save = Annotated[
    bool, typer.Option("--save", help="Save the figures in bench/results, with a description of the machine.")
]
Update = Annotated[
    bool, typer.Option("--update", help="Take what is not measured now from the results that were saved last.")
]
