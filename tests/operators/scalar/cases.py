"""Every function and cast over the table of edge values: its text in Spark SQL, and the expression."""

from __future__ import annotations

import pyarrow as pa

from sash.plan.expressions import Expression
from sash.plan.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, TINYINT
from tests.operators.scalar.build import call, case, cast, col, lit, try_cast


def dec(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(precision, scale)


i, j, k, l, d, e, f, g = (col(name) for name in "ijkldefg")
m, n, p, s, t, q, w, b, c = (col(name) for name in "mnpstqwbc")
day, day2, ts, ntz, bin_ = (col(name) for name in ("day", "day2", "ts", "ntz", "bin"))

ARITHMETIC: list[tuple[str, Expression]] = [
    ("i + j", call("add", INT, i, j)),
    ("l - 1", call("subtract", BIGINT, l, lit(1, BIGINT))),
    ("i * j", call("multiply", INT, i, j)),
    ("-i", call("negate", INT, i)),
    ("-d", call("negate", DOUBLE, d)),
    ("d * e", call("multiply", DOUBLE, d, e)),
    ("d + e", call("add", DOUBLE, d, e)),
    ("cast(i as double) / cast(j as double)", call("divide", DOUBLE, cast(i, DOUBLE), cast(j, DOUBLE))),
    ("i div j", call("int_divide", BIGINT, cast(i, BIGINT), cast(j, BIGINT))),
    ("m div n", call("int_divide", BIGINT, m, n)),
    ("i % j", call("modulo", INT, i, j)),
    ("d % 2.5D", call("modulo", DOUBLE, d, 2.5)),
    ("pmod(i, j)", call("pmod", INT, i, j)),
    ("pmod(g, -2.5D)", call("pmod", DOUBLE, g, -2.5)),
    ("m + n", call("add", dec(13, 4), m, n)),
    ("m - n", call("subtract", dec(13, 4), m, n)),
    ("m * n", call("multiply", dec(23, 6), m, n)),
    ("m / n", call("divide", dec(27, 15), m, n)),
    ("m % n", call("modulo", dec(12, 4), m, n)),
    ("pmod(m, n)", call("pmod", dec(12, 4), m, n)),
    ("p + p", call("add", dec(38, 17), p, p)),
    ("p * m", call("multiply", dec(38, 9), p, m)),
    ("p / n", call("divide", dec(38, 14), p, n)),
    ("m / p", call("divide", dec(38, 12), m, p)),
    ("p / p", call("divide", dec(38, 6), p, p)),
    ("-m", call("negate", dec(10, 2), m)),
    ("abs(m)", call("abs", dec(10, 2), m)),
    ("abs(i)", call("abs", INT, i)),
    ("abs(d)", call("abs", DOUBLE, d)),
    ("i & j", call("bit_and", INT, i, j)),
    ("i | j", call("bit_or", INT, i, j)),
    ("i ^ j", call("bit_xor", INT, i, j)),
]
COMPARISONS: list[tuple[str, Expression]] = [
    *((f"{left} {sign} {right}", call(name, BOOLEAN, col(left), col(right)))
      for left, right in (("d", "e"), ("i", "j"), ("s", "t"), ("b", "c"), ("day", "day2"))
      for sign, name in (("=", "eq"), ("<>", "ne"), ("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge"), ("<=>", "eq_null_safe"))),
    ("d > double('NaN')", call("gt", BOOLEAN, d, float("nan"))),
    ("d >= double('NaN')", call("ge", BOOLEAN, d, float("nan"))),
    ("d < double('NaN')", call("lt", BOOLEAN, d, float("nan"))),
    ("d = 0D", call("eq", BOOLEAN, d, 0.0)),
    ("b and c", call("and", BOOLEAN, b, c)),
    ("b or c", call("or", BOOLEAN, b, c)),
    ("not b", call("not", BOOLEAN, b)),
    ("d is null", call("is_null", BOOLEAN, d)),
    ("d is not null", call("is_not_null", BOOLEAN, d)),
    ("isnan(d)", call("is_nan", BOOLEAN, d)),
    ("i in (1, 2, null)", call("in", BOOLEAN, i, lit(1, INT), lit(2, INT), lit(None, INT))),
    ("i not in (1, 2)", call("not", BOOLEAN, call("in", BOOLEAN, i, lit(1, INT), lit(2, INT)))),
    ("d in (0D, double('NaN'))", call("in", BOOLEAN, d, 0.0, float("nan"))),
    ("s in ('abc', '12')", call("in", BOOLEAN, s, "abc", "12")),
    ("s in (t, 'abc')", call("in", BOOLEAN, s, t, "abc")),
    ("coalesce(i, j, 5)", call("coalesce", INT, i, j, lit(5, INT))),
    ("nullif(i, j)", call("nullif", INT, i, j)),
    ("nullif(d, double('NaN'))", call("nullif", DOUBLE, d, float("nan"))),
    ("greatest(d, e)", call("greatest", DOUBLE, d, e)),
    ("least(d, e)", call("least", DOUBLE, d, e)),
    ("greatest(s, t, 'b')", call("greatest", STRING, s, t, "b")),
    ("least(b, c)", call("least", BOOLEAN, b, c)),
    ("greatest(day, day2)", call("greatest", DATE, day, day2)),
    ("case when i > 0 then 10 div i when i < 0 then -i end",
     case(BIGINT, call("gt", BOOLEAN, i, lit(0, INT)), call("int_divide", BIGINT, lit(10, BIGINT), cast(i, BIGINT)),
          call("lt", BOOLEAN, i, lit(0, INT)), call("negate", INT, i))),
    ("case when b then s else t end", case(STRING, b, s, t)),
    ("i <> 0 and 10 / i > 1", call("and", BOOLEAN, call("ne", BOOLEAN, i, lit(0, INT)),
     call("gt", BOOLEAN, call("divide", DOUBLE, lit(10.0), cast(i, DOUBLE)), 1.0))),
]  # fmt: skip
MATHEMATICS: list[tuple[str, Expression]] = [
    ("ceil(g)", call("ceil", BIGINT, g)),
    ("floor(g)", call("floor", BIGINT, g)),
    ("ceil(m)", call("ceil", dec(9, 0), m)),
    ("floor(m)", call("floor", dec(9, 0), m)),
    *((f"round(d, {places})", call("round", DOUBLE, d, lit(places, INT))) for places in (0, 1, 2, 5, -1, -3, 30)),
    *((f"round(g, {places})", call("round", DOUBLE, g, lit(places, INT))) for places in (0, 1, 2, -1)),
    ("round(f, 1)", call("round", FLOAT, f, lit(1, INT))),
    ("round(i, -1)", call("round", INT, i, lit(-1, INT))),
    ("round(i, 2)", call("round", INT, i, lit(2, INT))),
    ("round(m, 1)", call("round", dec(10, 1), m, lit(1, INT))),
    ("round(m, -1)", call("round", dec(9, 0), m, lit(-1, INT))),
    ("sign(d)", call("sign", DOUBLE, d)),
    ("sqrt(d)", call("sqrt", DOUBLE, d)),
    ("exp(g)", call("exp", DOUBLE, g)),
    ("ln(d)", call("ln", DOUBLE, d)),
    ("log10(d)", call("log10", DOUBLE, d)),
    ("log2(d)", call("log2", DOUBLE, d)),
    ("pow(g, e)", call("pow", DOUBLE, g, e)),
]
STRINGS: list[tuple[str, Expression]] = [
    *((f"{name}(s)", call(name, STRING, s)) for name in ("upper", "lower", "trim", "ltrim", "rtrim", "reverse", "initcap")),
    ("trim(both 'aA ' from s)", call("trim", STRING, s, "aA ")),
    ("length(s)", call("length", INT, s)),
    ("length(bin)", call("length", INT, bin_)),
    *((f"substring(s, {at}, {size})", call("substring", STRING, s, lit(at, INT), lit(size, INT)))
      for at, size in ((1, 2), (0, 2), (-3, 2), (-20, 18), (2, -1), (-2, 2147483647), (2, 100))),
    ("substring(s, i, j)", call("substring", STRING, s, i, j)),
    ("substring(bin, 2, 1)", call("substring", BINARY, bin_, lit(2, INT), lit(1, INT))),
    ("left(s, 2)", call("left", STRING, s, lit(2, INT))),
    ("left(s, -2)", call("left", STRING, s, lit(-2, INT))),
    ("right(s, 2)", call("right", STRING, s, lit(2, INT))),
    ("right(s, j)", call("right", STRING, s, j)),
    ("concat(s, '-', t)", call("concat", STRING, s, "-", t)),
    ("concat_ws('-', s, t, null)", call("concat_ws", STRING, "-", s, t, lit(None))),
    ("concat_ws(t, s, 'x')", call("concat_ws", STRING, t, s, "x")),
    ("replace(s, 'l', 'LL')", call("replace", STRING, s, "l", "LL")),
    ("replace(s, t, '')", call("replace", STRING, s, t, "")),
    ("lpad(s, 7, 'xy')", call("lpad", STRING, s, lit(7, INT), "xy")),
    ("rpad(s, 7, 'xy')", call("rpad", STRING, s, lit(7, INT), "xy")),
    ("lpad(s, j, t)", call("lpad", STRING, s, j, t)),
    ("repeat(s, j)", call("repeat", STRING, s, j)),
    ("instr(s, t)", call("instr", INT, s, t)),
    ("instr(s, 'l')", call("instr", INT, s, "l")),
    ("startswith(s, t)", call("starts_with", BOOLEAN, s, t)),
    ("endswith(s, t)", call("ends_with", BOOLEAN, s, t)),
    ("contains(s, t)", call("contains", BOOLEAN, s, t)),
    ("contains(s, 'l')", call("contains", BOOLEAN, s, "l")),
    *((f"split_part(s, ',', {part})", call("split_part", STRING, s, ",", lit(part, INT))) for part in (1, 3, 9, -1, -9)),
    ("split_part(s, '', 1)", call("split_part", STRING, s, "", lit(1, INT))),
    ("ascii(s)", call("ascii", INT, s)),
    ("translate(s, 'abcl', 'XY')", call("translate", STRING, s, "abcl", "XY")),
    ("s like '%l%'", call("like", BOOLEAN, s, "%l%")),
    ("s like 'line_break'", call("like", BOOLEAN, s, "line_break")),
    ("s like 'x\\\\_y\\\\%z'", call("like", BOOLEAN, s, "x\\_y\\%z")),
    ("s like concat(t, '%')", call("like", BOOLEAN, s, call("concat", STRING, t, "%"))),
    ("s ilike 'HÉ%'", call("ilike", BOOLEAN, s, "HÉ%")),
    ("s rlike '^[a-h].*c$'", call("rlike", BOOLEAN, s, "^[a-h].*c$")),
    ("s rlike 'l(?=o)'", call("rlike", BOOLEAN, s, "l(?=o)")),
    ("md5(s)", call("md5", STRING, s)),
    ("sha2(s, 256)", call("sha2", STRING, s, lit(256, INT))),
    ("crc32(s)", call("crc32", BIGINT, s)),
    ("hex(s)", call("hex", STRING, s)),
    ("hex(l)", call("hex", STRING, l)),
    ("hex(bin)", call("hex", STRING, bin_)),
]  # fmt: skip
DATES: list[tuple[str, Expression]] = [
    *((f"{name}({column})", call(name, INT, col(column)))
      for column in ("day", "ts", "ntz")
      for name in ("year", "month", "day", "quarter", "weekofyear", "dayofweek", "dayofyear")),
    *((f"{name}({column})", call(name, INT, col(column))) for column in ("ts", "ntz") for name in ("hour", "minute", "second")),
    ("date_add(day2, i)", call("date_add", DATE, day2, i)),
    ("date_sub(day2, i)", call("date_sub", DATE, day2, i)),
    ("datediff(day, day2)", call("datediff", INT, day, day2)),
    *((f"date_trunc('{unit}', ts)", call("date_trunc", TIMESTAMP, unit, ts))
      for unit in ("year", "YYYY", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond", "bogus")),
    ("to_date(ts)", call("to_date", DATE, ts)),
    ("last_day(day)", call("last_day", DATE, day)),
    ("add_months(day2, j)", call("add_months", DATE, day2, j)),
    ("unix_timestamp(ts)", call("unix_timestamp", BIGINT, ts)),
    ("unix_seconds(ts)", call("unix_seconds", BIGINT, ts)),
    ("unix_millis(ts)", call("unix_millis", BIGINT, ts)),
    ("unix_micros(ts)", call("unix_micros", BIGINT, ts)),
    ("timestamp_seconds(i)", call("timestamp_seconds", TIMESTAMP, i)),
    ("timestamp_seconds(g)", call("timestamp_seconds", TIMESTAMP, g)),
    ("timestamp_seconds(m)", call("timestamp_seconds", TIMESTAMP, m)),
    ("timestamp_millis(i)", call("timestamp_millis", TIMESTAMP, i)),
    ("timestamp_micros(i)", call("timestamp_micros", TIMESTAMP, i)),
    ("timestampadd(microsecond, i, ts)", call("timestamp_add_micros", TIMESTAMP, ts, cast(i, BIGINT))),
]  # fmt: skip
_NAMES = {
    BOOLEAN: "boolean", TINYINT: "tinyint", INT: "int", BIGINT: "bigint", FLOAT: "float", DOUBLE: "double", STRING: "string",
    BINARY: "binary", DATE: "date", TIMESTAMP: "timestamp", TIMESTAMP_NTZ: "timestamp_ntz", dec(10, 2): "decimal(10,2)",
    dec(5, 1): "decimal(5,1)", dec(38, 18): "decimal(38,18)", dec(38, 0): "decimal(38,0)", dec(3, 3): "decimal(3,3)",
}  # fmt: skip
_NUMBERS = (BOOLEAN, TINYINT, INT, BIGINT, FLOAT, DOUBLE, dec(10, 2), dec(5, 1), dec(38, 18), dec(38, 0), dec(3, 3))
_CASTS: dict[str, tuple[pa.DataType, ...]] = {
    **dict.fromkeys("ikldgfm", (*_NUMBERS, STRING, TIMESTAMP)),
    "p": (*_NUMBERS, STRING),  # to a timestamp Spark lets it overflow unseen
    "b": (*_NUMBERS, STRING),
    "q": _NUMBERS,
    "w": (DATE, TIMESTAMP, TIMESTAMP_NTZ),
    "s": (BINARY,),
    "day": (STRING, TIMESTAMP, TIMESTAMP_NTZ),
    "ts": (STRING, DATE, TIMESTAMP_NTZ, TINYINT, INT, BIGINT, DOUBLE, dec(38, 18), dec(10, 2)),
    "ntz": (STRING, DATE, TIMESTAMP),
}
CASTS: list[tuple[str, Expression]] = [
    (f"try_cast({name} as {_NAMES[dtype]})", try_cast(col(name), dtype))
    for name, targets in _CASTS.items()
    for dtype in targets
    if col(name).dtype != dtype
]
ALL = [*ARITHMETIC, *COMPARISONS, *MATHEMATICS, *STRINGS, *DATES, *CASTS]
