"""What every store is: made from its options before anything runs, then opened for an answer, then given its batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from sash.errors import CatalogError
from sash.plan.types import Schema
from sash.spark.output import MODES, Mode
from sash.sql.source import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Write = Callable[["DataFrame", int], None]


@dataclass(frozen=True)
class Answer:
    """What is written: the answer's columns and the type of `_ts`, its key, how much of its changes, and whose it is.

    `identity` is the checkpoint's: the same after a restart, another one for a query that starts anew.
    """

    schema: Schema
    time: pa.DataType
    mode: Mode
    key: tuple[int, ...] | None
    identity: str

    @property
    def names(self) -> list[str]:
        """The answer's columns."""
        return [field.name for field in self.schema]

    @property
    def key_names(self) -> list[str]:
        """The key's columns."""
        return [self.schema[column].name for column in self.key or ()]


class Store(ABC):
    """A store with its options, checked. A batch may come again under its number: it must then count once."""

    name: ClassVar[str]
    needed: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]] = ()
    modes: ClassVar[tuple[Mode, ...]] = MODES

    def __init__(self, options: Mapping[str, Any]) -> None:
        known = {name.lower(): name for name in (*self.needed, *self.optional)}
        self.options: dict[str, Any] = {}
        for name, value in options.items():
            if name.lower() not in known and not self.accepts(name):
                raise CatalogError(
                    f"{self.name} has no option {name}; it has {', '.join(known)}{did_you_mean(name, known)}"
                )
            self.options[known.get(name.lower(), name)] = value
        for name in self.needed:
            if not self.options.get(name):
                raise CatalogError(f"{self.name} needs the option {name}")

    def accepts(self, option: str) -> bool:
        """Whether an option that is not listed may be given."""
        return False

    def flag(self, name: str, default: bool) -> bool:
        """An option that is true or false."""
        return str(self.options.get(name, default)).lower() in ("true", "1", "yes")

    def mode(self, asked: str | None, keyed: bool) -> Mode:
        """The output mode: the one asked for, or the best that the answer allows."""
        if asked is None:
            return "upsert" if keyed and "upsert" in self.modes else next(m for m in self.modes if m != "upsert")
        found = next((mode for mode in self.modes if mode == asked), None)
        if found is None:
            raise CatalogError(f"{self.name} is written in mode {' or '.join(self.modes)}, not {asked}")
        return found

    @abstractmethod
    def open(self, answer: Answer) -> Write:
        """Make ready for the answer, and say what is to be done with each of its batches."""
