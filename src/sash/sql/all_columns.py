"""ALL is no reserved word: a column may be called so, and the parser must not take its name for the keyword."""

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


def columns_called_all(tokens: list[Token]) -> list[Token]:
    """The tokens, in which ALL is a name where Spark reads a column, and a keyword elsewhere."""
    result = list(tokens)
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.ALL and _is_column(tokens, index):
            result[index] = Token(
                TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments
            )
    return result


def _is_column(tokens: list[Token], index: int) -> bool:
    if index in (0, len(tokens) - 1):
        return False
    before, after = tokens[index - 1].token_type, tokens[index + 1].token_type
    return before == TokenType.COMMA or after in _AFTER_A_NAME.get(before, ())
