"""The figures of the last batch in the picture of a dataflow."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sash.time import SECOND

Values = dict[str, Any]

_OPERATOR = ("rows_in", "rows_out", "state_rows", "state_bytes")


def with_figures(plan: Values, report: Values | None, batches: Mapping[str, Any]) -> Values:
    """The plan of a job with rows, state, time and rates, as far as the job has reported them."""
    job = {} if report is None else report["jobs"].get(plan["name"]) or report["separate"].get(plan["name"], {})
    queries = {} if report is None else report["queries"]
    operators, seconds = job.get("operators") or {}, _seconds(plan["name"], batches, time.time() * SECOND)
    rates: dict[str, float | None] = {}
    nodes = []
    for node in plan["nodes"]:
        name = node["id"]
        match node["kind"]:
            case "operator":
                seen = operators.get(name, {})
                rates[name] = _rate(seen.get("rows_out"), seconds)
                spent = seen.get("microseconds")
                more = {part: seen.get(part) for part in _OPERATOR} | {
                    "seconds": None if spent is None else spent / 1e6,
                    "shards": [
                        _shard(number, one) for number, one in enumerate((job.get("shards") or {}).get(name, ()))
                    ],
                }
            case "leg":
                streams = {stream.lower(): counts for stream, counts in (job.get("streams") or {}).items()}
                rates[name] = _rate(streams.get(node["stream"], {}).get("rows_in"), seconds)
                more = {"rows_per_second": rates[name]}
            case _:
                more = {"rows_per_second": _rate(queries.get(node["label"], {}).get("rows_out"), seconds)}
        nodes.append({**node, **more})
    edges = [{**edge, "rows_per_second": rates.get(edge["from"])} for edge in plan["edges"]]
    shards = job.get("stages", {})
    stages = [_stage(stage, shards.get(str(stage["index"]), [])) for stage in plan["stages"]]
    choices = [] if report is None else report["choices"].get(plan["name"], [])
    return {**plan, "nodes": nodes, "edges": edges, "stages": stages, "choices": choices, "legs": []}


def _shard(number: int, counts: Values) -> Values:
    return {
        "shard": number,
        "seconds": counts["microseconds"] / 1e6,
        **{part: counts[part] for part in _OPERATOR},
    }


def skew(shards: list[Values]) -> float | None:
    """The time of the slowest shard divided by the mean; None of fewer than two shards, or where no time was measured.

    >>> skew([{"seconds": 3.0}, {"seconds": 1.0}])
    1.5
    """
    spent: list[float] = [shard.get("seconds") or 0.0 for shard in shards]
    whole = sum(spent)
    return max(spent) * len(spent) / whole if len(spent) > 1 and whole > 0 else None


def _stage(stage: Values, shards: list[Values]) -> Values:
    spent = [
        {"shard": number, "seconds": one.get("seconds"), "state_rows": one.get("state_rows")}
        for number, one in enumerate(shards)
    ]
    return {**stage, "seconds": sum(one["seconds"] or 0 for one in spent), "shards": spent}


def _seconds(name: str, batches: Mapping[str, Sequence[Values]], now: float) -> float:
    """The time for which the rows of the last batch stand: since the batch before it, or since it ended if that is longer.

    >>> _seconds("shop", {"job shop": [{"time": 1_000_000}, {"time": 3_000_000}]}, 3_500_000)
    2.0
    """
    kept = list(batches.get(f"job {name}") or batches.get(name) or ())[-2:]
    if not kept:
        return 0.0
    before = kept[0]["time"] if len(kept) > 1 else kept[0]["time"] - 1000 * (kept[0].get("batch_ms") or 0)
    return float(max(kept[-1]["time"] - before, now - kept[-1]["time"]) / SECOND)


def _rate(rows: int | None, seconds: float) -> float | None:
    return None if rows is None or not seconds else round(rows / seconds, 1)
