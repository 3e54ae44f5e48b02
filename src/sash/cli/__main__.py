"""Runs the command `sash`: as `python -m sash.cli`, or, by its path, from spark-submit."""

from sash.cli.main import run

if __name__ == "__main__":
    run()
