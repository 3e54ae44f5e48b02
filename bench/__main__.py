"""`python -m bench`: throughput, growth, many queries and the papers' experiments. Run it from the repository."""

from __future__ import annotations

import sys

import typer

from bench import engine_commands, paper_commands
from sash.errors import SashError

app = typer.Typer(
    name="bench",
    help="Benchmarks of Sash on this machine, and the papers' experiments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(engine_commands.app)
app.add_typer(paper_commands.app)


def main() -> None:
    """Run the command; errors that the user can fix are printed as one line."""
    try:
        app(prog_name="python -m bench")
    except SashError as problem:
        typer.echo(f"bench: {problem}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
