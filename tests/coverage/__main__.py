"""Asks Spark for the answers to the queries, and writes the files in `answers/`."""

from __future__ import annotations

import argparse
import sys

from pyspark.errors import PySparkException

from tests.coverage.batch import SparkBatch
from tests.coverage.pinned import constructs, queries, read, write
from tests.sql.spark_answers.session import batch_session


def main() -> None:
    """Pin the answers that are missing, or all."""
    arguments = argparse.ArgumentParser(prog="python -m tests.coverage", description=__doc__)
    arguments.add_argument("constructs", nargs="*", help="files in queries/, without .sql (default: all)")
    arguments.add_argument("--all", action="store_true", help="also ask for answers that are pinned already")
    given = arguments.parse_args()
    oracle = SparkBatch(batch_session())
    refused: list[str] = []
    for construct in given.constructs or constructs():
        known = {} if given.all else read(construct)
        for query in queries(construct):
            if query.sql in known:
                continue
            try:
                known[query.sql] = oracle.answer(query)
            except PySparkException as problem:
                refused.append(f"{query.sql}\n    {str(problem).splitlines()[0]}")
        write(construct, known)
    if refused:
        sys.exit("\n".join(["Spark refuses these queries:", *refused]))


main()
