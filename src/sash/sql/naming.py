"""The name of an output column without an alias, as in Spark: `sum(price)`, `count(1)`, `(a + 1)`."""

from __future__ import annotations

from sqlglot import exp


def spark_name(node: exp.Expr) -> str:
    """The name of the column that the node computes.

    >>> spark_name(exp.column("price", "s"))
    'price'
    """
    if isinstance(node, exp.Column):
        return node.name
    root = exp.Paren(this=node.copy())
    for part in reversed(list(root.find_all(exp.Expr, bfs=False))):
        if part is not root:
            part.replace(_plain(part))
    text: str = root.this.sql(dialect="spark")
    return text.replace("`", "")


def _plain(node: exp.Expr) -> exp.Expr:
    """The node in Spark's format: no qualifiers or quotes, * as 1, operators in parentheses, functions in lower case.

    What is inside the node has this format already, as plain words, so that even a deep node is written without recursion.
    """
    match node:
        case exp.Column() if not isinstance(node.this, exp.Star):
            return exp.column(exp.to_identifier(node.name))
        case exp.Star() if isinstance(node.parent, exp.Anonymous):
            return exp.Literal.number(1)
        case exp.Literal() if node.is_string and not isinstance(node.parent, exp.Interval):
            return exp.Var(this=str(node.this))
        case exp.Boolean():
            return exp.Var(this="true" if node.this else "false")
        case exp.Anonymous():
            return exp.Var(this=f"{node.name.lower()}({', '.join(map(_sql, node.expressions))})")
        case exp.Paren():
            inner: exp.Expr = node.this
            return inner
        case exp.Neg() if isinstance(node.this, exp.Literal):
            return exp.Var(this=f"-{node.this.name}")
        case exp.Neg():
            return exp.Var(this=f"(- {_sql(node.this)})")
        case exp.Is() if isinstance(node.parent, exp.Not) and isinstance(node.expression, exp.Null):
            return _negated(exp.Var(this=f"({_sql(node.this)} IS NOT NULL)"))
        case exp.Not() if node.this.meta.get(_NEGATED):
            already: exp.Expr = node.this
            return already
        case exp.Not():
            return exp.Var(this=f"(NOT {_sql(node.this)})")
        case exp.NEQ():
            return exp.Var(this=f"(NOT ({_sql(node.this)} = {_sql(node.expression)}))")
        case exp.NullSafeEQ():
            return exp.Var(this=f"({_sql(node.this)} <=> {_sql(node.expression)})")
        case exp.NullSafeNEQ():
            return exp.Var(this=f"(NOT ({_sql(node.this)} <=> {_sql(node.expression)}))")
        case exp.IntDiv():
            return exp.Var(this=f"({_sql(node.this)} div {_sql(node.expression)})")
        case exp.DPipe():
            return exp.Var(this=f"concat({_sql(node.this)}, {_sql(node.expression)})")
        case exp.Like() | exp.ILike():
            word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
            text = f"{_sql(node.this)} {word} {_sql(node.expression)}"
            return exp.Var(this=f"(NOT {text})" if node.args.get("negate") else text)
        case exp.RegexpLike():
            return exp.Var(this=f"RLIKE({_sql(node.this)}, {_sql(node.expression)})")
        case exp.Between():
            return exp.Var(this=f"between({_sql(node.this)}, {_sql(node.args['low'])}, {_sql(node.args['high'])})")
        case exp.In() if node.expressions:
            return exp.Var(this=f"({_sql(node.this)} IN ({', '.join(map(_sql, node.expressions))}))")
        case exp.In() if node.args.get("query"):
            return exp.Var(this=f"({_sql(node.this)} IN (listquery({_references(node)})))")
        case exp.Exists():
            return exp.Var(this=f"exists({_references(node)})")
        case exp.Subquery() if REFERENCES in node.meta:
            return exp.Var(this=f"scalarsubquery({_references(node)})")
        case exp.Filter():
            return exp.Var(this=f"{_sql(node.this)} FILTER (WHERE {_sql(node.expression.this)})")
        case exp.Binary() if not isinstance(node, exp.Dot | exp.Escape):
            return exp.Var(this=f"({_sql(node)})")
        case exp.Unary() | exp.Cast():
            return exp.Var(this=_sql(node))
        case _:
            return node


REFERENCES = "references"
"""The names of the outer columns to which a subquery refers, in the meta data of a node that is bound."""

_NEGATED = "negated"


def _references(node: exp.Expr) -> str:
    return ", ".join(node.meta.get(REFERENCES, ()))


def _negated(node: exp.Var) -> exp.Var:
    """The text, in which a NOT around it is written already."""
    node.meta[_NEGATED] = True
    return node


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect="spark")
