"""SQL's words for the parser's nodes and their parts, for error messages.

The parser's own names are those of its classes and arguments. Users know SQL, so no message contains them.
"""

from __future__ import annotations

from sqlglot import exp

from sash.errors import excerpt

PARTS = {
    "action": "CAST with an action",
    "by_name": "BY NAME; select the columns of both sides in the same order",
    "changes": "CHANGES",
    "cluster": "CLUSTER BY; the answer is a bag, which ORDER BY sorts where it is shown",
    "connect": "CONNECT BY",
    "cube": "CUBE",
    "cycle": "CYCLE",
    "default": "a DEFAULT",
    "directed": "a directed join",
    "distribute": "DISTRIBUTE BY; the planner partitions rows itself",
    "except_": "* EXCEPT; write the columns that you need",
    "exclude": "* EXCLUDE; write the columns that you need",
    "for_": "FOR after a query",
    "format": "FORMAT",
    "grouping_sets": "GROUPING SETS",
    "hint": "a hint; leave it out, since plans are chosen by cost",
    "hints": "a table hint; leave it out, since plans are chosen by cost",
    "ilike": "* ILIKE; write the columns that you need",
    "indexed": "INDEXED BY",
    "into": "SELECT INTO; the sink of a query is named when it starts",
    "key_expressions": "USING KEY",
    "kind": "SELECT AS STRUCT / VALUE",
    "laterals": "LATERAL VIEW",
    "limit_options": "WITH TIES and PERCENT; write LIMIT with a number of rows",
    "locks": "FOR UPDATE and FOR SHARE; a query only reads",
    "match": "MATCH_RECOGNIZE",
    "match_condition": "MATCH_CONDITION",
    "materialized": "MATERIALIZED",
    "nearest": "a nearest-by join",
    "only": "ONLY",
    "operation_modifiers": "modifiers of SELECT",
    "options": "OPTION",
    "ordinality": "WITH ORDINALITY",
    "partition": "PARTITION after a name; write a condition in WHERE",
    "pattern": "PATTERN",
    "pivots": "PIVOT",
    "prewhere": "PREWHERE; write WHERE",
    "qualify": "QUALIFY",
    "rename": "* RENAME; write the columns with AS",
    "replace": "* REPLACE; write the columns that you need",
    "rollup": "ROLLUP",
    "rows_from": "ROWS FROM",
    "sample": "TABLESAMPLE, whose choice is random; write a condition such as pmod(hash(id), 10) = 0",
    "scalar": "WITH a scalar",
    "search": "SEARCH",
    "settings": "SETTINGS",
    "siblings": "ORDER SIBLINGS BY",
    "sort": "SORT BY; write ORDER BY",
    "system_time": "FOR SYSTEM_TIME AS OF",
    "totals": "WITH TOTALS",
    "udfs": "functions in WITH",
    "version": "time travel (VERSION / TIMESTAMP AS OF)",
    "when": "AT and BEFORE",
    "windows": "a named WINDOW clause",
    "with_fill": "WITH FILL",
}
"""Parts that are called the same wherever they are."""

INNODES: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Distinct, "on"): "DISTINCT ON; take one row of each group with LIMIT or an aggregate",
    (exp.SetOperation, "side"): "a side of a set operator",
    (exp.SetOperation, "kind"): "a kind of a set operator",
    (exp.SetOperation, "on"): "ON after a set operator",
    (exp.Subquery, "alias"): "an alias of a query in parentheses here; write SELECT * FROM (...) AS alias",
    (exp.Subquery, "joins"): "a join of a query in parentheses here; write SELECT * FROM (...) AS alias JOIN ...",
    (exp.Limit, "offset"): "LIMIT with two numbers; write LIMIT ... OFFSET ...",
    (exp.Limit, "expressions"): "LIMIT BY",
    (exp.Offset, "expressions"): "OFFSET BY",
    (exp.Values, "alias"): "an alias of VALUES here; write SELECT * FROM VALUES ... AS alias",
    (exp.Join, "expressions"): "a list of tables in a join",
    (exp.Table, "joins"): "a join here",
    (exp.TableAlias, "columns"): "names for columns here",
}
"""Parts whose name depends on the node that they belong to."""

NODES: dict[type[exp.Expr], str] = {
    exp.AtTimeZone: "AT TIME ZONE",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseNot: "~",
    exp.BitwiseRightShift: ">>",
    exp.Bracket: "[ ]",
    exp.Collate: "COLLATE",
    exp.Dot: "the field access with a dot",
    exp.Escape: "ESCAPE",
    exp.Fetch: "FETCH",
    exp.GroupingSets: "GROUPING SETS",
    exp.Intersect: "INTERSECT",
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
    exp.MatchRecognize: "MATCH_RECOGNIZE",
    exp.MultitableInserts: "INSERT",
    exp.Operator: "OPERATOR",
    exp.Pivot: "PIVOT",
    exp.Prior: "PRIOR",
    exp.RegexpLike: "RLIKE",
    exp.SimilarTo: "SIMILAR TO",
    exp.Tuple: "a list of values in parentheses",
}


def refused_part(node: exp.Expr, part: str) -> str:
    """The construct that an argument of a node stands for.

    >>> refused_part(exp.Select(), "sort"), refused_part(exp.Subquery(), "alias").split(";")[0]
    ('SORT BY; write ORDER BY', 'an alias of a query in parentheses here')
    """
    for (kind, name), words in INNODES.items():
        if name == part and isinstance(node, kind):
            return words
    return PARTS.get(part) or excerpt(_text(node))


def word_of(node: exp.Expr) -> str:
    """What SQL calls a node: its keyword, its symbol, or the name of a function.

    >>> word_of(exp.BitwiseNot()), word_of(exp.Union()), word_of(exp.RegexpExtract())
    ('~', 'UNION', 'regexp_extract')
    """
    for kind, words in NODES.items():
        if isinstance(node, kind):
            return words
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    if isinstance(node, exp.Func):
        return node.sql_name().lower()
    key = node.key.upper()
    return key if key in KEYWORDS else excerpt(_text(node))


KEYWORDS = frozenset(
    [
        "ALTER",
        "BEGIN",
        "CASE",
        "CACHE",
        "COMMENT",
        "COMMIT",
        "COPY",
        "CREATE",
        "CUBE",
        "DELETE",
        "DESCRIBE",
        "DROP",
        "EXCEPT",
        "EXPLAIN",
        "FROM",
        "GRANT",
        "GROUP",
        "HAVING",
        "INSERT",
        "INTERSECT",
        "INTERVAL",
        "JOIN",
        "KILL",
        "LATERAL",
        "LIMIT",
        "MERGE",
        "OFFSET",
        "ORDER",
        "PIVOT",
        "REFRESH",
        "ROLLBACK",
        "ROLLUP",
        "SELECT",
        "SET",
        "SHOW",
        "SUMMARIZE",
        "TABLE",
        "TRUNCATE",
        "UNION",
        "UNNEST",
        "UPDATE",
        "USE",
        "VALUES",
        "WHERE",
        "WINDOW",
        "WITH",
    ]
)
"""The parser's names of nodes that are words of SQL."""


def _text(node: exp.Expr) -> str:
    return node.sql(dialect="spark")
