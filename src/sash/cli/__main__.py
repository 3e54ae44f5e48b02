"""`python -m sash.cli` is the command `sash`."""

from sash.cli.main import run

run()
