"""Pipe syntax: `FROM s |> WHERE ... |> AGGREGATE ...`, where each operator works on the rows of the query before it.

An operator becomes clauses of that query where this means the same; otherwise the query is a subquery in FROM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

_PLAIN = frozenset({"expressions", "from_", "joins", "laterals", "where"})


class PipeParser(SparkParser):
    """Parses queries with |> by their meaning; sqlglot merges operators whatever their order."""

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query | None:
        while self._match(TokenType.PIPE_GT):
            name = self._curr.text.upper() if self._curr else ""
            if (parse := _OPERATORS.get(name)) is not None:
                query = parse(self, query)
            elif (combined := self.parse_set_operation(_plain(query))) is not None:
                query = combined
            else:
                query = self._parse_pipe_join(query, name)
        return query

    def _parse_pipe_join(self, query: exp.Query, name: str) -> exp.Select:
        table = _plain(query, where=False)
        join = self._parse_join()
        if join is None:
            self.raise_error(f"there is no pipe operator {name or 'here'}; use {', '.join(_OPERATORS)}, JOIN or UNION")
        assert join is not None
        return table.join(join, copy=False)

    def _parse_pipe_where(self, query: exp.Query) -> exp.Select:
        return _plain(query).where(self._parse_where(), copy=False)

    def _parse_pipe_select(self, query: exp.Query) -> exp.Select:
        table = _plain(query)
        chosen = self._parse_select(consume_pipe=False)
        if not isinstance(chosen, exp.Select) or any(
            value for key, value in chosen.args.items() if key not in ("expressions", "distinct")
        ):
            self.raise_error("after |> SELECT only expressions are allowed: write |> before the next clause")
        assert chosen is not None
        table.set("expressions", chosen.expressions)
        table.set("distinct", chosen.args.get("distinct"))
        return table

    def _parse_pipe_extend(self, query: exp.Query) -> exp.Select:
        self._advance()
        table = _plain(query)
        table.set("expressions", [exp.Star(), *self._parse_expressions()])
        return table

    def _parse_pipe_drop(self, query: exp.Query) -> exp.Select:
        self._advance()
        table = _plain(query)
        table.set("expressions", [exp.Star(except_=self._parse_csv(self._parse_column))])
        return table

    def _parse_pipe_aggregate(self, query: exp.Query) -> exp.Select:
        """The columns of GROUP BY come before the aggregates."""
        self._advance()
        table = _plain(query)
        grouped = self._match(TokenType.GROUP_BY)
        aggregates = [] if grouped else self._parse_expressions()
        keys = self._parse_expressions() if grouped or self._match(TokenType.GROUP_BY) else []
        for key in keys:
            if isinstance(key.unalias(), exp.Literal | exp.Cube | exp.Rollup | exp.GroupingSets):
                self.raise_error(
                    "|> AGGREGATE groups by expressions: write the query with GROUP BY for positions and sets"
                )
        table.set("expressions", [*keys, *aggregates])
        return table.group_by(*(key.unalias().copy() for key in keys), copy=False) if keys else table

    def _parse_pipe_order(self, query: exp.Query) -> exp.Select:
        return _plain(query).order_by(self._parse_order(), copy=False)

    def _parse_pipe_limit(self, query: exp.Query) -> exp.Select:
        """LIMIT and OFFSET come last, so any query without them takes them."""
        free = isinstance(query, exp.Select) and not query.args.get("limit") and not query.args.get("offset")
        table = query if free else _plain(query)
        assert isinstance(table, exp.Select)
        if (limit := self._parse_limit()) is not None:
            table.set("limit", limit)
        if (offset := self._parse_offset()) is not None:
            table.set("offset", offset)
        return table

    def _parse_pipe_alias(self, query: exp.Query) -> exp.Select:
        return _wrapped(query, self._parse_table_alias())


_OPERATORS: dict[str, Callable[[PipeParser, exp.Query], exp.Select]] = {
    "AGGREGATE": PipeParser._parse_pipe_aggregate,
    "AS": PipeParser._parse_pipe_alias,
    "DROP": PipeParser._parse_pipe_drop,
    "EXTEND": PipeParser._parse_pipe_extend,
    "LIMIT": PipeParser._parse_pipe_limit,
    "OFFSET": PipeParser._parse_pipe_limit,
    "ORDER BY": PipeParser._parse_pipe_order,
    "SELECT": PipeParser._parse_pipe_select,
    "WHERE": PipeParser._parse_pipe_where,
}


def _plain(query: exp.Query, *, where: bool = True) -> exp.Select:
    """The query as SELECT * FROM tables, perhaps with WHERE, to which clauses may be added."""
    if isinstance(query, exp.Select):
        given = {key for key, value in query.args.items() if value}
        whole = [type(one) is exp.Star and not any(one.args.values()) for one in query.expressions] == [True]
        if whole and given <= _PLAIN and "from_" in given and (where or "where" not in given):
            return query
        joined = given & {"joins", "laterals"}
        table = query.args["from_"].this if whole and "from_" in given and not joined else None
        name = table.alias_or_name if isinstance(table, exp.Table | exp.Subquery) else ""
        return _wrapped(query, name or None)
    return _wrapped(query, None)


def _wrapped(query: exp.Query, alias: Any) -> exp.Select:
    bare = isinstance(query, exp.Subquery) and not query.alias
    inner = query if isinstance(query, exp.Subquery) and bare else query.subquery(copy=False)
    if alias:
        inner.set(
            "alias", alias if isinstance(alias, exp.TableAlias) else exp.TableAlias(this=exp.to_identifier(alias))
        )
    return exp.select("*", copy=False).from_(inner, copy=False)
