"""Mutated SQL texts, scripts and values of options: the outcome is an answer or a `SashError`, soon and in little memory."""

from __future__ import annotations

import resource
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from campaign.subject import Outcome, Subject
from sash.cli.check import check as check_script
from sash.errors import SashError
from sash.script.dry_run import DryRunBackend
from sash.testing import replay
from tests.sql.test_fuzz import LEAKS, NUMBERS, ROWS, SCHEMA, TEXTS, WORDS

SECONDS = 1.0
"""The processor time that a text may take."""
BYTES = 100 * 2**20
"""By how much a text may make the process larger."""
_LONGEST = 65_536
"""Nested repetitions would make texts of megabytes."""
_COMPILING = 20.0
"""The processor time with which a text gets a second try: kernels that its plan needs may have been compiled."""

_SCRIPT = (
    "CREATE STREAM s (ts TIMESTAMP, k INT, v DOUBLE) USING csv OPTIONS (path 'in', header true) SLACK '5 seconds';",
    "CREATE STREAM u (at TIMESTAMP, k INT, x STRING) USING parquet OPTIONS (path 'in2') TIME at HEARTBEAT '1 second';",
    "CREATE RELATION items (item_id INT, name STRING) USING csv OPTIONS (path 'items');",
    "CREATE QUERY totals AS SELECT k, SUM(v) AS total FROM s [RANGE 1 MINUTE] GROUP BY k INTO changelog (path 'out');",
    "CREATE QUERY pairs AS SELECT s.k, u.x FROM s [ROWS 5] JOIN u [RANGE 1 HOUR SLIDE 1 MINUTE] ON s.k = u.k INTO console;",
    "CREATE QUERY sums AS SELECT SUM(v) AS v FROM s [NOW] INTO noop MODE net TRIGGER '2 seconds' STRATEGY 'direct' ON ERROR SUSPEND;",
    "CREATE QUERY best AS SELECT k, v FROM s [RANGE 5 SECONDS] ORDER BY v DESC LIMIT 3 INTO parquet (path 'p');",
    "CREATE STREAM g USING generator OPTIONS (rate 100, items 5) MAX JUMP '1 day' RATE 200 PEAK 900 DISTINCT (item_id 50);",
    "CREATE STREAM w (ts TIMESTAMP, v INT) USING csv OPTIONS (path 'w') MAX ROWS PER BATCH 1000 BAD ROWS DROP;",
    "CREATE QUERY kept AS SELECT k FROM s [RANGE 1 HOUR] INTO changelog (path 'o', compact 20, retain '5 minutes') MAX STATE '1 GB';",
    "CREATE QUERY top AS SELECT k, COUNT(*) AS n FROM s [ROWS 9] GROUP BY k INTO postgres (url 'u', table 't') MODE upsert KEY (k);",
    "CREATE FUNCTION mean AS 'statistics:mean' RETURNS DOUBLE VERSION '1';",
    "KEEP s WINDOW '10 minutes' EVERY '1 second' RETAIN 3;",
    "ALTER QUERY totals SET ON ERROR SUSPEND;",
    "EXPLAIN SELECT k FROM s [ROWS 3];",
    "SET spark.sql.shuffle.partitions = 2;",
    "DROP QUERY totals;",
)
_OPTIONS = (
    "strategy", "join", "tau", "purge", "probe", "patience", "buckets", "batch", "shards", "unit", "until", "slack",
)  # fmt: skip


@dataclass(frozen=True)
class Text:
    """A text to plan and run as a query, to check as a script, or a value of an option of `replay`."""

    kind: str
    text: str
    option: str = ""


@st.composite
def _mutated(draw: st.DrawFn, texts: tuple[str, ...]) -> str:
    """A text in which words are exchanged, repeated, nested, dropped or taken from another, or characters changed."""
    words = draw(st.sampled_from(texts)).split(" ")
    for _ in range(draw(st.integers(1, 5))):
        words = words or ["SELECT"]
        at = draw(st.integers(0, len(words) - 1))
        match draw(st.sampled_from(("number", "word", "drop", "repeat", "swap", "nest", "splice", "character", "any"))):
            case "number":
                words[at] = "".join(c for c in words[at] if not c.isdigit()) + draw(st.sampled_from(NUMBERS))
            case "word":
                words.insert(at, draw(st.sampled_from(WORDS)))
            case "drop":
                del words[at : at + draw(st.integers(1, 3))]
            case "repeat":
                words[at : at + 1] = [words[at]] * draw(st.sampled_from((2, 3, 60, 500)))
            case "swap":
                other = draw(st.integers(0, len(words) - 1))
                words[at], words[other] = words[other], words[at]
            case "nest":
                depth = draw(st.sampled_from((1, 5, 400)))
                pairs = (
                    ("(", ")"),
                    ("abs(", ")"),
                    ("- ", ""),
                    ("NOT ", ""),
                    ("1 + ", ""),
                    ("CASE WHEN ", " THEN 1 END"),
                )
                opening, closing = draw(st.sampled_from(pairs))
                words[at] = opening * depth + words[at] + closing * depth
            case "splice":
                other_words = draw(st.sampled_from(texts)).split(" ")
                start = draw(st.integers(0, len(other_words) - 1))
                words[at:at] = other_words[start : start + draw(st.integers(1, 12))]
            case "character":
                word = words[at]
                place = draw(st.integers(0, len(word)))
                words[at] = word[:place] + draw(st.characters()) + word[place + draw(st.integers(0, 1)) :]
            case "any":
                words.insert(at, draw(st.text(max_size=12)))
    return " ".join(words)[:_LONGEST]


_values = st.one_of(
    st.sampled_from(
        ("", " ", "-1", "0", "1e9", "9" * 30, "NaN", "inf", "auto", "AUTO", "1 second", "5 bananas", "\0", "é")
    ),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=20),
)
_cases = st.one_of(
    _mutated(TEXTS).map(lambda text: Text("query", text)),
    _mutated(TEXTS).map(lambda text: Text("query", text)),
    _mutated(tuple(_SCRIPT)).map(lambda text: Text("script", text)),
    st.lists(_mutated(tuple(_SCRIPT)), min_size=1, max_size=4).map(
        lambda texts: Text("script", "\n".join([*_SCRIPT[:4], *texts]))
    ),
    st.tuples(st.sampled_from(_OPTIONS), _values).map(lambda pair: Text("option", pair[1], pair[0])),
)


def _check(text: Text) -> Outcome:
    return _within_limits(text, tries=2)


def _within_limits(text: Text, tries: int) -> Outcome:
    before, size = time.process_time(), _size()
    outcome = _tried(text)
    seconds, growth = time.process_time() - before, _size() - size
    if (seconds > SECONDS or growth > BYTES) and tries > 1 and seconds < _COMPILING:
        return _within_limits(text, tries - 1)
    assert seconds <= SECONDS, f"{seconds:.1f} s of processor time"
    assert growth <= BYTES, f"the process has grown by {growth / 2**20:.0f} MiB"
    return outcome


def _tried(text: Text) -> Outcome:
    messages = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            messages = _messages(text)
        except SashError as refused:
            messages = [str(refused)]
    for message in messages:
        assert message, "an error without a message"
        assert len(message) < 4_000, f"an error of {len(message)} characters"
        assert not LEAKS.search(message), f"a name of the parser: {message}"
    return Outcome(Counter([f"{text.kind} {'refused' if messages else 'answered'}"]))


def _messages(text: Text) -> list[str]:
    match text.kind:
        case "script":
            return [str(problem) for problem in check_script(text.text, DryRunBackend(None))]
        case "option":
            options: dict[str, Any] = {text.option: text.text}
            replay(TEXTS[0], {"s": ROWS}, schemas={"s": SCHEMA}, **options)
        case _:
            replay(text.text, {"s": ROWS}, schemas={"s": SCHEMA})
    return []


def _size() -> int:
    """The most memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _encode(text: Text) -> dict[str, str]:
    return {"kind": text.kind, "text": text.text, "option": text.option}


SUBJECT = Subject(
    "texts",
    f"mutated SQL texts, scripts and values of options: an answer or a SashError, within {SECONDS:g} s of processor time and "
    f"{BYTES // 2**20} MiB",
    _cases,
    _check,
    _encode,
    lambda stored: Text(**stored),
)
