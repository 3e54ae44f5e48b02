"""The interface of a sink: made from its options before the query starts, opened once, then called with every batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa

from sash.errors import CatalogError, OptionError
from sash.plan.options import MODES, Mode
from sash.plan.types import Schema
from sash.secret_references import check_references, resolve
from sash.spark.sinks.batch import ADDED, Batch, WriteBatch
from sash.spark.sinks.retry import RETRY, RetryPolicy, retry_policy
from sash.sql.source import did_you_mean

_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")

Guarantee = Literal["exactly once", "at least once"]
"""How often a change is written if a batch is repeated after a failure."""


@dataclass(frozen=True)
class OutputSpec:
    """The output of a query: its columns, the type of `_ts`, the output mode and the key.

    `identity` identifies the checkpoint: it is the same after a restart and differs for a query that starts anew.
    """

    schema: Schema
    time: pa.DataType
    mode: Mode
    key: tuple[int, ...] | None
    identity: str

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [field.name for field in self.schema]

    @property
    def key_names(self) -> list[str]:
        """The names of the key's columns."""
        return [self.schema[column].name for column in self.key or ()]


def refuse_added(sink: str, names: Iterable[str], added: Iterable[str]) -> None:
    """Raise CatalogError if one of the query's columns has the name of a column that the sink adds."""
    for name in names:
        if name.lower() in added:
            raise CatalogError(f"{sink} adds a column {name}: rename the query's column of that name with AS")


class Sink(ABC):
    """A sink with checked options. Spark may repeat a batch under the same number: a sink must not count it twice.

    A batch that fails for a temporary reason is retried by the policy; the option `retry` sets how long ("5 minutes").
    """

    name: str
    needed: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]] = ()
    flags: ClassVar[tuple[str, ...]] = ()
    modes: ClassVar[tuple[Mode, ...]] = MODES
    policy: RetryPolicy
    guarantee: Guarantee = "exactly once"
    exclusive: ClassVar[bool] = False
    """Whether only one query may write to a target."""
    needs_empty_batches: ClassVar[bool] = False
    """Whether a job calls it for batches without changes, too."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        known = {name.lower(): name for name in (*self.needed, *self.optional, RETRY)}
        self.options: dict[str, Any] = {}
        for name, value in options.items():
            if name.lower() not in known and not self.accepts(name):
                raise OptionError(
                    f"{self.name} has no option {name}; it has {', '.join(known)}{did_you_mean(name, known)}"
                )
            if name.lower() in self.flags and str(value).lower() not in (*_TRUE, *_FALSE):
                raise OptionError(f"the option {name} of {self.name} is true or false, not {value!r}")
            check_references(name, value)
            self.options[known.get(name.lower(), name)] = value
        for name in self.needed:
            if not self.options.get(name):
                raise OptionError(f"{self.name} needs the option {name}")

        self.policy = retry_policy(self.options.pop(RETRY, None))

    @property
    def resolved(self) -> dict[str, str]:
        """The options as text, with the secrets that they refer to: to be used, never to be shown or stored."""
        return {name: resolve(str(value)) for name, value in self.options.items()}

    @property
    def target(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Where the sink writes to: its name, and the options that it needs."""
        return self.name, tuple((name, str(self.options[name])) for name in self.needed)

    def is_like(self, other: Sink) -> bool:
        """Whether the other sink would write the same to the same place."""
        return type(self) is type(other) and self.options == other.options

    def accepts(self, option: str) -> bool:
        """Whether an option that is not listed is allowed."""
        return False

    def flag(self, name: str, default: bool) -> bool:
        """Return the value of a boolean option."""
        return str(self.options.get(name, default)).lower() in _TRUE

    def mode(self, chosen: str | None, keyed: bool) -> Mode:
        """Return the output mode that was chosen; without one, `upsert` if the output has a key and the sink supports it."""
        if chosen is None:
            return "upsert" if keyed and "upsert" in self.modes else next(m for m in self.modes if m != "upsert")
        found = next((mode for mode in self.modes if mode == chosen), None)
        if found is None:
            raise OptionError(f"{self.name} is written in mode {' or '.join(self.modes)}, not {chosen}")
        return found

    def check(self, output: OutputSpec) -> None:
        """Raise an error if the output can never be written with these options; connect to nothing."""
        refuse_added(self.name, output.names, ADDED)

    def connect(self, output: OutputSpec) -> None:  # noqa: B027  (most sinks have nothing to connect to)
        """Raise an error if the system that is written to cannot be reached, or does not fit; change nothing in it."""

    @abstractmethod
    def open(self, output: OutputSpec) -> WriteBatch:
        """Prepare the sink for the output, and return the function that writes its batches."""


__all__ = ["ADDED", "Batch", "Guarantee", "OutputSpec", "Sink", "WriteBatch", "refuse_added"]
