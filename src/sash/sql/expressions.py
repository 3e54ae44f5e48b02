"""Binds scalar expressions: from the parser's tree to typed expressions over the columns of a scope."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sash.errors import TypeMismatchError, UnsupportedSqlError
from sash.plan.compound import balanced
from sash.plan.expressions import Call, Case, Expression, Literal, UserCall, Variable
from sash.plan.sql_types import is_interval
from sash.plan.types import BINARY, BOOLEAN, DATE, NULL, STRING, is_numeric, is_struct, type_name
from sash.sql import intervals, now
from sash.sql.aggregate_binding import bind_aggregate_call
from sash.sql.aggregates import AGGREGATES, AggregateCollector
from sash.sql.coercion import castable, coerce, unify
from sash.sql.columns import bind_column, bind_item
from sash.sql.correlation import Scopes
from sash.sql.functions import INFIX, call, canonical_name, cast_of
from sash.sql.grouping import grouping_call
from sash.sql.interval_literals import add_interval, constant_interval
from sash.sql.lambdas import bind_higher_order
from sash.sql.literals import backslash_pattern, moment_literal, number_literal
from sash.sql.nested_rules import arrays_zip, field_of, struct_of
from sash.sql.scope import Scope, without
from sash.sql.signatures.base import OnlySparkError
from sash.sql.signatures.dates import WITH_UNITS, time_field
from sash.sql.signatures.lists import moments
from sash.sql.signatures.variants import extracted
from sash.sql.source import SqlText
from sash.sql.spark_functions import SparkFunctions
from sash.sql.subqueries import COMPARISONS, Subqueries
from sash.sql.type_names import type_of
from sash.sql.windows import WindowCollector, bind_window
from sash.sql.words import word_of

_INTERVAL_ARITHMETIC = ("add", "subtract", "multiply", "divide", "int_divide")
_SUBQUERIES = (exp.Subquery, exp.Select, exp.SetOperation, exp.Exists)


@dataclass(frozen=True)
class ExpressionBinder:
    """Binds expressions in one clause of one SELECT.

    `first` are names with precedence over the columns of the scope (ORDER BY); `aliases` are resolved after them.
    """

    source: SqlText
    scope: Scope
    spark_functions: SparkFunctions
    clause: str
    aggregates: AggregateCollector | None = None
    first: Mapping[str, Expression] = field(default_factory=dict)
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    windows: WindowCollector | None = None
    bound: Mapping[int, Expression] = field(default_factory=dict)
    """Expressions that are bound already, by the identity of their nodes."""
    around: Scopes = ()
    """The queries around this one, the outermost first."""
    subqueries: Subqueries | None = None
    """The subqueries of the clause; None where there may be none."""
    variables: Mapping[str, Variable] = field(default_factory=dict)
    """The variables of the lambdas around, by their names in lower case."""

    def bind(self, node: exp.Expr) -> Expression:
        """The bound expression; type errors include their position.

        A chain such as `a + b + c + ...` is as deep as it is long. Parts of it are bound beforehand, the innermost first, so
        that no call of this method descends far.
        """
        binder = self
        for part in reversed(_steps(node, self.bound)):
            binder = replace(self, bound={id(part): binder.bind(part)})
        try:
            return binder._bind(node)
        except (TypeMismatchError, UnsupportedSqlError) as error:
            if error.line is not None:
                raise
            raise self.source.error(type(error), str(error), node) from None

    def predicate(self, node: exp.Expr) -> Expression:
        """The bound expression, which must be BOOLEAN."""
        bound = self.bind(node)
        if bound.dtype not in (BOOLEAN, NULL):
            raise self.source.error(
                TypeMismatchError, f"{self.clause} takes a BOOLEAN, not {type_name(bound.dtype)}", node
            )
        return coerce(bound, BOOLEAN)

    def condition(self, node: exp.Expr) -> Expression:
        """The predicate of HAVING: as in Spark, a number is true if it is not 0."""
        bound = self.bind(node)
        if is_numeric(bound.dtype):
            return cast_of(bound, BOOLEAN)
        return replace(self, bound={**self.bound, id(node): bound}).predicate(node)

    def _bind(self, node: exp.Expr) -> Expression:
        if id(node) in self.bound:
            return self.bound[id(node)]
        if isinstance(node, exp.Connector):
            return self._connector(node)
        if type(node) in INFIX:
            return self._binary(node)
        handler = _HANDLERS.get(type(node))
        if handler is None:
            return self._other(node)
        method, handled = handler
        self.source.refuse_all_but(node, *handled)
        return method(self, node)

    def _other(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.Exists):
            return self._nested(node).exists(node, node.this)
        if isinstance(node, _SUBQUERIES):
            return self._nested(node).scalar(node)
        if isinstance(node, exp.Star):
            raise self.unsupported(f"* in {self.clause}", node)
        if isinstance(node, exp.All):
            raise self.unsupported("ANY and ALL without a comparison and a subquery", node)
        if isinstance(node, exp.Identifier) and node.name.lower() in self.variables:
            return self.variables[node.name.lower()]
        if isinstance(node, exp.Placeholder | exp.Parameter | exp.Alias | exp.Kwarg | exp.Lambda | exp.Var):
            raise self.unsupported(f"{node.sql(dialect='spark')} here", node)
        return self._by_spark(node)

    def _by_spark(self, node: exp.Expr) -> Expression:
        """An expression that only Spark evaluates; within a lambda, Spark evaluates the whole call with the lambda."""
        if self.variables:
            raise OnlySparkError(f"Sash does not run {node.sql(dialect='spark')} in a lambda")
        return self.spark_functions.bind(node, self._column)

    def unsupported(self, what: str, node: exp.Expr) -> Exception:
        """The error that Sash does not run something."""
        return self.source.error(UnsupportedSqlError, f"Sash does not run {what}", node)

    def _nested(self, node: exp.Expr) -> Subqueries:
        """The subqueries of the clause; an error if there may be none."""
        if self.subqueries is None:
            raise self.unsupported(f"a subquery in {self.clause}; join it instead", node)
        return self.subqueries

    def _column(self, node: exp.Expr) -> Expression:
        assert isinstance(node, exp.Column)
        is_grouping = len(node.parts) == 1 and node.name.lower() == "grouping__id" and self.aggregates is not None
        if is_grouping and not self.scope.find(node.name, None):
            return self._grouping(exp.Anonymous(this="grouping_id", expressions=[]))
        return bind_column(self, node)

    def _field(self, node: exp.Expr) -> Expression:
        """`expression.field`."""
        if not isinstance(node.expression, exp.Identifier):
            raise self.unsupported(node.sql(dialect="spark"), node)
        return field_of(self.bind(node.this), node.expression.name)

    def _item(self, node: exp.Expr) -> Expression:
        return bind_item(self, node)

    def _tuple(self, node: exp.Expr) -> Expression:
        return self._struct(node.expressions)

    def _expand_stars(self, node: exp.Expr) -> None:
        """Write columns for `*` and `s.*` in the arguments of a function."""
        if not any(map(_star_of, node.expressions)):
            return
        made: list[exp.Expr] = []
        for argument in node.expressions:
            star = _star_of(argument)
            if star is None:
                made.append(argument)
                continue
            self.source.refuse_all_but(star, "except_")
            qualifier = argument.table if isinstance(argument, exp.Column) else None
            entries = self.scope.star(self.source, qualifier, argument)
            for entry in without(self.source, star.args.get("except_") or [], entries):
                table = None if entry.qualifier is None else exp.to_identifier(entry.qualifier, quoted=True)
                column = exp.Column(this=exp.to_identifier(entry.name, quoted=True), table=table)
                column.meta.update(argument.meta)
                made.append(column)
        node.set("expressions", made)

    def _struct(self, nodes: list[exp.Expr]) -> Expression:
        """STRUCT(a, b AS name, ...): a column keeps its name, and any other field is called by its position."""
        names = [
            part.alias_or_name if isinstance(part, exp.Alias | exp.Column | exp.Dot) else f"col{place}"
            for place, part in enumerate(nodes, 1)
        ]
        return struct_of(names, [self.bind(part.this if isinstance(part, exp.Alias) else part) for part in nodes])

    def _arrays_zip(self, nodes: list[exp.Expr]) -> Expression:
        """ARRAYS_ZIP(a, b, ...): a column keeps its name, and any other field is called by its position."""
        names = [
            part.name if isinstance(part, exp.Column | exp.Dot | exp.Identifier) else str(place)
            for place, part in enumerate(nodes)
        ]
        return arrays_zip(names, [self.bind(part) for part in nodes])

    def _connector(self, node: exp.Connector) -> Expression:
        """AND and OR; long chains are left-deep trees, so they are unrolled."""
        if type(node) not in (exp.And, exp.Or):
            raise self.unsupported(word_of(node), node)
        operands: list[exp.Expr] = []
        inner: exp.Expr = node
        while type(inner) is type(node):
            operands.append(inner.expression)
            inner = inner.this
        operands.append(inner)
        name = "and" if isinstance(node, exp.And) else "or"
        bound = [self.bind(operand) for operand in reversed(operands)]
        return balanced(bound, lambda left, right: call(name, [left, right]))

    def _binary(self, node: exp.Expr) -> Expression:
        self.source.refuse_all_but(node, "this", "expression", "typed", "safe", "coalesce", "negate")
        if isinstance(node, exp.Add | exp.Sub):
            moved = self._moved(node)
            if moved is not None:
                return moved
        name = INFIX[type(node)]
        if isinstance(node.expression, exp.Any | exp.All) and isinstance(node, exp.Like | exp.ILike):
            return self._like_several(node)
        if isinstance(node.expression, exp.Any | exp.All) and name in COMPARISONS:
            every = isinstance(node.expression, exp.All)
            return self._nested(node).compare(name, self.bind(node.this), node.expression.this, every)
        left, right = self.bind(node.this), self.bind(node.expression)
        if name in ("add", "subtract") and left.dtype == DATE and is_numeric(right.dtype):
            return call("date_add" if name == "add" else "date_sub", [left, right])
        if name in _INTERVAL_ARITHMETIC:
            found = intervals.arithmetic(name, left, right)
            if found is not None:
                return found
        return _negated(node, call(name, [left, right]))

    def _like_several(self, node: exp.Expr) -> Expression:
        """LIKE ANY, LIKE SOME and LIKE ALL over a list of patterns."""
        name, list_ = INFIX[type(node)], node.expression.this
        patterns = list_.expressions if isinstance(list_, exp.Tuple) else [list_.unnest()]
        if not patterns or any(isinstance(pattern, _SUBQUERIES) for pattern in patterns):
            raise self.unsupported("LIKE ANY and LIKE ALL of anything but a list of patterns", node)
        subject = self.bind(node.this)
        matches = [_negated(node, call(name, [subject, self.bind(pattern)])) for pattern in patterns]
        connective = "or" if isinstance(node.expression, exp.Any) else "and"
        return balanced(matches, lambda left, right: call(connective, [left, right]))

    def _moved(self, node: exp.Expr) -> Expression | None:
        """A date or time plus or minus a constant interval; None if there is no interval."""
        sign = 1 if isinstance(node, exp.Add) else -1
        other = node.this
        interval = constant_interval(self.source, node.expression)
        if interval is None and sign == 1:
            interval, other = constant_interval(self.source, node.this), node.expression
        if interval is None:
            return None
        whole = constant_interval(self.source, node)
        if whole is not None:
            return whole.literal
        moment = self.bind(other)
        moved = interval if sign == 1 else interval.negated()
        return None if is_interval(moment.dtype) else add_interval(moment, moved)

    def _extracted(self, node: exp.Expr) -> Expression:
        """`variant:a.b[0]`."""
        path = "$"
        for step in node.expression.expressions:
            if isinstance(step, exp.JSONPathKey):
                path += f'["{step.this}"]'
            elif isinstance(step, exp.JSONPathSubscript) and isinstance(step.this, int):
                path += f"[{step.this}]"
            elif not isinstance(step, exp.JSONPathRoot):
                raise self.unsupported("this path of a VARIANT", node)
        return extracted("a path after a colon", self.bind(node.this), path)

    def _interval(self, node: exp.Expr) -> Expression:
        interval = constant_interval(self.source, node)
        assert interval is not None
        return interval.literal

    def _literal(self, node: exp.Expr) -> Expression:
        text = str(node.this)
        return Literal(text, STRING) if node.args.get("is_string") else number_literal(self.source, node, text)

    def _text(self, node: exp.Expr) -> Expression:
        return Literal(str(node.this), STRING)

    def _boolean(self, node: exp.Expr) -> Expression:
        return Literal(bool(node.this), BOOLEAN)

    def _null(self, node: exp.Expr) -> Expression:
        return Literal(None, NULL)

    def _bytes(self, node: exp.Expr) -> Expression:
        digits = str(node.this)
        try:
            return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), BINARY)
        except ValueError:
            raise TypeMismatchError(f"X'{digits}' is not hexadecimal") from None

    def _inner(self, node: exp.Expr) -> Expression:
        return self.bind(node.this)

    def _not(self, node: exp.Expr) -> Expression:
        inner = node.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return call("is_not_null", [self.bind(inner.this)])
        return call("not", [self.bind(inner)])

    def _negate(self, node: exp.Expr) -> Expression:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.args.get("is_string"):
            return number_literal(self.source, node, f"-{inner.this}")
        interval = constant_interval(self.source, node)
        if interval is not None:
            return interval.literal
        return call("negate", [self.bind(inner)])

    def _bit_not(self, node: exp.Expr) -> Expression:
        return call("bit_not", [self.bind(node.this)])

    def _is(self, node: exp.Expr) -> Expression:
        value, test = self.bind(node.this), node.expression
        if isinstance(test, exp.Null):
            return call("is_null", [value])
        if isinstance(test, exp.Boolean):
            return call("eq_null_safe", [value, Literal(bool(test.this), BOOLEAN)])
        raise self.unsupported(f"IS {test.sql(dialect='spark')}", node)

    def _differs(self, node: exp.Expr) -> Expression:
        return call("not", [call("eq_null_safe", [self.bind(node.this), self.bind(node.expression)])])

    def _between(self, node: exp.Expr) -> Expression:
        value = self.bind(node.this)
        low, high = self.bind(node.args["low"]), self.bind(node.args["high"])
        return call("and", [call("ge", [value, low]), call("le", [value, high])])

    def _in(self, node: exp.Expr) -> Expression:
        if node.args.get("query"):
            return self._nested(node).contains(self._row(node.this), node, node.args["query"])
        choices = node.expressions
        if not choices:
            raise self.unsupported("IN over anything but a list of values", node)
        value = self.bind(node.this)
        return call("in", [value, *(_named_alike(value, self.bind(choice)) for choice in choices)])

    def _row(self, node: exp.Expr) -> list[Expression]:
        """The columns on the left side of IN (subquery)."""
        while isinstance(node, exp.Paren):
            node = node.this
        return [self.bind(part) for part in node.expressions] if isinstance(node, exp.Tuple) else [self.bind(node)]

    def _escape(self, node: exp.Expr) -> Expression:
        like = node.this
        if not isinstance(like, exp.Like | exp.ILike):
            raise self.unsupported("ESCAPE here", node)
        self.source.refuse_all_but(like, "this", "expression", "negate")
        pattern, escape = self.bind(like.expression), self.bind(node.expression)
        if not isinstance(pattern, Literal) or not isinstance(escape, Literal):
            raise self.unsupported("ESCAPE of a pattern that is not a constant", node)
        standard = Literal(backslash_pattern(pattern.value, escape.value), STRING)
        return _negated(like, call(INFIX[type(like)], [self.bind(like.this), standard]))

    def _concat(self, node: exp.Expr) -> Expression:
        return call("concat", [self.bind(part) for part in node.expressions])

    def _case(self, node: exp.Expr) -> Expression:
        subject = self.bind(node.this) if node.this else None
        branches = []
        for branch in node.args["ifs"]:
            if subject is None:
                condition = replace(self, clause="WHEN").predicate(branch.this)
            else:
                condition = call("eq", [subject, self.bind(branch.this)])
            branches.append((condition, self.bind(branch.args["true"])))
        default = node.args.get("default")
        return _case_of(branches, None if default is None else self.bind(default))

    def _if(self, node: exp.Expr) -> Expression:
        condition = replace(self, clause="IF").predicate(node.this)
        otherwise = node.args.get("false")
        return _case_of(
            [(condition, self.bind(node.args["true"]))], None if otherwise is None else self.bind(otherwise)
        )

    def _cast(self, node: exp.Expr) -> Expression:
        dtype = type_of(self.source, node.args["to"])
        if isinstance(node.this, exp.Literal) and node.this.is_string and not isinstance(node, exp.TryCast):
            constant = moment_literal(str(node.this.this), dtype)
            if constant is not None:
                return constant
        argument = self.bind(node.this)
        if not castable(argument.dtype, dtype):
            raise TypeMismatchError(f"{type_name(argument.dtype)} cannot be cast to {type_name(dtype)}")
        if isinstance(argument, Literal) and is_numeric(argument.dtype) and is_numeric(dtype):
            return coerce(argument, dtype)
        return cast_of(argument, dtype, lenient=isinstance(node, exp.TryCast))

    def _substring(self, node: exp.Expr) -> Expression:
        parts = [node.this, node.args.get("start"), node.args.get("length")]
        return call("substring", [self.bind(part) for part in parts if part is not None])

    def _trim(self, node: exp.Expr) -> Expression:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        parts = [node.this, node.args.get("expression")]
        return call(name, [self.bind(part) for part in parts if part is not None])

    def _position(self, node: exp.Expr) -> Expression:
        parts = [node.args["substr"], node.this, node.args.get("position")]
        return call("locate", [self.bind(part) for part in parts if part is not None])

    def _overlay(self, node: exp.Expr) -> Expression:
        """OVERLAY(text PLACING text FROM position [FOR length])."""
        parts = [node.this, node.expression, node.args["from_"], node.args.get("for_")]
        return call("overlay", [self.bind(part) for part in parts if part is not None])

    def _extract(self, node: exp.Expr) -> Expression:
        return time_field(node.this.name, self.bind(node.expression))

    def _function(self, node: exp.Expr) -> Expression:
        written = node.name.lower()
        arguments = node.expressions
        if written in AGGREGATES or written in self.spark_functions.user.aggregates:
            return self._aggregate(node)
        self._expand_stars(node)
        arguments = node.expressions
        if written in ("grouping", "grouping_id"):
            return self._grouping(node)
        if written in self.spark_functions.user.functions:
            code = self.spark_functions.user.functions[written]
            return UserCall(code.name, tuple(self.bind(argument) for argument in arguments), code.dtype, code)
        if written in now.NAMES and not arguments:
            return self._now(node)
        if any(isinstance(argument, exp.Lambda) for argument in arguments):
            return self._higher_order(node)
        if written == "exists" and len(arguments) == 1 and isinstance(arguments[0], _SUBQUERIES):
            return self._nested(node).exists(node, arguments[0])
        if written in WITH_UNITS and len(arguments) == 3 and isinstance(arguments[0], exp.Column):
            unit = Literal(arguments[0].name, STRING)
            return call(WITH_UNITS[written], [unit, *(self.bind(argument) for argument in arguments[1:])])
        if written == "charindex" and len(arguments) == 2:
            return call("locate", [self.bind(argument) for argument in arguments])
        if written in ("ltrim", "rtrim") and len(arguments) == 2:
            return call(written, [self.bind(arguments[1]), self.bind(arguments[0])])
        if written == "struct":
            return self._struct(arguments)
        if written == "arrays_zip" and arguments:
            return self._arrays_zip(arguments)
        if written == "sequence" and len(arguments) == 3:
            step = constant_interval(self.source, arguments[2])
            if step is not None:
                bounds = [self.bind(argument) for argument in arguments[:2]]
                return moments(bounds, (step.months, step.days, step.microseconds))
        name = canonical_name(written)
        if name is None:
            return self._other_function(node)
        bound = [self.bind(argument) for argument in arguments]
        try:
            return call(name, bound)
        except OnlySparkError:
            return self._other_function(node)

    def _higher_order(self, node: exp.Expr) -> Expression:
        """A call with lambdas."""
        try:
            return bind_higher_order(self, node.name.lower(), node.expressions)
        except OnlySparkError:
            if self.variables:
                raise
            return self._other_function(node)

    def _grouping(self, node: exp.Expr) -> Expression:
        name, arguments = node.name.lower(), node.expressions
        if self.aggregates is None:
            raise self.unsupported(f"{name.upper()} in {self.clause}", node)
        if name == "grouping" and len(arguments) != 1:
            raise self.source.error(TypeMismatchError, f"GROUPING takes 1 argument, not {len(arguments)}", node)
        self.aggregates.groupings.append(node)
        plain = replace(self, aggregates=None)
        return grouping_call(name, [plain.bind(argument) for argument in arguments])

    def _now(self, node: exp.Expr) -> Expression:
        """NOW(), CURRENT_TIMESTAMP or CURRENT_DATE, which WHERE turns into when rows are valid."""
        if self.clause != "WHERE":
            raise now.refusal(self.source, node, self.clause)
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        return now.instant(name or ("current_date" if isinstance(node, exp.CurrentDate) else "now"))

    def _other_function(self, node: exp.Expr) -> Expression:
        if any(isinstance(part, _SUBQUERIES) for part in node.walk()):
            raise self.unsupported(f"a subquery as an argument of {node.name.lower()}; join it instead", node)
        return self._by_spark(node)

    def _any(self, node: exp.Expr) -> Expression:
        """ANY(x), the aggregate; not a comparison with ANY (...)."""
        if isinstance(node.parent, exp.Predicate) or isinstance(node.this, _SUBQUERIES):
            raise self.unsupported("ANY and ALL without a comparison and a subquery", node)
        return self._aggregate(node)

    def _window(self, node: exp.Expr) -> Expression:
        """A window function."""
        if self.windows is None:
            raise self.unsupported(f"a window function in {self.clause}; filter with QUALIFY, or use a subquery", node)
        return bind_window(self, self.windows, node)

    def _aggregate(self, node: exp.Expr) -> Expression:
        """An aggregate with the clauses around it."""
        return bind_aggregate_call(self, node)


def _star_of(node: exp.Expr) -> exp.Star | None:
    """The star of `*` or `s.*`; None if the node is neither."""
    inner = node.this if isinstance(node, exp.Column) else node
    return inner if isinstance(inner, exp.Star) else None


_STEP = 20


def _steps(node: exp.Expr, bound: Collection[int]) -> list[exp.Expr]:
    """Every twentieth node on the way down a chain of operators to one that is bound, outermost first."""
    chain = []
    inner = node
    while id(inner) not in bound and (
        type(inner) in INFIX or isinstance(inner, exp.Unary | exp.Cast | exp.Dot | exp.Bracket)
    ):
        chain.append(inner)
        inner = inner.this
    return [] if isinstance(inner, exp.Interval) else chain[_STEP::_STEP]


def _named_alike(value: Expression, choice: Expression) -> Expression:
    """A struct that IN lists, with the names of the fields that it is compared with: Spark goes by their positions."""
    names = [field.name for field in value.dtype] if is_struct(value.dtype) else []
    is_row = isinstance(choice, Call) and choice.function == "struct" and len(choice.arguments) == len(names)
    return struct_of(names, choice.arguments) if is_row and isinstance(choice, Call) and names else choice


def _negated(node: exp.Expr, matches: Expression) -> Expression:
    """The result of LIKE or ILIKE, which the parser may have marked as NOT LIKE or NOT ILIKE."""
    return call("not", [matches]) if node.args.get("negate") else matches


def _case_of(branches: list[tuple[Expression, Expression]], otherwise: Expression | None) -> Expression:
    values = [value for _, value in branches] + ([] if otherwise is None else [otherwise])
    unified = unify(values, "the branches of CASE")
    then = [(condition, value) for (condition, _), value in zip(branches, unified, strict=False)]
    return Case(tuple(then), None if otherwise is None else unified[-1], unified[0].dtype)


_Handler = Callable[[ExpressionBinder, exp.Expr], Expression]

_HANDLERS: dict[type[exp.Expr], tuple[_Handler, tuple[str, ...]]] = {
    exp.Column: (ExpressionBinder._column, ("this", "table", "db", "catalog")),
    exp.Literal: (ExpressionBinder._literal, ("this", "is_string")),
    exp.RawString: (ExpressionBinder._text, ("this",)),
    exp.Boolean: (ExpressionBinder._boolean, ("this",)),
    exp.Null: (ExpressionBinder._null, ()),
    exp.HexString: (ExpressionBinder._bytes, ("this",)),
    exp.Paren: (ExpressionBinder._inner, ("this",)),
    exp.Not: (ExpressionBinder._not, ("this",)),
    exp.Neg: (ExpressionBinder._negate, ("this",)),
    exp.BitwiseNot: (ExpressionBinder._bit_not, ("this",)),
    exp.Is: (ExpressionBinder._is, ("this", "expression")),
    exp.NullSafeNEQ: (ExpressionBinder._differs, ("this", "expression")),
    exp.Between: (ExpressionBinder._between, ("this", "low", "high")),
    exp.In: (ExpressionBinder._in, ("this", "expressions", "query")),
    exp.Escape: (ExpressionBinder._escape, ("this", "expression")),
    exp.Concat: (ExpressionBinder._concat, ("expressions", "safe", "coalesce")),
    exp.Case: (ExpressionBinder._case, ("this", "ifs", "default")),
    exp.If: (ExpressionBinder._if, ("this", "true", "false")),
    exp.Cast: (ExpressionBinder._cast, ("this", "to", "_type")),
    exp.TryCast: (ExpressionBinder._cast, ("this", "to", "_type", "safe")),
    exp.Substring: (ExpressionBinder._substring, ("this", "start", "length")),
    exp.Trim: (ExpressionBinder._trim, ("this", "expression", "position")),
    exp.StrPosition: (ExpressionBinder._position, ("this", "substr", "position")),
    exp.Overlay: (ExpressionBinder._overlay, ("this", "expression", "from_", "for_")),
    exp.Extract: (ExpressionBinder._extract, ("this", "expression")),
    exp.Dot: (ExpressionBinder._field, ("this", "expression")),
    exp.Bracket: (ExpressionBinder._item, ("this", "expressions")),
    exp.Tuple: (ExpressionBinder._tuple, ("expressions",)),
    exp.Interval: (ExpressionBinder._interval, ("this", "unit")),
    exp.JSONExtract: (ExpressionBinder._extracted, ("this", "expression", "variant_extract", "requires_json")),
    exp.Anonymous: (ExpressionBinder._function, ("this", "expressions")),
    exp.CurrentTimestamp: (ExpressionBinder._now, ()),
    exp.CurrentDate: (ExpressionBinder._now, ()),
    exp.Any: (ExpressionBinder._any, ("this",)),
    exp.Filter: (ExpressionBinder._aggregate, ("this", "expression")),
    exp.IgnoreNulls: (ExpressionBinder._aggregate, ("this",)),
    exp.RespectNulls: (ExpressionBinder._aggregate, ("this",)),
    exp.Window: (ExpressionBinder._window, ("this", "partition_by", "order", "spec", "alias", "over")),
    exp.WithinGroup: (ExpressionBinder._aggregate, ("this", "expression")),
}
"""Node -> its binding method and the arguments that the method handles."""
