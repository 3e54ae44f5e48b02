"""Tokens as Spark reads them: a quote is doubled within a string, ALL, no reserved word, may be the name of a column, and
`TABLE t` is a query."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

_CONTINUES_A_NAME = frozenset(
    {
        TokenType.COMMA, TokenType.SLASH, TokenType.MOD, TokenType.DIV, TokenType.DPIPE, TokenType.AMP, TokenType.PIPE,
        TokenType.CARET, TokenType.EQ, TokenType.NEQ, TokenType.NULLSAFE_EQ, TokenType.LT, TokenType.LTE, TokenType.GT,
        TokenType.GTE, TokenType.DCOLON, TokenType.IS,
    }
)  # fmt: skip
"""What may follow a column, but cannot start an expression."""

_AFTER_A_NAME = {
    TokenType.SELECT: _CONTINUES_A_NAME,
    TokenType.L_PAREN: _CONTINUES_A_NAME | {TokenType.R_PAREN},
    TokenType.GROUP_BY: _CONTINUES_A_NAME | {TokenType.PLUS, TokenType.DASH, TokenType.STAR},
}
"""The token before ALL -> those after it that make it a column: `SELECT all, k`, `MAX(all)`, `GROUP BY all, k`."""


def read_as_spark(tokens: list[Token], text: str) -> list[Token]:
    """The tokens of the text, which the parser takes for what they are in Spark."""
    return _columns_called_window(_columns_called_all(_whole_tables(_doubled_quotes(tokens, text))))


_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_BEFORE_A_QUERY = frozenset(
    {TokenType.L_PAREN, TokenType.R_PAREN, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
)
_OF_A_SET_OPERATOR = (TokenType.ALL, TokenType.DISTINCT)


def is_whole_table(tokens: list[Token], index: int) -> bool:
    """Whether the token begins `TABLE t`, which is short for `SELECT * FROM t`, and not an argument of a function."""
    if tokens[index].token_type != TokenType.TABLE or tokens[index + 1 : index + 2] == []:
        return False
    if tokens[index + 1].token_type not in _NAMES:
        return False
    before = [token.token_type for token in tokens[:index][-2:]]
    if not before:
        return True
    if before[-1] in _OF_A_SET_OPERATOR:
        return before[0] in _BEFORE_A_QUERY
    return before[-1] in _BEFORE_A_QUERY and not (before[-1] == TokenType.L_PAREN and before[0] in _NAMES)


def _whole_tables(tokens: list[Token]) -> list[Token]:
    """`TABLE t` as `SELECT * FROM t`."""
    result: list[Token] = []
    for index, token in enumerate(tokens):
        if not is_whole_table(tokens, index):
            result.append(token)
            continue
        for kind, text in ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM")):
            result.append(Token(kind, text, token.line, token.col, token.start, token.end, token.comments))
    return result


def _doubled_quotes(tokens: list[Token], text: str) -> list[Token]:
    """`'it''s'`, two strings with nothing in between, as one string with a quote."""
    result: list[Token] = []
    for token in tokens:
        last = result[-1] if result else None
        if (
            last is not None
            and last.token_type == token.token_type == TokenType.STRING
            and last.end + 1 == token.start
            and text[token.start] == text[last.start]
        ):
            joined = last.text + text[token.start] + token.text
            result[-1] = Token(
                TokenType.STRING,
                joined,
                token.line,
                token.col,
                last.start,
                token.end,
                [*last.comments, *token.comments],
            )
        else:
            result.append(token)
    return result


def _columns_called_all(tokens: list[Token]) -> list[Token]:
    """ALL as a name where Spark reads a column, and as a keyword elsewhere."""
    result = list(tokens)
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.ALL and _is_column(tokens, index):
            result[index] = Token(
                TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments
            )
    return result


_NAMES_A_COLUMN = frozenset(
    {
        TokenType.L_PAREN, TokenType.R_PAREN, TokenType.DOT, TokenType.COMMA, TokenType.FROM, TokenType.ALIAS,
        TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.IS,
    }
)  # fmt: skip
"""What follows WINDOW where it is a function or a column: `window(ts, '1 hour')`, `window.start`."""

_BEFORE_A_COLUMN = frozenset(
    {TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.L_PAREN}
)


def _columns_called_window(tokens: list[Token]) -> list[Token]:
    """WINDOW as a name where it is Spark's function or the column that it makes, and as a keyword elsewhere."""
    result = list(tokens)
    for index, token in enumerate(tokens):
        if token.token_type != TokenType.WINDOW:
            continue
        before = tokens[index - 1].token_type if index else None
        after = tokens[index + 1].token_type if index + 1 < len(tokens) else None
        if before in _BEFORE_A_COLUMN or after in _NAMES_A_COLUMN:
            result[index] = Token(
                TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments
            )
    return result


def _is_column(tokens: list[Token], index: int) -> bool:
    if index in (0, len(tokens) - 1):
        return False
    before, after = tokens[index - 1].token_type, tokens[index + 1].token_type
    return before == TokenType.COMMA or after in _AFTER_A_NAME.get(before, ())
