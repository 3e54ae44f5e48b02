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
        case exp.Anonymous():
            return exp.Var(
                this=f"{node.name.lower()}({', '.join(part.sql(dialect='spark') for part in node.expressions)})"
            )
        case exp.Paren():
            inner: exp.Expr = node.this
            return inner
        case exp.Neg() if isinstance(node.this, exp.Var) and not node.this.name:
            return exp.Var(this="-")
        case exp.Binary() if not isinstance(node, exp.Dot):
            return exp.Var(this=f"({node.sql(dialect='spark')})")
        case exp.Unary() | exp.Cast():
            return exp.Var(this=node.sql(dialect="spark"))
        case _:
            return node
