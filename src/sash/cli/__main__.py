"""`python -m sash.cli` is the command `sash`; so is this file, for spark-submit."""

from sash.cli.main import run

if __name__ == "__main__":
    run()
