"""Tokens as Spark reads them: a quote is doubled within a string, and ALL, no reserved word, may be the name of a column."""

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
    return _columns_called_window(_columns_called_all(_doubled_quotes(tokens, text)))


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
