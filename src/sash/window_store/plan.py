"""The plan of a snapshot: the parsed queries, the window they read, and how they read it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sash.errors import OptionError
from sash.window_store.access import AccessChoice, choose_access
from sash.window_store.groups import QueryGroups, ScanGroup
from sash.window_store.live_window import LiveWindow
from sash.window_store.options import MemoryLimits, SnapshotOptions
from sash.window_store.parse import QueryShape, parse_queries
from sash.window_store.scheduling.levels import Isolation, level
from sash.window_store.spans import Span
from sash.window_store.sub_windows import Scan
from sash.window_store.summaries.core import Core


@dataclass(frozen=True)
class SnapshotPlan:
    """One or several queries with the same core, executed in one pass over the longest of their windows."""

    texts: tuple[str, ...]
    window: LiveWindow
    shapes: tuple[QueryShape, ...]
    spans: tuple[Span, ...]
    access: AccessChoice
    scan: Scan
    options: SnapshotOptions
    group: ScanGroup

    @property
    def core(self) -> Core:
        """The core that all queries share."""
        return self.shapes[0].core

    @property
    def length(self) -> int:
        """The number of sub-windows of the longest window."""
        return max(span.length for span in self.spans)

    @property
    def isolation(self) -> Isolation:
        """The isolation level; `latest` stands for `ttu`."""
        return level(self.options.isolation)

    def explain(self) -> str:
        """The plan as text, and with how many queries it shares its scan now."""
        others = self.group.queries - 1
        if others < 1:
            return self._text
        merged = "another query" if others == 1 else f"{others} other queries"
        return f"{self._text}\nmerged with {merged} of these summaries: one scan of a sub-window serves all"

    @cached_property
    def _text(self) -> str:
        layout, options = self.window.layout, self.options
        reader = "locally" if options.reads == "local" else "as Spark jobs"
        lines = [" ".join(text.split()) for text in self.texts]
        lines.append(f"window {layout.name}: {layout.count} sub-windows of {layout.unit}, retain {layout.retain}")
        for span in self.spans:
            partly = "" if span.whole else ", some rows of the first and last"
            lines.append(f"reads {span.length} of {layout.count} sub-windows{partly}, {reader}")
        lines.append(f"access path {self.access.path}: {self.access.reason}")
        lines += [f"  {part.identity}{' (subtractable)' if part.subtractable else ''}" for part in self.core.summaries]
        lines += [f"  {name}: {error}" for name, error in self.core.errors.items()]
        every = "" if options.every is None else f"every {options.every} updates, "
        lines.append(f"{every}isolation {self.isolation.name}, priority {options.priority}")
        return "\n".join(lines)


def plan_snapshot(
    texts: Sequence[str],
    options: SnapshotOptions,
    windows: Mapping[str, LiveWindow],
    scan: Scan,
    streams: Collection[str],
    groups: QueryGroups,
    limits: MemoryLimits,
) -> SnapshotPlan:
    """Parse queries over a kept window and choose their access path.

    `windows` are the kept windows by lower-case name, and `streams` the names of all registered streams.
    """
    parsed = parse_queries(texts, {name: window.layout for name, window in windows.items()}, streams)
    window, core = windows[parsed.name], parsed.shapes[0].core
    count = window.layout.count
    if options.every is not None and options.every >= count:
        raise OptionError(
            f"every must be less than the number of sub-windows of {window.layout.name}, {count}, and is {options.every}: "
            "between two answers not all of the window may be replaced; execute the query more often, or keep the window in "
            "shorter sub-windows"
        )
    access = choose_access(window, core, parsed.spans, options.every, options.access, limits.summaries)
    group = groups.of(window, core, options.reads)
    return SnapshotPlan(tuple(texts), window, parsed.shapes, parsed.spans, access, scan, options, group)
