from __future__ import annotations

import pytest

from sash.spark.causes import one_line, reason_of

ABORTED = "Job aborted due to stage failure: Task 0 in stage 2.0 failed 4 times, most recent failure: Lost task 0.3 in stage 2.0"


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (
            [ABORTED, "java.lang.OutOfMemoryError: Java heap space"],
            "Java ran out of memory (java.lang.OutOfMemoryError): give it more with --conf spark.driver.memory=4g",
        ),
        (
            [ABORTED, "java.io.IOException: No space left on device"],
            "the disk is full: free space where the checkpoint is",
        ),
        (
            [
                "not available in Kafka any more; ... Reason: Partition t-0 offset was changed from 60 to 20. This could be 1)"
            ],
            "records that the query had yet to read are gone from Kafka (Partition t-0 offset was changed from 60 to 20). If the",
        ),
        (
            [
                ABORTED,
                "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/c/job/g1/state/0/0/2.changelog at 512 exp: 1 got: 2",
            ],
            "the checkpoint is damaged (ChecksumException: Checksum error: file:/c/job/g1/state/0/0/2.changelog): restore it",
        ),
        (
            ["[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."],
            "the checkpoint is damaged (CANNOT_LOAD_STATE_STORE.UNCATEGORIZED]): restore it",
        ),
        (["Python worker exited unexpectedly (crashed)"], "a Python worker was killed, usually because"),
        (
            ["Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'sash'\n"],
            "the Python workers cannot import sash: install Sash on every worker",
        ),
        (
            [
                "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a.parquet.  SQLSTATE: KD001",
                "java.lang.RuntimeException: file:///in/a.parquet is not a Parquet file. Expected magic number at tail",
            ],
            "cannot read file:///in/a.parquet: it is no complete Parquet file",
        ),
        (
            [
                "CSV header does not conform to the schema.\n Header: b, a\n Schema: a, b\nExpected: a but found: b\nCSV file: f.csv"
            ],
            "f.csv has the columns (b, a), but the stream is declared with (a, b): declare the columns in the order",
        ),
        (
            ["java.io.InvalidClassException: o.a.s.X; local class incompatible: stream classdesc serialVersionUID = 1"],
            "driver and cluster run different versions of Spark",
        ),
    ],
)
def test_frequent_causes_come_with_what_to_do(texts: list[str], reason: str) -> None:
    assert reason_of(texts).startswith(reason)


def test_other_causes_are_the_innermost_message_in_one_line() -> None:
    by_zero = (
        "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If "
        'necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE: 22012\n== DataFrame ==\n"selectExpr"'
        " was called from\n<init>(x.py:1)\n"
    )
    assert reason_of([ABORTED, by_zero]) == (
        "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead"
    )
    trace = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\nValueError: no\nsuch\nvalue\n\nDuring ...'
    assert reason_of([ABORTED, trace]) == "ValueError: no such value"
    assert reason_of(["outer", ""]) == "outer"


def test_long_messages_are_cut() -> None:
    assert one_line("x " * 1000) == ("x " * 300) + "..."
