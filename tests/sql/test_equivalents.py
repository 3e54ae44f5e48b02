"""Queries in two ways: each has, at every instant, the answer of the query that says the same in other words."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sash.errors import SashError
from sash.testing import replay

SCHEMAS = {"s": "ts TIMESTAMP, id INT, k INT, v INT, g STRING", "r": "ts TIMESTAMP, k INT, w INT"}
STREAMS: dict[str, list[dict[str, Any]]] = {
    "s": [
        {
            "ts": ts,
            "id": ts,
            "k": None if ts == 7 else ts % 3,
            "v": None if ts % 5 == 0 else ts * 7 % 11,
            "g": "abc"[ts % 2 :],
        }
        for ts in range(1, 20)
    ],
    "r": [{"ts": ts, "k": ts % 4, "w": ts * 5 % 7} for ts in range(2, 18, 2)],
}

PAIRS = [
    (
        "SELECT k, COUNT(DISTINCT(*)) AS n FROM r GROUP BY k",
        "SELECT k, COUNT(DISTINCT ts, k, w) AS n FROM r GROUP BY k",
    ),
    (
        "SELECT id, to_json(struct(*)) AS j, struct(s.* EXCEPT (ts)) AS t FROM s",
        "SELECT id, to_json(struct(ts, id, k, v, g)) AS j, struct(id, k, v, g) AS t FROM s",
    ),
    (
        "SELECT k, MAX(struct(q.*)) AS m, COUNT(DISTINCT struct(*)) AS n FROM (SELECT k, v FROM s) AS q GROUP BY k",
        "SELECT k, MAX(struct(k, v)) AS m, COUNT(DISTINCT struct(k, v)) AS n FROM s GROUP BY k",
    ),
    (
        "SELECT a.id, struct(a.*, b.w).w AS w FROM (SELECT id, k FROM s) AS a JOIN r AS b USING (k)",
        "SELECT s.id, r.w FROM s JOIN r ON s.k = r.k",
    ),
    (
        "SELECT k, more, id FROM (SELECT id, k FROM s) AS a NATURAL JOIN LATERAL (SELECT a.id AS id, a.k + 1 AS more)",
        "SELECT k, k + 1 AS more, id FROM s",
    ),
    (
        "SELECT * FROM (SELECT id, k FROM s) AS a LEFT JOIN LATERAL (SELECT COUNT(*) AS k, MAX(w) AS w FROM r WHERE r.k < a.k) USING (k)",
        "SELECT a.k, a.id, t.w FROM s AS a LEFT JOIN LATERAL (SELECT COUNT(*) AS n, MAX(w) AS w FROM r WHERE r.k < a.k) AS t ON t.n = a.k",
    ),
    (
        "SELECT * FROM (SELECT g, v, struct(k AS col1, id % 2 AS col2) AS p FROM s) PIVOT (SUM(v) FOR p IN ((1, 0), (2, 1) AS other))",
        (
            "SELECT g, SUM(v) FILTER (WHERE k = 1 AND id % 2 = 0) AS `{1, 0}`, SUM(v) FILTER (WHERE k = 2 AND id % 2 = 1) AS other "
            "FROM s GROUP BY g"
        ),
    ),
    (
        "SELECT id, APPROX_COUNT_DISTINCT(k) OVER (ORDER BY id) AS n, APPROX_PERCENTILE(v, 0.4) OVER (PARTITION BY k) AS p FROM s",
        (
            "SELECT id, COUNT(DISTINCT k) OVER (ORDER BY id) AS n, "
            "CAST(PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY v) OVER (PARTITION BY k) AS INT) AS p FROM s"
        ),
    ),
    (
        "SELECT k, SORT_ARRAY(COLLECT_UNION(array(v, id % 2))) AS u, SIZE(COLLECT_UNION(array(v)) RESPECT NULLS) AS n FROM s GROUP BY k",
        (
            "SELECT k, SORT_ARRAY(ARRAY_DISTINCT(FLATTEN(array(COLLECT_SET(v), COLLECT_SET(id % 2))))) AS u, "
            "COUNT(DISTINCT v) + MAX(IF(v IS NULL, 1, 0)) AS n FROM s GROUP BY k"
        ),
    ),
    (
        "SELECT k, COLLECT_LIST(v) FILTER (WHERE id > 3) RESPECT NULLS AS vs, SORT_ARRAY(COLLECT_SET(v) RESPECT NULLS) AS u FROM s GROUP BY k",
        (
            "SELECT k, TRANSFORM(COLLECT_LIST(struct(v)) FILTER (WHERE id > 3), e -> e.v) AS vs, "
            "SORT_ARRAY(CONCAT(IF(COUNT(v) < COUNT(*), array(CAST(NULL AS INT)), array()), COLLECT_SET(v))) AS u FROM s GROUP BY k"
        ),
    ),
    (
        "SELECT time_bucket(INTERVAL 4 SECONDS, ts) AS b, COUNT(*) AS n FROM s GROUP BY time_bucket(INTERVAL 4 SECONDS, ts)",
        "SELECT window.start AS b, COUNT(*) AS n FROM s GROUP BY window(ts, '4 seconds')",
    ),
    (
        "SELECT id, time_bucket(INTERVAL 7 SECONDS, ts, TIMESTAMP '2000-01-01 00:00:03') AS b FROM s WHERE k > 0",
        "SELECT id, timestamp_micros((unix_micros(ts) DIV 7000000) * 7000000 + IF(id % 7 >= 1, 1000000, -6000000)) AS b FROM s WHERE k > 0",
    ),
    (
        "SELECT k, to_csv(struct(MAX(id), g, NULL, CONCAT('q\"', k))) AS c FROM s GROUP BY k, g",
        "SELECT k, CONCAT(MAX(id), ',', g, ',,', COALESCE(CONCAT('\"q\\\\\"', k, '\"'), '')) AS c FROM s GROUP BY k, g",
    ),
    (
        (
            "SELECT k, CAST(aes_decrypt(aes_encrypt(MAX(g), repeat('k', 16), 'GCM', 'DEFAULT', X'000102030405060708090A0B', 'a'), "
            "repeat('k', 16), 'GCM', 'NONE', 'a') AS STRING) AS t, "
            "try_aes_decrypt(aes_encrypt(MIN(g), repeat('k', 32), 'ECB'), repeat('l', 32), 'ECB') AS nothing FROM s GROUP BY k"
        ),
        "SELECT k, MAX(g) AS t, CAST(NULL AS BINARY) AS nothing FROM s GROUP BY k",
    ),
    (
        (
            "SELECT k, MEDIAN(make_dt_interval(0, v)) AS m, PERCENTILE(make_ym_interval(0, v), 0.3) AS p, "
            "APPROX_PERCENTILE(make_ym_interval(v), 0.5) AS a FROM s GROUP BY k"
        ),
        (
            "SELECT k, make_dt_interval(0, 0, 0, CAST(3600 * MEDIAN(v) AS DECIMAL(18, 6))) AS m, "
            "make_ym_interval(0, CAST(PERCENTILE(v, 0.3) AS INT)) AS p, "
            "make_ym_interval(APPROX_PERCENTILE(v, 0.5)) AS a FROM s GROUP BY k"
        ),
    ),
]


@pytest.mark.parametrize("options", [{"shards": 1}, {"shards": 2, "batch": 4, "strategy": "negative-tuple"}])
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[one for one, _ in PAIRS])
def test_both_have_one_answer(one: str, other: str, options: dict[str, Any]) -> None:
    found, expected = (
        replay(f"{sql} WINDOW 8 SECONDS", STREAMS, schemas=SCHEMAS, unit="s", until=30, **options)
        for sql in (one, other)
    )
    assert any(expected.at(instant) for instant in range(30))
    for instant in range(30):
        assert sorted(map(str, found.at(instant))) == sorted(map(str, expected.at(instant)))


def test_percentiles_of_intervals_between_two_values_are_cut() -> None:
    sql = "SELECT PERCENTILE(t, array(0.5, 1.0)) AS ps, MEDIAN(m) AS m FROM i WINDOW 9 SECONDS"
    rows = [{"ts": 1, "t": timedelta(microseconds=1), "m": -1}, {"ts": 1, "t": timedelta(microseconds=4), "m": -4}]
    schemas = {"i": "ts BIGINT, t INTERVAL DAY TO SECOND, m INTERVAL MONTH"}
    assert replay(sql, {"i": rows}, schemas=schemas, unit="s").at(1) == [
        {"ps": [timedelta(microseconds=2), timedelta(microseconds=4)], "m": -2}
    ]


@pytest.mark.parametrize("strategy", ["auto", "negative-tuple"])
def test_types_of_variants_are_merged(strategy: Any) -> None:
    sql = (
        "SELECT schema_of_variant_agg(parse_json(j)) AS t, schema_of_variant_agg(parse_json(j)) FILTER (WHERE j <> 'null') AS u "
        "FROM v [RANGE 3 SECONDS]"
    )
    texts = ['{"a": 1}', None, '{"b": [1.5], "a": 2.25}', "null", "[1]", '["x"]']
    rows = [{"ts": ts, "j": text} for ts, text in enumerate(texts, 1)]
    result = replay(sql, {"v": rows}, schemas={"v": "ts BIGINT, j STRING"}, unit="s", until=20, strategy=strategy)
    merged = "OBJECT<a: DECIMAL(22,2), b: ARRAY<DECIMAL(2,1)>>"
    later = "OBJECT<a: DECIMAL(3,2), b: ARRAY<DECIMAL(2,1)>>"
    assert [tuple(row.values()) for ts in range(1, 10) for row in result.at(ts)] == [
        ("OBJECT<a: BIGINT>", "OBJECT<a: BIGINT>"),
        ("OBJECT<a: BIGINT>", "OBJECT<a: BIGINT>"),
        (merged, merged),
        (later, later),
        ("VARIANT", "VARIANT"),
        ("ARRAY<VARIANT>", "ARRAY<VARIANT>"),
        ("ARRAY<VARIANT>", "ARRAY<VARIANT>"),
        ("ARRAY<STRING>", "ARRAY<STRING>"),
        ("VOID", "VOID"),
    ]


@pytest.mark.parametrize(
    ("key", "plain", "cipher"),
    [
        ("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"),
        (
            "000102030405060708090a0b0c0d0e0f1011121314151617",
            "00112233445566778899aabbccddeeff",
            "dda97ca4864cdfe06eaf70a0ec0d7191",
        ),
        (
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            "00112233445566778899aabbccddeeff",
            "8ea2b7ca516745bfeafc49904b496089",
        ),
    ],
)
def test_aes_has_the_examples_of_its_standard(key: str, plain: str, cipher: str) -> None:
    """FIPS 197, appendix C; the second block of the result is the padding."""
    sql = f"SELECT hex(aes_encrypt(X'{plain}', X'{key}', 'ECB')) AS c FROM r WINDOW 1 SECOND"
    (row,) = replay(sql, {"r": STREAMS["r"][:1]}, schemas={"r": SCHEMAS["r"]}, unit="s").at(2)
    assert row["c"].lower()[:32] == cipher


def test_gcm_has_an_example_of_its_publication() -> None:
    """McGrew and Viega, test case 4: with additional data, and a last block that is not full."""
    key, vector = "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888"
    plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
    more = "feedfacedeadbeeffeedfacedeadbeefabaddad2"
    sql = f"SELECT hex(aes_encrypt(X'{plain}', X'{key}', 'GCM', 'NONE', X'{vector}', X'{more}')) AS c FROM r WINDOW 1 SECOND"
    (row,) = replay(sql, {"r": STREAMS["r"][:1]}, schemas={"r": SCHEMAS["r"]}, unit="s").at(2)
    assert row["c"].lower().startswith(vector + "42831ec2217774244b7221b784d0d49c")
    assert row["c"].lower().endswith("5bc94fbc3221a5db94fae95ae7121a47")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("aes_encrypt(g, 'k')", "without a vector takes a random one"),
        ("aes_encrypt(g, 'k', 'CBC', 'PKCS', '')", "without a vector takes a random one"),
        ("aes_encrypt(g, 'k', 'ECB')", "a key of 16, 24 or 32 bytes, not of 1"),
        ("aes_encrypt(g, repeat('k', 16), 'ECB', 'NONE')", "does not have mode ECB with padding NONE"),
        ("aes_decrypt(g, repeat('k', 16))", "not encrypted with this key"),
        ("to_csv(g)", "to_csv takes a struct, not STRING"),
        ("time_bucket(INTERVAL 0 SECONDS, ts)", "is greater than 0"),
        ("time_bucket(INTERVAL 1 SECOND, id)", "takes a TIMESTAMP or TIMESTAMP_NTZ, not INT"),
        ("unix_nanos(ts)", "does not run unix_nanos, of nanoseconds"),
        ("st_srid(g)", "does not run st_srid, since GEOMETRY"),
        ("collect_union(k)", "collect_union takes an array, not INT"),
        ("schema_of_variant_agg(k)", "takes a VARIANT, not INT"),
        ("struct(x.*)", "there is no x in this FROM clause"),
        ("struct(* EXCEPT (z))", "has no column z to leave out"),
    ],
)
def test_what_is_refused(expression: str, message: str) -> None:
    with pytest.raises(SashError, match=message):
        replay(
            f"SELECT {expression} AS e FROM s WINDOW 5 SECONDS",
            {"s": STREAMS["s"]},
            schemas={"s": SCHEMAS["s"]},
            unit="s",
        )
