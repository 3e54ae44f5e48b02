"""Code is named by the field's terms: names by a metaphor of saying, hearing and asking, once used, do not come back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REPLACED = frozenset({
    "asked", "asking", "cutting", "ear", "expense", "failures", "ground", "hear", "heard", "hears", "how", "lend",
    "lending", "lends", "lent", "listening", "meeting", "natives", "news", "nobody", "onengine", "onpaper",
    "placing", "reread", "shop", "speaking", "speaks", "spoken", "stories", "told", "telling", "untold",
})  # fmt: skip
PHRASES = (
    "every so manieth", "its to say", "how dear", "nobody's key", "at present that it may do otherwise",
    "what a person can use of", "changes its mind", "however seldom", "longer than nothing", "what is not nothing",
    "un-happens", "nobody speaks of", "in force",
)  # fmt: skip


def names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case _:
                pass


@pytest.mark.parametrize("folder", ["src", "bench"])
def test_no_replaced_name_is_used(folder: str) -> None:
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        used = {path.stem, *names(ast.parse(path.read_text(encoding="utf-8")))}
        found += [f"{path.relative_to(ROOT)}: {name}" for name in used if REPLACED & set(name.lower().split("_"))]
    assert not found


def test_no_replaced_phrase_is_written() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    texts = {path: " ".join(path.read_text(encoding="utf-8").lower().split()) for path in pages}
    found = [(path.name, phrase) for path, text in texts.items() for phrase in PHRASES if phrase in text]
    assert not found
