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


def lines(claims: Sequence[Claim], note: str = "") -> str:
    """The claims as a list in Markdown, after how they were judged; `note` has what was decided after results were seen."""
    judged = (
        "A claim holds if the medians of the runs show it at every point, or if all runs do, where it is about each run. What "
        "a paper states as about n, or as equal, needs a tolerance, which is ours."
    )
    return "\n".join([f"{judged}{note and ' '}{note}", "", *(claim.line for claim in claims)])
