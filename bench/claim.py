"""A claim of a paper, what a run shows of it, and whether it holds there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """`text` is the claim, `found` the figures it is judged by, `why` the reason where they differ."""

    text: str
    found: str
    held: bool
    why: str = ""

    @property
    def line(self) -> str:
        """The claim as an item of a list in Markdown."""
        verdict = "holds" if self.held else "does not hold here"
        reason = f" {self.why}" if self.why else ""
        return f"- *{self.text}*: **{verdict}**. {self.found}{reason}"


def lines(claims: Sequence[Claim]) -> str:
    """The claims as a list in Markdown."""
    return "\n".join(claim.line for claim in claims)
