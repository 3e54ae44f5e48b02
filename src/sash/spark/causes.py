"""The reason of an error that comes out of Spark, in one line: its innermost cause, and for frequent ones what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_DEPTH = 20
_LONGEST = 600
_EXCEPTION = re.compile(r"[\w.]*(Error|Exception|Exit|Interrupt)\b.*")
_NOISE = (
    re.compile(r"== (DataFrame|SQL).*", re.DOTALL),
    re.compile(r"\bSQLSTATE: \w+"),
    re.compile(r'If necessary set "?spark\.sql\.ansi\.enabled"? to "?false"?[^.]*\.'),
    re.compile(
        r"^Job aborted due to stage failure: .*?most recent failure: Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): "
    ),
    re.compile(r"\bDriver stacktrace:.*", re.DOTALL),
)


_WORKER_START = r"Python worker failed to connect back"
_DATA_EXCEPTION = re.compile(r"SQLSTATE: 22\w{3}")


@dataclass(frozen=True)
class _KnownCause:
    """A pattern of causes, and the message for users; {0} is the text that matches, {1} ... are the pattern's groups."""

    pattern: str
    message: str


_KNOWN = (
    _KnownCause(
        r"java\.lang\.OutOfMemoryError",
        "Java ran out of memory ({0}): give it more with --conf spark.driver.memory=4g (on a cluster spark.executor.memory), "
        "or read less at a time with the source's option maxFilesPerTrigger or maxOffsetsPerTrigger",
    ),
    _KnownCause(
        r"No space left on device|Disk quota exceeded",
        "the disk is full: free space where the checkpoint is, and in Spark's folder for temporary files (spark.local.dir); the "
        "query resumes from its checkpoint",
    ),
    _KnownCause(
        _WORKER_START,
        "a Python worker did not start in time: check that PYSPARK_PYTHON names a Python that runs, and that the machine is not "
        "overloaded",
    ),
    _KnownCause(
        r"Python worker (?:exited unexpectedly|process terminated)|Python worker.*\(crashed\)",
        "a Python worker was killed, usually because the machine ran out of memory: give it more memory, use fewer shards, or "
        "read less at a time with maxFilesPerTrigger or maxOffsetsPerTrigger",
    ),
    _KnownCause(
        r"ModuleNotFoundError: No module named '(sash|numba|numpy|pandas|pyarrow|google)[\w.]*'",
        "the Python workers cannot import {1}: install Sash on every worker, for the Python that PYSPARK_PYTHON names",
    ),
    _KnownCause(
        r"PYTHON_VERSION_MISMATCH[^\n]*?(\d+\.\d+)[^\n]*?(\d+\.\d+)",
        "driver and workers run different versions of Python ({1} and {2}): name one by PYSPARK_PYTHON",
    ),
    _KnownCause(
        r"java\.io\.InvalidClassException[^\n]*local class incompatible",
        "driver and cluster run different versions of Spark: install the pyspark of the cluster's version, or upgrade the cluster",
    ),
    _KnownCause(
        r"CSV header does not conform to the schema\.\s*Header: ([^\n]*)\s*Schema: ([^\n]*)\s*Expected: [^\n]*\s*CSV file: (\S+)",
        "{3} has the columns ({1}), but the stream is declared with ({2}): declare the columns in the order of the file, or write "
        "the file again",
    ),
    _KnownCause(
        r"Number of column in CSV header is not equal to number of fields in the schema:\s*"
        r"Header length: (\d+), schema size: (\d+)\s*CSV file: (\S+)",
        "{3} has {1} columns, but the stream is declared with {2}: declare the columns of the file, or write it again",
    ),
    _KnownCause(
        r"(\S+) is not a Parquet file|Could not read footer for file: \S*?path=(\S+?);",
        "cannot read {1}{2}: it is no complete Parquet file, so it is damaged or only partly written. Write it again; write files "
        "elsewhere and move them (mv) into the folder when they are complete",
    ),
    _KnownCause(
        r"ChecksumException[^\n]*? file:(\S*/(?:state|offsets|commits|sources)/\S+)|CANNOT_LOAD_STATE_STORE\.\w+\]",
        "the checkpoint is damaged ({0}): restore it from a backup, or start with a new checkpoint",
    ),
    _KnownCause(
        r"FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (\S+?)\.\s",
        "cannot read {1}: it was removed before it was read. Let files stay until the query has processed them",
    ),
    _KnownCause(
        r"FAILED_READ_FILE\.PARQUET_COLUMN_DATA_TYPE_MISMATCH\] Encountered error while reading file (\S+?)\.\s+(.*)",
        "cannot read {1}: its columns have other types than the stream's. {2}",
    ),
    _KnownCause(
        r"FAILED_READ_FILE\.\w+\] Encountered error while reading file (\S+?)\.\s",
        "cannot read {1}: it is damaged, only partly written, or not readable for this user. Write it again; write files "
        "elsewhere and move them (mv) into the folder when they are complete",
    ),
    _KnownCause(
        r"not available in Kafka any more[\s\S]*?Reason: (.*?)(?:\. This could be|\n|$)",
        "records that the query had yet to read are gone from Kafka ({1}). If the topic was deleted and created again, start "
        "the job with --on-change apply: it keeps its windows, and reads the new topic. If the records were too old for the "
        "topic, the option failOnDataLoss 'false' goes on without them",
    ),
    _KnownCause(
        r"(?:No resolvable bootstrap urls|Timed out waiting for a node assignment|Failed to construct kafka|"
        r"Failed to update metadata|kafka\S*\.errors\.TimeoutException)([^\n]*)",
        "the Kafka brokers cannot be reached: check kafka.bootstrap.servers, and that the brokers run{1}",
    ),
)


def java_causes(problem: BaseException) -> list[tuple[str, str]]:
    """The class and the message of every Java exception behind an error, from the outermost; none if the JVM has ended."""
    from py4j.protocol import Py4JError, Py4JJavaError

    origin: Any = problem.java_exception if isinstance(problem, Py4JJavaError) else getattr(problem, "_origin", None)
    found: list[tuple[str, str]] = []
    try:
        while origin is not None and len(found) < _DEPTH:
            found.append((str(origin.getClass().getName()), str(origin.getMessage() or "")))
            origin = origin.getCause()
    except (Py4JError, OSError):
        pass
    return found


def is_worker_start(texts: list[str]) -> bool:
    """Whether a Python worker did not start in time, given the texts of an error and of its causes: a retry may help."""
    return any(re.search(_WORKER_START, text) for text in texts)


def is_data_exception(texts: list[str]) -> bool:
    """Whether an expression failed on a value, such as a division by zero, by SQL's class of errors."""
    return any(_DATA_EXCEPTION.search(text) for text in texts)


def reason_of(texts: list[str]) -> str:
    """The reason in one line, given the texts of an error and of its causes, the innermost last."""
    for text in reversed(texts):
        for known in _KNOWN:
            if found := re.search(known.pattern, text):
                groups = [group or "" for group in found.groups()]
                return one_line(known.message.format(one_line(found[0]), *groups))
    chosen = next((text for text in reversed(texts) if text.strip()), "")
    return one_line(_last_exception(chosen) if "Traceback" in chosen else chosen)


def _last_exception(text: str) -> str:
    """Of a Python traceback, the last exception, with its message up to the end or to the next traceback."""
    lines = text.splitlines()
    found = [index for index, line in enumerate(lines) if _EXCEPTION.fullmatch(line)]
    return "\n".join(lines[found[-1] :]).split("\n\n")[0] if found else text


def one_line(text: str) -> str:
    """The text without Spark's remarks, in one line of bounded length."""
    for noise in _NOISE:
        text = noise.sub("", text)
    words = " ".join(text.split()).rstrip(".: ")
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST].rstrip()} ..."
