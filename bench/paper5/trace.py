"""Traces of paper 5's experiments: the links of a network, each a stream of (ts, src, dst, protocol).

The generated one has one row per link and millisecond, 2,000 sources and, on every link, ten destinations of each. Two
protocols have sources of their own, of which two links share a tenth: ftp's results of a join on the source are about as
many as its rows at the largest window, and telnet, with sqrt(10) times the rows, has ten times the results. Where ftp's
sources are on one link, telnet's are on the other, so that every source is about as busy on both: about 40 % of the
results of EXCEPT ALL are retracted before they expire. Real traces are read from files and split by destination.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from pyarrow import parquet

from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.statistics import seen
from sash.plan.types import BIGINT, STRING, Field
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints
from sash.time import FOREVER

LINKS = ("link1", "link2", "link3")
SCHEMA = (Field("ts", BIGINT), Field("src", BIGINT), Field("dst", BIGINT), Field("protocol", STRING))

SOURCES = 2_000
DESTINATIONS = 10
FTP, TELNET = 0.08, 0.253
OTHERS = ("smtp", "nntp", "www", "gopher", "finger", "ftp-data", "domain", "x11", "login", "irc")
_SHARED = 0.05
"""The share of all sources that a protocol has on both of two links: a tenth of those that it has on one."""


@dataclass(frozen=True)
class Trace:
    """Links by name, with their rows as stamped changes in order of time, and the protocols of the queries."""

    name: str
    links: Mapping[str, ChangeBatch]
    selective: str
    unselective: str

    @cached_property
    def span(self) -> int:
        """The time from the first row to the last, in microseconds."""
        return self._last - self._first

    @property
    def _first(self) -> int:
        return min(int(rows.ts[0]) for rows in self.links.values())

    @property
    def _last(self) -> int:
        return max(int(rows.ts[-1]) for rows in self.links.values())

    @property
    def rows(self) -> int:
        """The number of rows of the busiest link."""
        return max(len(rows) for rows in self.links.values())

    def rows_in(self, window: int) -> int:
        """The rows of the busiest link in a window of this many microseconds, on average."""
        return round(window * max(1, self.rows - 1) / max(self.span, 1))

    @cached_property
    def catalog(self) -> Catalog:
        """The links as streams, with the statistics of the whole trace."""
        entries = {}
        for name, rows in self.links.items():
            entries[name] = StreamEntry(name, SCHEMA, "ts", seen(SCHEMA, rows.columns, max(self.span, 1), "ts"))
        return Catalog(entries)

    def batches(self, size: int) -> Iterator[tuple[dict[str, ChangeBatch], dict[str, int]]]:
        """Split the trace into micro-batches of `size` rows of the busiest link, each with its clocks."""
        busiest = max(self.links.values(), key=len)
        cuts = [int(busiest.ts[end - 1]) + 1 for end in range(size, len(busiest) + 1, size)]
        begun = dict.fromkeys(self.links, 0)
        for cut in cuts:
            rows = {}
            for name, link in self.links.items():
                end = int(np.searchsorted(link.ts, cut, side="left"))
                rows[name], begun[name] = link.slice(begun[name], end), end
            yield rows, dict.fromkeys(self.links, cut)

    def only(self, links: Sequence[str]) -> Trace:
        """The trace without its other links."""
        return Trace(self.name, {name: self.links[name] for name in links}, self.selective, self.unselective)

    def repeated(self, rows: int) -> Trace:
        """Repeat the trace until its busiest link has this many rows."""
        turns, period = -(-rows // self.rows), self.span + max(1, self.span // self.rows)
        links = {}
        for name, link in self.links.items():
            ts = np.concatenate([link.ts + turn * period for turn in range(turns)])
            columns = [pa.concat_arrays([column] * turns) for column in link.columns[1:]]
            links[name] = ChangeBatch.stamped(ts, np.full(len(ts), FOREVER), (pa.array(ts), *columns))
        return Trace(self.name, links, self.selective, self.unselective)


def generated(rows: int, seed: int = 5) -> Trace:
    """Generate a trace with this many rows on each of its three links."""
    random = np.random.default_rng(seed)
    return Trace("generated", {name: _link(random, number, rows) for number, name in enumerate(LINKS)}, "ftp", "telnet")


def _link(random: np.random.Generator, number: int, rows: int) -> ChangeBatch:
    half = SOURCES // 2
    first = (half - round(SOURCES * _SHARED)) * number
    chance = random.random(rows)
    own = random.integers(0, half, rows)
    ftp, telnet = chance < FTP, (chance >= FTP) & (chance < FTP + TELNET)
    src = random.integers(0, SOURCES, rows)
    src = np.where(ftp, (first + own) % SOURCES, np.where(telnet, (first + half + own) % SOURCES, src))
    dst = 1_000 * (number + 1) + (src * 7 + 97 * random.integers(0, DESTINATIONS, rows)) % 1_000
    other = random.integers(0, len(OTHERS), rows)
    names = pa.array(["ftp", "telnet", *OTHERS])
    protocol = names.take(pa.array(np.where(ftp, 0, np.where(telnet, 1, 2 + other))))
    ts = 1_000 * np.arange(rows, dtype=np.int64) + random.integers(0, 1_000, rows)
    return _rows(ts, pa.array(src), pa.array(dst), protocol)


def _rows(ts: Ints, src: pa.Array, dst: pa.Array, protocol: pa.Array) -> ChangeBatch:
    return ChangeBatch.stamped(ts, np.full(len(ts), FOREVER), (pa.array(ts), src, dst, protocol))


def recorded(folder: Path) -> tuple[list[Trace], list[str]]:
    """Read the traces in the folder; returns them, and the reason for each missing one."""
    found, missing = [], []
    for name, read in (
        ("lbl_pkt4_connections.csv", _connections),
        ("lbl_pkt4_udp.parquet", _packets),
        ("net_conn_72h.parquet", _server),
    ):
        path = folder / name
        if path.is_file():
            found.append(read(path))
        else:
            missing.append(f"{name} is not in {folder}")
    return found, missing


def _connections(path: Path) -> Trace:
    table = arrow_csv.read_csv(path)
    return _split(path.stem, table["ts"], table["orig_host"], table["resp_host"], table["protocol"], "ftp", "smtp")


def _packets(path: Path) -> Trace:
    """UDP packets, whose protocol is their port: 53 is DNS, 123 is NTP."""
    table = parquet.read_table(path)
    port = table["dport"].cast(pa.string())
    return _split(path.stem, table["ts"], table["src"], table["dst"], port, "123", "53")


def _server(path: Path) -> Trace:
    """Connections to a server: nearly all have one address, so the destination is address and port."""
    table = parquet.read_table(path)
    port = table["dport"].cast(pa.string())
    destination = pc.binary_join_element_wise(table["dst"], port, ":")
    return _split(path.stem, table["ts"], table["src"], destination, port, "80", "22")


def _split(
    name: str,
    seconds: pa.ChunkedArray,
    src: pa.ChunkedArray,
    dst: pa.ChunkedArray,
    protocol: pa.ChunkedArray,
    selective: str,
    unselective: str,
) -> Trace:
    """Split rows into three links by destination: the first, fourth, seventh ... destination are on the first link."""
    ts = np.round(seconds.to_numpy() * 1e6).astype(np.int64)
    ts -= ts[0] - 1
    sources, destinations = (np.asarray(_codes(column)) for column in (src, dst))
    protocols = protocol.combine_chunks()
    links = {}
    for number, link in enumerate(LINKS):
        mine = np.flatnonzero(destinations % len(LINKS) == number)
        links[link] = _rows(
            ts[mine], pa.array(sources[mine]), pa.array(destinations[mine]), protocols.take(pa.array(mine))
        )
    return Trace(name, links, selective, unselective)


def _codes(column: pa.ChunkedArray) -> Ints:
    """Number the values in order of first appearance."""
    codes: Ints = column.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
