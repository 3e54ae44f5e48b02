"""Spark's SQL with window clauses: `FROM sales [RANGE 1 HOUR SLIDE 1 MINUTE] AS s ... WINDOW 1 HOUR`.

A window is written in brackets after the name of a stream (or after its alias); a trailing WINDOW applies to every stream
without its own window. Function names are not translated, so that they keep their Spark meaning.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from sash.arguments import whole_number
from sash.errors import SqlSyntaxError, UnsupportedSqlError, WindowError, excerpt
from sash.sql.pipes import PipeParser
from sash.sql.source import SqlText, did_you_mean, too_deep
from sash.sql.tokens import is_whole_table, read_as_spark
from sash.sql.words import NODES, word_of
from sash.time import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND, WEEK

UNITS = {
    "MICROSECOND": MICROSECOND,
    "MILLISECOND": MILLISECOND,
    "SECOND": SECOND,
    "MINUTE": MINUTE,
    "HOUR": HOUR,
    "DAY": DAY,
    "WEEK": WEEK,
}
"""Microseconds per unit of time; the plural is accepted too."""

LONGEST = 2**62
"""The longest window in microseconds, so that ts + length fits in an int64."""


ASSIGNMENTS = frozenset({"TUMBLE", "HOP", "CUMULATE"})
"""Table functions that assign rows to windows."""

ASSIGNMENT = "assignment"
"""Marks the table that such a function makes."""


def decimal_of(text: str) -> Decimal | None:
    """The finite number that the text denotes; None if it denotes none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def scaled(number: Decimal, factor: int) -> int | None:
    """The number times the factor, cut to twice `LONGEST` if it is larger; None if it has a fraction."""
    if number == 0:
        return 0
    if number.adjusted() > len(str(LONGEST)):
        return 2 * LONGEST if number > 0 else -2 * LONGEST
    sign, figures, _ = number.as_tuple()
    digits = "".join(map(str, figures)).strip("0")
    exponent = number.adjusted() + 1 - len(digits)
    if exponent < -len(str(factor)) or len(digits) > 60:
        return None
    value = Fraction(int(digits) * factor) * Fraction(10) ** exponent
    return int(value) * (-1 if sign else 1) if value.denominator == 1 else None


@dataclass(frozen=True)
class WindowClause:
    """A window as written in the query; `start` is its offset in the text."""

    start: int
    length: int | None = None
    slide: int | None = None
    count: int | None = None
    partition: tuple[exp.Identifier, ...] = ()


@dataclass(frozen=True)
class _BitOperator:
    """An operator on bits: the higher its level, the more tightly it binds."""

    symbol: str
    level: int
    make: Callable[[exp.Expr, exp.Expr], exp.Expr]


_BIT_OPERATORS = {
    TokenType.PIPE: _BitOperator("|", 1, lambda left, right: exp.BitwiseOr(this=left, expression=right)),
    TokenType.CARET: _BitOperator("^", 2, lambda left, right: exp.BitwiseXor(this=left, expression=right)),
    TokenType.AMP: _BitOperator("&", 3, lambda left, right: exp.BitwiseAnd(this=left, expression=right)),
}
_SHIFT_LEFT = _BitOperator("<<", 4, lambda left, right: exp.BitwiseLeftShift(this=left, expression=right))
_SHIFT_RIGHT = _BitOperator(">>", 4, lambda left, right: exp.BitwiseRightShift(this=left, expression=right))
_SHIFT_RIGHT_UNSIGNED = _BitOperator(
    ">>>", 4, lambda left, right: exp.Anonymous(this="shiftrightunsigned", expressions=[left, right])
)


def _negate_innermost(cast: exp.Cast) -> None:
    """`-1::STRING`: the sign is part of the number, and the cast is applied to both."""
    inner: exp.Expr = cast
    while isinstance(inner, exp.Cast):
        inner = inner.this
    inner.replace(exp.Neg(this=inner.copy()))


class SashParser(PipeParser):
    """Spark's parser, extended with windows, and with the precedence of Spark's operators."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "SUBSTR", "TRIM")
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser for name, parser in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if name != "TRANSFORM"
    }
    QUERY_MODIFIER_PARSERS: ClassVar[dict[Any, Any]] = {
        **SparkParser.QUERY_MODIFIER_PARSERS,
        TokenType.WINDOW: lambda self: ("windows", self._read_trailing_window()),
    }
    TERM: ClassVar[dict[Any, Any]] = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}
    ALIAS_TOKENS = SparkParser.ALIAS_TOKENS - {TokenType.WINDOW}
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
    STRICT_CAST = True
    COLON_IS_VARIANT_EXTRACT = True

    trailing_window: WindowClause | None = None

    @property
    def _source(self) -> SqlText:
        return SqlText(self.sql)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        """ROLLUP and CUBE take any expressions."""
        kind: type[exp.Cube | exp.Rollup] = exp.Cube if self._curr.token_type == TokenType.CUBE else exp.Rollup
        if not self._match_set((TokenType.CUBE, TokenType.ROLLUP)):
            return None
        return self.expression(
            kind(expressions=[] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction))
        )

    def _parse_grouping_set(self) -> exp.Expr | None:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_pivot_aggregation(self) -> exp.Expr | None:
        """An aggregate of PIVOT, or an expression of aggregates."""
        made = self._parse_bitwise()  # what follows FOR is no comprehension
        return made if self._curr.text.upper() == "FOR" else self._parse_alias(made)

    def _parse_value(self, values: bool = True) -> exp.Tuple | None:
        """A row of VALUES; one without parentheses is a single value, and AS after it names the table."""
        if self._curr.token_type == TokenType.L_PAREN:
            return super()._parse_value(values)
        value = self._parse_disjunction()
        return None if value is None else self.expression(exp.Tuple(expressions=[value]))

    def _parse_stream(self) -> None:
        """Allow `stream` as the name of a stream."""

    def _parse_table_parts(
        self, schema: bool = False, is_db_reference: bool = False, wildcard: bool = False, fast: bool = False
    ) -> exp.Table | exp.Dot | None:
        table = super()._parse_table_parts(schema, is_db_reference, wildcard, fast)
        if table is not None and self._at_window():
            table.meta["window"] = self._read_bracketed_window()
            table.set("pivots", self._parse_pivots())
        return table

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """A table, or one of TUMBLE, HOP and CUMULATE over a table, perhaps within TABLE(...)."""
        wrapped = self._curr.token_type == TokenType.TABLE and self._next.token_type == TokenType.L_PAREN
        name = self._tokens[self._index + 2] if wrapped and self._index + 2 < len(self._tokens) else self._curr
        if name.text.upper() not in ASSIGNMENTS or self._tokens[self._index + (3 if wrapped else 1) :][:1] == []:
            return super()._parse_table(*args, **kwargs)
        if self._tokens[self._index + (3 if wrapped else 1)].token_type != TokenType.L_PAREN:
            return super()._parse_table(*args, **kwargs)
        self._advance(3 if wrapped else 1)
        table = self.expression(exp.Table(this=self._read_assignment(name)))
        if wrapped and not self._match(TokenType.R_PAREN):
            raise self._expected(") at the end of TABLE(...)")
        table.meta[ASSIGNMENT] = True
        if alias := self._parse_table_alias():
            table.set("alias", alias)
        for join in self._parse_joins() if kwargs.get("joins") else ():
            table.append("joins", join)
        return table

    def _read_assignment(self, name: Token) -> exp.Anonymous:
        """The arguments: a table, DESCRIPTOR(time), and intervals, each perhaps after its name and `=>`."""
        self._match(TokenType.L_PAREN)
        arguments: list[exp.Expr | None] = []
        while True:
            if self._next.token_type == TokenType.FARROW:
                self._advance(2)
            if not arguments:
                self._match(TokenType.TABLE)
                arguments.append(self._parse_table())
            elif self._match_text_seq("DESCRIPTOR", "("):
                arguments.append(self._parse_column())
                if not self._match(TokenType.R_PAREN):
                    raise self._expected("one column in DESCRIPTOR(...)")
            else:
                arguments.append(self._parse_bitwise())
            if not self._match(TokenType.COMMA):
                break
        if not self._match(TokenType.R_PAREN):
            raise self._expected(f") at the end of {name.text.upper()}(...)")
        made = exp.Anonymous(this=name.text.upper(), expressions=arguments)
        return made.update_positions(name)

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        before = self._curr
        alias = super()._parse_table_alias(alias_tokens)
        if self._at_window():
            if alias is None:
                raise self._source.error(
                    WindowError, "a window must directly follow the name of a stream", before.start
                )
            alias.meta["window"] = self._read_bracketed_window()
        return alias

    def _parse_unary(self) -> exp.Expr | None:
        """Signs and NOTs, in a loop: a call for each would exhaust the stack where there are many."""
        first = self._curr.token_type
        if first not in (TokenType.DASH, TokenType.NOT):
            return super()._parse_unary()
        count = 0
        while self._match(first):
            count += 1
        negative_number = first == TokenType.DASH and self._curr.token_type == TokenType.NUMBER
        inner = self._parse_unary() if first == TokenType.DASH else self._parse_equality()
        if negative_number and isinstance(inner, exp.Cast):
            _negate_innermost(inner)
            count -= 1
        for _ in range(count):
            inner = self.expression(exp.Neg(this=inner) if first == TokenType.DASH else exp.Not(this=inner))
        return inner

    def _parse_bitwise(self) -> exp.Expr | None:
        """Operators on bits, by Spark's precedence: shifts, `&`, `^`, `|`, each from left to right."""
        first = self._parse_term()
        operands: list[exp.Expr] = [] if first is None else [first]
        operators: list[_BitOperator] = []
        while (operator := self._read_bit_operator()) is not None:
            self._combine(operands, operators, operator.level)
            operators.append(operator)
            operand = self._parse_term()
            if operand is None or not operands:
                raise self._expected(f"an expression on both sides of {operator.symbol}")
            operands.append(operand)
        self._combine(operands, operators, 0)
        return operands[0] if operands else None

    def _read_bit_operator(self) -> _BitOperator | None:
        if self._match_set(_BIT_OPERATORS):
            return _BIT_OPERATORS[self._prev.token_type]
        if self._match_pair(TokenType.LT, TokenType.LT):
            return _SHIFT_LEFT
        if self._match_pair(TokenType.GT, TokenType.GT):
            return _SHIFT_RIGHT_UNSIGNED if self._match(TokenType.GT) else _SHIFT_RIGHT
        return None

    def _combine(self, operands: list[exp.Expr], operators: list[_BitOperator], level: int) -> None:
        """Apply the last operators, as long as they bind at least as tightly as `level`."""
        while operators and operators[-1].level >= level:
            right, left = operands.pop(), operands.pop()
            operands.append(self.expression(operators.pop().make(left, right)))

    def _at_window(self) -> bool:
        return self._curr.token_type == TokenType.L_BRACKET

    def _read_bracketed_window(self) -> WindowClause:
        start = self._curr.start
        self._advance()
        if self._match_text_seq("NOW"):
            clause = WindowClause(start, length=1)
        elif self._match_text_seq("RANGE"):
            clause = self._read_range(start)
        elif self._match_text_seq("ROWS"):
            clause = WindowClause(start, count=self._read_count())
        elif self._match(TokenType.PARTITION_BY):
            columns = self._parse_csv(lambda: self._parse_id_var(any_token=False))
            partition = tuple(column for column in columns if isinstance(column, exp.Identifier))
            if not partition or not self._match_text_seq("ROWS"):
                raise self._expected("PARTITION BY columns ROWS n")
            clause = WindowClause(start, count=self._read_count(), partition=partition)
        else:
            raise self._expected("RANGE, ROWS, PARTITION BY or NOW")
        if not self._match(TokenType.R_BRACKET):
            raise self._expected("] at the end of the window")
        return clause

    def _read_range(self, start: int) -> WindowClause:
        if self._match_text_seq("UNBOUNDED"):
            return WindowClause(start)
        length = self._read_duration("window")
        return WindowClause(start, length, self._read_duration("slide") if self._match_text_seq("SLIDE") else None)

    def _read_trailing_window(self) -> list[exp.Expr] | None:
        token = self._curr
        if self._next.token_type not in (TokenType.NUMBER, TokenType.DASH, TokenType.INTERVAL) and (
            self._next.text.upper() != "UNBOUNDED"
        ):
            return self._parse_window_clause()
        self._advance()
        self.trailing_window = self._read_range(token.start)
        if self._curr and self._curr.token_type != TokenType.SEMICOLON:
            raise self._expected("the end of the query after WINDOW, which applies to the whole query")
        return None

    def _read_duration(self, what: str) -> int:
        """A length of time in microseconds, such as `1.5 HOURS` or `INTERVAL '5' SECONDS`."""
        start = self._curr
        self._match(TokenType.INTERVAL)
        negative = self._match(TokenType.DASH)
        token = self._curr
        if not (self._match(TokenType.NUMBER) or self._match(TokenType.STRING)):
            raise self._expected("a number and a unit, such as 1 HOUR")
        number = decimal_of(token.text)
        if number is None:
            raise self._source.error(SqlSyntaxError, f"'{excerpt(token.text)}' is not a number", token.start)
        unit = self._curr.text.upper()
        scale = UNITS.get(unit) or UNITS.get(unit.removesuffix("S"))
        if scale is None:
            hint = did_you_mean(unit, UNITS)
            raise self._expected(f"a unit of time ({', '.join(UNITS).lower()}){hint}")
        self._advance()
        if negative or number <= 0:
            raise self._source.error(WindowError, f"the length of a {what} must be greater than 0", start.start)
        length = scaled(number, scale)
        if length is None:
            raise self._source.error(WindowError, f"a {what} must be a whole number of microseconds", start.start)
        if length > LONGEST:
            raise self._source.error(WindowError, f"a {what} of this length does not fit in 64 bits", start.start)
        return int(length)

    def _read_count(self) -> int:
        negative = self._match(TokenType.DASH)
        token = self._curr
        if token.token_type != TokenType.NUMBER or not token.text.isdigit():
            raise self._expected("a whole number of rows")
        self._advance()
        count = whole_number(token.text, LONGEST)
        if count is None:
            raise self._source.error(WindowError, "a ROWS window of this size does not fit in 64 bits", token.start)
        if negative or count == 0:
            raise self._source.error(WindowError, "a ROWS window must hold at least one row", token.start)
        return count

    def _expected(self, what: str) -> SqlSyntaxError:
        token = self._curr or self._prev
        found = f"found {excerpt(token.text)}" if self._curr else "the text ends"
        return self._source.error(SqlSyntaxError, f"expected {what}; {found}", token.start)


class Sash(Spark):
    """Spark's dialect, extended with windows."""

    Parser = SashParser
    SUPPORTS_ORDER_BY_ALL = False


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
logging.getLogger("sqlglot").addFilter(lambda _: not _quiet.get())


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the parser's warnings from the log: what is wrong with a query is in Sash's errors."""
    before = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(before)


@dataclass(frozen=True)
class Statement:
    """A parsed query and its trailing window."""

    query: exp.Expr
    window: WindowClause | None
    emit: int | None = None
    """The offset of EMIT ON WINDOW CLOSE in the text, if the query ends with it."""


def parse_statement(source: SqlText) -> Statement:
    """Parse the text, which must be one query."""
    dialect = Sash()
    try:
        tokens = dialect.tokenize(source.text)
        _check_start(source, tokens)
        _refuse_patterns(source, tokens)
        tokens, emit = _without_emit(tokens)
        parser = SashParser(dialect=dialect)
        trees = [tree for tree in parser.parse(read_as_spark(tokens, source.text), source.text) if tree is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        start = _offset(source.text, first.get("line"), first.get("col"), first.get("highlight"))
        raise source.error(SqlSyntaxError, _readable(first.get("description")), start) from None
    except TokenError as error:
        raise source.error(SqlSyntaxError, f"cannot parse the query: {error}") from None
    except RecursionError:
        raise too_deep(source) from None
    if len(trees) != 1:
        raise source.error(UnsupportedSqlError, f"expected one query, but the text has {len(trees)}", trees[1])
    return Statement(trees[0], parser.trailing_window, emit)


_EMIT = ("EMIT", "ON", "WINDOW", "CLOSE")


def _without_emit(tokens: list[Token]) -> tuple[list[Token], int | None]:
    """The tokens without EMIT ON WINDOW CLOSE at their end, and its offset."""
    ends = len(tokens) - (tokens[-1].token_type == TokenType.SEMICOLON)
    last = tokens[max(0, ends - len(_EMIT)) : ends]
    if tuple(token.text.upper() for token in last) != _EMIT:
        return tokens, None
    return tokens[: ends - len(_EMIT)] + tokens[ends:], last[0].start


def _refuse_patterns(source: SqlText, tokens: list[Token]) -> None:
    """Reject MATCH_RECOGNIZE before it is parsed."""
    for token, after in itertools.pairwise(tokens):
        if token.text.upper() == "MATCH_RECOGNIZE" and after.token_type == TokenType.L_PAREN:
            raise source.error(
                UnsupportedSqlError,
                "Sash does not run MATCH_RECOGNIZE: join the stream with itself, with bounds of the times, or compare rows "
                "with LAG and LEAD",
                token.start,
            )


def _check_start(source: SqlText, tokens: list[Token]) -> None:
    """Reject statements that are not queries before they are parsed."""
    start = next((n for n, token in enumerate(tokens) if token.token_type != TokenType.L_PAREN), len(tokens))
    opening = tokens[start] if start < len(tokens) else None
    if opening is None or opening.token_type == TokenType.SEMICOLON:
        raise source.error(SqlSyntaxError, "the query is empty")
    if opening.token_type in (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES):
        return
    if is_whole_table(tokens, start):
        return
    if opening.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER):
        hint = did_you_mean(opening.text, ["select", "with"])
        raise source.error(
            SqlSyntaxError, f"a query starts with SELECT or WITH, not {opening.text}{hint}", opening.start
        )
    raise source.error(
        UnsupportedSqlError, f"{opening.text.upper()} is not a query: Sash runs SELECT statements", opening.start
    )


def _missing_in(kind: type[exp.Expr]) -> str:
    """The message that an operand or another part of a construct is missing.

    >>> _missing_in(exp.BitwiseOr), _missing_in(exp.Sum), _missing_in(exp.AtIndex)
    ('an expression is missing in |', 'an expression is missing in SUM', 'an expression is missing')
    """
    if issubclass(kind, exp.Binary):
        written = kind(this=exp.column("a"), expression=exp.column("b")).sql(dialect="spark")
        if found := re.fullmatch(r"a (\W+|[A-Z ]+) b", written):
            return f"an expression is missing in {found[1]}"
    name = word_of(kind()) if kind in NODES else kind.__name__
    return "an expression is missing" + (f" in {name.upper()}" if kind in NODES or name.istitle() else "")


def _readable(description: str | None) -> str:
    """The parser's message without its internal class names."""
    if missing := re.match(r"Required keyword: '\w+' missing for <class '.*\.(\w+)'>", description or ""):
        return _missing_in(getattr(exp, missing[1]))
    return (description or "this is not SQL").replace("Invalid expression / Unexpected token", "unexpected here")


def _offset(text: str, line: int | None, column: int | None, highlight: str | None) -> int | None:
    """The offset of a token, given its line and the column of its last character."""
    if line is None or column is None:
        return None
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return max(0, start + column - max(1, len(highlight or "")))
