"""Random queries over two streams and two relations whose parts can be changed, and random changes of a job of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

KINDS = ("group", "group", "total", "select", "distinct", "levels", "join", "except", "counted", "top")
RELATED = ("related", "counted by relation", "unrelated")
"""Kinds of joins with the relations `t`, which is retroactive, and `n`, which is not."""
AGGREGATES = ("COUNT(*)", "SUM(v)", "MAX(v)", "MIN(v)", "COUNT(DISTINCT v)")


@dataclass(frozen=True)
class RandomQuery:
    """A query whose parts can be changed: windows in ms, a filter by `least`, and how many columns it has."""

    kind: str
    stream: str
    window: int
    least: int
    aggregates: tuple[str, ...]
    columns: int = 2
    strategy: str = "auto"
    mode: str = "changes"
    tau: int | None = None
    """The interval of its releases, in ms."""

    @property
    def options(self) -> dict[str, str]:
        """Those of `Engine.sql`."""
        return {"strategy": self.strategy, **({} if self.tau is None else {"tau": f"{self.tau} milliseconds"})}

    @property
    def streams(self) -> tuple[str, ...]:
        return ("s", "u") if self.kind in ("join", "except") else (self.stream,)

    @property
    def keyed(self) -> bool:
        """Whether its first column is a key."""
        return self.kind in ("group", "levels")

    @property
    def sql(self) -> str:
        rows = f"{self.stream} [RANGE {self.window} MILLISECONDS]"
        where = f"WHERE v >= {self.least}"
        named = [f"{text} AS a{number}" for number, text in enumerate(self.aggregates[: self.columns])]
        group = f"SELECT k, {', '.join(named)} FROM {rows} {where} GROUP BY k"
        chosen = ", ".join(("k", "v", "ts")[: self.columns])
        match self.kind:
            case "total":
                return f"SELECT {', '.join(named)} FROM {rows} {where}"
            case "levels":
                return f"SELECT a0, COUNT(*) AS n FROM ({group}) AS g GROUP BY a0"
            case "select":
                return f"SELECT {chosen} FROM {rows} {where}"
            case "distinct":
                return f"SELECT DISTINCT {chosen} FROM {rows} {where}"
            case "join":
                other = f"u [RANGE {max(2, self.window // 4)} MILLISECONDS] AS b"
                picked = ", ".join(("a.k AS k", "a.v AS x", "b.v AS y")[: self.columns + 1])
                return (
                    f"SELECT {picked} FROM s [RANGE {max(2, self.window // 6)} MILLISECONDS] AS a JOIN {other} "
                    f"ON a.k = b.k WHERE a.v >= {self.least}"
                )
            case "except":
                other = f"u [RANGE {max(2, self.window // 2)} MILLISECONDS]"
                return f"SELECT k, v FROM s [RANGE {self.window} MILLISECONDS] {where} EXCEPT SELECT k, v FROM {other}"
            case "counted":
                return (
                    f"SELECT k, {named[0]} FROM {self.stream} [PARTITION BY k ROWS {1 + self.window // 8}] GROUP BY k"
                )
            case "related" | "unrelated":
                table = "t" if self.kind == "related" else "n"
                picked = ", ".join(("a.k AS k", "a.v AS v", "b.w AS w")[: self.columns + 1])
                return f"SELECT {picked} FROM {rows} AS a JOIN {table} AS b ON a.k = b.k {where}"
            case "counted by relation":
                return f"SELECT w, {', '.join(named)} FROM {rows} AS a JOIN t AS b ON a.k = b.k {where} GROUP BY w"
            case "top":
                return f"SELECT {chosen} FROM {rows} {where} ORDER BY v DESC, k, ts LIMIT {1 + self.columns}"
        return group

    @staticmethod
    def made(rnd: random.Random) -> RandomQuery:
        """A new query."""
        query = RandomQuery(
            rnd.choice(KINDS), rnd.choice("ssu"), rnd.choice((8, 17, 30, 40)), rnd.choice((0, 0, 2)),
            tuple(rnd.sample(AGGREGATES, 2)), rnd.choice((1, 2, 2)), rnd.choice(("auto", "auto", "negative-tuple", "direct")),
        )  # fmt: skip
        return replace(query, mode=rnd.choice(("changes", "changes", "net", *(["upsert"] if query.keyed else []))))

    @staticmethod
    def any(rnd: random.Random) -> RandomQuery:
        """A new query, which may join a relation, share the rows of its window, or have an interval of releases."""
        query = RandomQuery.made(rnd)
        chosen = rnd.randrange(4)
        if not chosen:
            counts = ("COUNT(*)", rnd.choice(("SUM(v)", "AVG(v)")))
            query = replace(query, kind="group", stream="s", aggregates=counts, strategy="auto")
        elif chosen == 1:
            query = replace(query, kind=rnd.choice(RELATED), stream="s", mode=rnd.choice(("changes", "net")))
        if query.mode == "changes" and not rnd.randrange(4):
            query = replace(query, tau=rnd.choice((3, 7)))
        return query

    def changed(self, rnd: random.Random) -> RandomQuery:
        """The query with a shorter window, a narrower filter, other aggregates, fewer columns or another level."""
        match rnd.choice(("shorter", "narrower", "aggregate", "columns", "level", "longer")):
            case "shorter":
                return replace(self, window=max(2, self.window * rnd.randint(3, 8) // 10))
            case "narrower":
                return replace(self, least=self.least + rnd.randint(1, 3))
            case "aggregate":
                return replace(self, aggregates=tuple(rnd.sample(AGGREGATES, 2)))
            case "columns":
                return replace(self, columns=1)
            case "level" if self.keyed:
                return replace(self, kind="levels" if self.kind == "group" else "group")
            case "longer":
                return replace(self, window=self.window + 10)
        return replace(self, window=max(2, self.window // 2))


def changed_job(
    rnd: random.Random,
    queries: Mapping[str, RandomQuery],
    shards: int,
    number: int,
    made_query: Callable[[random.Random], RandomQuery] = RandomQuery.made,
) -> tuple[dict[str, RandomQuery], int]:
    """The queries and shards of the next job: one to three things are different."""
    made = dict(queries)
    for _ in range(rnd.randint(1, 3)):
        match rnd.choice(("add", "drop", "change", "change", "rescale")):
            case "add":
                made[f"q{number}_{len(made)}"] = made_query(rnd)
            case "drop" if len(made) > 2:
                del made[rnd.choice(sorted(made))]
            case "rescale":
                shards = rnd.choice([n for n in range(1, 6) if n != shards])
            case _:
                name = rnd.choice(sorted(made))
                made[name] = made[name].changed(rnd)
    return made, shards
