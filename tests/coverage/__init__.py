"""Queries by construct, with the answers that Spark gives in batch at several instants.

`queries/<construct>.sql` has the queries, separated by semicolons, over the streams of `streams.py`. They are written as
for Spark: a stream has a window of 10 seconds, unless one is written after its name, as in `s [RANGE 4 SECONDS]` (give the
stream an alias then: Spark reads a view of another name). `answers/<construct>.txt` has, for each query and instant, the
rows that Spark returns over the rows valid then.

To add queries, write them into a file in `queries/`, and run `python -m tests.coverage`: it asks Spark for the answers
that are missing (`--all`: for all; with names of constructs: for these) and fails if Spark refuses a query. Then look at
the answers, and run `pytest tests/coverage`, which replays every query and compares.
"""
