"""Texts that nobody would write: whatever they are, only errors of Sash come out of planning and running them."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sash.errors import SashError
from sash.testing import replay

TEXTS = (
    "SELECT k, sum(v) AS n FROM s [RANGE 10 SECONDS SLIDE 1 SECOND] WHERE k > 2 AND x LIKE 'a%' GROUP BY k HAVING n < 7",
    "SELECT upper(x) || rpad(x, 7, 'ab') AS r, - v % 3 AS q FROM s [ROWS 3] ORDER BY r DESC NULLS LAST LIMIT 5 OFFSET 1",
    "SELECT a.k, b.v FROM s [PARTITION BY k ROWS 2] AS a LEFT JOIN s [NOW] AS b ON a.k = b.k AND a.v < b.v + 1",
    "SELECT DISTINCT x FROM s [RANGE 1 MINUTE] UNION SELECT CAST(v AS STRING) FROM s [ROWS 9] EXCEPT SELECT 'a' FROM s",
    "WITH q AS (SELECT k, CASE WHEN v = 1 THEN 1.5 ELSE -2e3 END AS w FROM s [RANGE 5 SECONDS]) SELECT max(w) FROM q",
    "SELECT date_trunc('hour', t) AS h, t + INTERVAL 3 DAYS - INTERVAL 2 MONTHS AS u, count(*) FROM s [ROWS 4] GROUP BY 1, 2",
    "SELECT CAST(v AS DECIMAL(10, 2)) / 3 AS r, x RLIKE '^a+' AS m, repeat(x, 3) AS p FROM s WHERE v BETWEEN 1 AND 9",
    "SELECT percentile(v, 0.5) AS p, count(DISTINCT k) AS c FROM s [RANGE 1 HOUR] WINDOW 2 HOURS",
)
NUMBERS = (
    "0",
    "-1",
    "1e9",
    "1e-9",
    "2147483648",
    "9223372036854775808",
    "1e999",
    "1e999999999",
    "9" * 23,
    "9" * 4400,
    "0.1",
)
WORDS = (
    *(
        "(",
        ")",
        "((",
        "))",
        "[",
        "]",
        ",",
        ".",
        "-",
        "- -",
        "NOT",
        "AND",
        "OR",
        "||",
        "+",
        "*",
        "'",
        "''",
        "`",
        '"',
        ";",
        "--",
    ),
    *(
        "SELECT",
        "FROM s",
        "UNION",
        "EXCEPT ALL",
        "CASE",
        "END",
        "NULL",
        "INTERVAL",
        "OVER ()",
        "IN (1)",
        "IS NULL",
        "::INT",
    ),
    *(
        "x",
        "t",
        "k.v",
        "s.*",
        "*",
        "abs(",
        "nosuch(",
        "repeat(",
        "DATE '9999-12-31'",
        "TIMESTAMP '0001-01-01'",
        "X'1'",
        "\0",
        "é",
    ),
)
REFUSED = (
    "SELECT k FROM s CLUSTER BY k",
    "SELECT k FROM s SORT BY k",
    "SELECT k FROM s TABLESAMPLE (5 ROWS)",
    "SELECT k FROM s FOR UPDATE",
    "SELECT k FROM s FETCH FIRST 3 ROWS ONLY",
    "SELECT DISTINCT ON (k) k FROM s",
    "(SELECT k FROM s) AS q",
    "SELECT k FROM s UNION BY NAME SELECT k FROM s",
    "SELECT k FROM s VERSION AS OF 3",
    "SELECT x COLLATE UTF8_LCASE FROM s",
    "SELECT x SIMILAR TO 'a' FROM s",
    "SELECT x -> '$.a' FROM s",
    "SELECT k FROM s ORDER BY k WITH FILL",
    "SELECT k FROM s ASOF JOIN s AS q ON TRUE",
    "SELECT k FROM s CONNECT BY k = 1",
    "SELECT k INTO q FROM s",
    "SELECT k FROM s WHERE k BETWEEN SYMMETRIC 3 AND 1",
    "SELECT k IS JSON FROM s",
    "SELECT CAST(k AS INT FORMAT 'x') FROM s",
    "SELECT k XOR v FROM s",
    "SELECT k OPERATOR(+) 1 FROM s",
    "INSERT INTO q SELECT k FROM s",
    "SELECT k FROM s WHERE k IN UNNEST(x)",
    "SELECT @k FROM s",
    "SELECT MAP {'a': 1} FROM s",
    "SELECT k FROM s GROUP BY k WITH TOTALS",
)
"""Queries with what Sash does not run."""

LEAKS = re.compile(
    "|".join(
        rf"\b{kind.__name__}\b"
        for kind in vars(exp).values()
        if isinstance(kind, type) and issubclass(kind, exp.Expr) and not issubclass(kind, exp.Func)
        if re.fullmatch("(?:[A-Z]+[a-z]+){2,}", kind.__name__) and kind is not exp.TableSample
    ),
    re.IGNORECASE,
)
"""The parser's names of constructs that are no words of SQL, such as TableAlias and WithinGroup."""

SCHEMA = "ts BIGINT, k INT, v INT, x STRING, t TIMESTAMP"
ROWS = [{"ts": i, "k": i % 2, "v": i, "x": "ab"[: i % 3], "t": None} for i in range(3)]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A query in which some words and numbers are exchanged, repeated, nested or dropped."""
    words = draw(st.sampled_from(TEXTS)).split(" ")
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(words) - 1))
        match draw(st.sampled_from(("number", "word", "drop", "repeat", "swap", "nest"))):
            case "number":
                digits = [at for at, word in enumerate(words) if any(character.isdigit() for character in word)]
                at = draw(st.sampled_from(digits)) if digits else place
                words[at] = "".join(c for c in words[at] if not c.isdigit()) + draw(st.sampled_from(NUMBERS))
            case "word":
                words.insert(place, draw(st.sampled_from(WORDS)))
            case "drop":
                del words[place]
            case "repeat":
                words[place : place + 1] = [words[place]] * draw(st.sampled_from((2, 3, 60)))
            case "swap":
                other = draw(st.integers(0, len(words) - 1))
                words[place], words[other] = words[other], words[place]
            case "nest":
                depth = draw(st.sampled_from((1, 5, 400)))
                opening, closing = draw(
                    st.sampled_from((("(", ")"), ("abs(", ")"), ("- ", ""), ("NOT ", ""), ("1 + ", "")))
                )
                words[place] = opening * depth + words[place] + closing * depth
        words = words or ["SELECT"]
    return " ".join(words)


@settings(max_examples=400)
@given(mutated())
@example("SELECT - '' FROM s [ROWS 1]")
@example("WITH q AS (SELECT k + 1 AS w FROM s [RANGE 5 SECONDS]) SELECT FROM q")
@example("SELECT x -> '$.a[' AS r FROM s [ROWS 1]")
@example("SELECT k FROM s [ROWS 1] QUALIFY SUM(v) OVER (PARTITION BY k) > > > > 10")
@example("SELECT REDUCE(array(v), k, (a, e) -> > > > > a * e) AS p FROM s [ROWS 1]")
@example("SELECT |k, ~) FROM s [ROWS 1]")
@example("SELECT t - INTERVAL '1-1' YEAR TO.k = k MONTH AS a FROM s [ROWS 1]")
def test_only_errors_of_sash_come_out(sql: str) -> None:
    message = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            replay(sql, {"s": ROWS}, schemas={"s": SCHEMA})
        except SashError as error:
            message = str(error)
    assert message is None or 0 < len(message) < 2_000
    assert message is None or not LEAKS.search(message), message


@pytest.mark.parametrize("sql", REFUSED)
def test_no_message_has_a_name_of_the_parser(sql: str) -> None:
    with pytest.raises(SashError) as caught:
        replay(sql, {"s": ROWS}, schemas={"s": SCHEMA})
    assert not LEAKS.search(str(caught.value)), caught.value
