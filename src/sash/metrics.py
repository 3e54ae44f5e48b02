"""Metrics for Prometheus: the progress of an engine's queries in its text format, and a small server for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sash.job_query import JobQuery
    from sash.running import RunningQuery

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_TOTALS = {
    "rows_in": "Rows read from the streams.",
    "rows_out": "Changes written to the sink.",
    "late": "Rows that were too late and were dropped.",
    "bad": "Rows without a time, which were dropped.",
    "ahead": "Rows further in the future than MAX JUMP allows, which were dropped.",
    "rebuilt": "Shards whose working state was rebuilt from the log.",
}
_GAUGES = {
    "batch": "Number of the last batch.",
    "batch_ms": "Duration of the last batch, in milliseconds.",
    "watermark": "The instant up to which the answer is final, in microseconds.",
    "rows_per_second": "Rows read per second in the last batch.",
    "state_rows": "Rows in state.",
    "state_growth": "Rows by which the state grew in the last batch; negative if it shrank.",
    "state_bytes": "Bytes of working state.",
    "share": "The query's share of the work in the last batch of its job.",
    "lag_seconds": "How far the watermark was behind the wall clock after the last batch of a job, in seconds.",
    "backlog_rows": "Rows that the sources of the query's job have and it has not read, where the sources tell.",
    "outbox_bytes": "Bytes of changes that the sink of a parked query has not got.",
}
_OPERATOR_TOTALS = {
    "rows_in": "Changes received by the operator.",
    "rows_in_negative": "Retractions received by the operator.",
    "rows_out": "Changes emitted by the operator.",
    "rows_out_negative": "Retractions emitted by the operator.",
    "expired": "Rows that expired in the operator's buffers.",
}
_OPERATOR_GAUGES = {"state_rows": "Rows in the operator's state.", "state_bytes": "Bytes of the operator's state."}
_QUERY_GROUPS = {
    "queries": ("gauge", "Queries over a kept window that share their scans: periodic ones, and snapshots that run."),
    "scans": ("counter", "Sub-windows that the group has scanned."),
    "reads_shared": ("counter", "Reads of sub-windows that another query of the group had scanned."),
    "bytes": ("gauge", "Bytes of scans that are kept for other queries of the group."),
}
_QUANTILES = {"p50": "0.5", "p95": "0.95", "p99": "0.99", "max": "1"}


def batch_metrics(progress: Any) -> dict[str, Any] | None:
    """The metrics of one batch, as in the query's `progress()`, from the `progress` of an event of Spark's listeners.

    None if the batch does not belong to a query of Sash.
    """
    from sash.spark.progress import Progress

    fresh = Progress(()).add([progress])
    return fresh[0] if fresh else None


def names() -> set[str]:
    """The names of all metrics, for dashboards."""
    totals = [f"{part}_total" for part in _TOTALS] + [f"operator_{part}_total" for part in _OPERATOR_TOTALS]
    gauges = [*_GAUGES, *(f"operator_{part}" for part in _OPERATOR_GAUGES), "operator_rows_per_second"]
    histogram = [f"output_delay_seconds_{part}" for part in ("bucket", "sum", "count")]
    groups = [_group_metric(part, kind) for part, (kind, _) in _QUERY_GROUPS.items()]
    states = ("up", "parked", "complete", "batch_delay_seconds")
    return {f"sash_{name}" for name in (*totals, *gauges, *histogram, *groups, *states)}


def exposition(running: Mapping[str, RunningQuery | JobQuery], query_groups: Sequence[Mapping[str, Any]] = ()) -> str:
    """The metrics of the queries, and of the groups of queries over kept windows, in the text format of Prometheus."""
    progress = {name: query.progress() for name, query in running.items()}
    operators = {name: query.operators() for name, query in running.items()}
    lines: list[str] = []
    lines += _family(
        "up", "gauge", "Whether the query is running.", [({"query": n}, int(q.active)) for n, q in running.items()]
    )
    parked = [({"query": name}, int(query.parked)) for name, query in running.items() if hasattr(query, "parked")]
    lines += _family("parked", "gauge", "Whether the query of a job is parked.", parked)
    complete = [
        ({"query": name}, int(progress[name].get("complete", True)))
        for name, query in running.items()
        if hasattr(query, "parked")
    ]
    lines += _family(
        "complete", "gauge", "Whether the windows of a query of a job are full, so that its answer is whole.", complete
    )
    for part, text in _TOTALS.items():
        values = [({"query": name}, seen.get(f"total_{part}", 0)) for name, seen in progress.items()]
        lines += _family(f"{part}_total", "counter", text, values)
    for part, text in _GAUGES.items():
        known = [({"query": name}, seen[part]) for name, seen in progress.items() if seen.get(part) is not None]
        lines += _family(part, "gauge", text, known)
    for part, text in _OPERATOR_TOTALS.items():
        lines += _family(f"operator_{part}_total", "counter", text, list(_per_operator(operators, part)))
    for part, text in _OPERATOR_GAUGES.items():
        lines += _family(f"operator_{part}", "gauge", text, list(_per_operator(operators, part)))
    rates = {name: seen.get("operators", {}) for name, seen in progress.items()}
    text = "Changes per second received by the operator in the last batch."
    known = [entry for entry in _per_operator(rates, "rows_per_second") if entry[1] is not None]
    lines += _family("operator_rows_per_second", "gauge", text, known)
    lines += _percentiles(progress)
    lines += _delays(running)
    for part, (kind, text) in _QUERY_GROUPS.items():
        lines += _family(
            _group_metric(part, kind), kind, text, [(_group_labels(group), group[part]) for group in query_groups]
        )
    return "\n".join(lines) + "\n"


Labelled = tuple[dict[str, str], Any]


def _family(name: str, kind: str, text: str, values: list[Labelled]) -> list[str]:
    if not values:
        return []
    head = [f"# HELP sash_{name} {text}", f"# TYPE sash_{name} {kind}"]
    return [*head, *(f"sash_{name}{_labels(labels)} {value}" for labels, value in values)]


def _per_operator(operators: Mapping[str, Mapping[str, Mapping[str, Any]]], part: str) -> Iterator[Labelled]:
    for query, counts in operators.items():
        for operator, seen in counts.items():
            stage, position, kind = operator.split(".", 2)
            yield {"query": query, "stage": stage, "position": position, "operator": kind}, seen[part]


def _percentiles(progress: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Quantiles of the last batch; the histogram gives those of longer times."""
    values: list[Labelled] = []
    for query, seen in progress.items():
        for name, value in seen.get("delay_seconds", {}).items():
            if name in _QUANTILES and value is not None:
                values.append(({"query": query, "quantile": _QUANTILES[name]}, value))
    text = "Quantiles of the output delay of the last batch."
    return _family("batch_delay_seconds", "gauge", text, values)


def _delays(running: Mapping[str, RunningQuery | JobQuery]) -> list[str]:
    from sash.spark.batch_metrics import EDGES

    name = "sash_output_delay_seconds"
    lines = [f"# HELP {name} Time from a change's timestamp until it left the last stage.", f"# TYPE {name} histogram"]
    for query, handle in running.items():
        reached = 0
        for edge, count in zip([*map(str, EDGES), "+Inf"], handle.delays(), strict=True):
            reached += count
            lines.append(f"{name}_bucket{_labels({'query': query, 'le': edge})} {reached}")
        lines.append(f"{name}_sum{_labels({'query': query})} {round(handle.delay_sum, 6)}")
        lines.append(f"{name}_count{_labels({'query': query})} {reached}")
    return lines if len(lines) > 2 else []


def _group_metric(part: str, kind: str) -> str:
    return f"query_group_{part}_total" if kind == "counter" else f"query_group_{part}"


def _group_labels(group: Mapping[str, Any]) -> dict[str, str]:
    return {"window": group["window"], "summaries": ", ".join(group["summaries"])}


def _labels(labels: Mapping[str, str]) -> str:
    escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    return "{" + ",".join(f'{name}="{value.translate(escaped)}"' for name, value in labels.items()) + "}"


class MetricsServer:
    """Serves GET /metrics on a port (0: any free port) until it is closed."""

    def __init__(self, text: Callable[[], str], port: int, host: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.split("?")[0] not in ("/metrics", "/"):
                    self.send_error(404)
                    return
                body = text().encode()
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                """Log nothing: a scrape comes every few seconds."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="sash-metrics", daemon=True).start()

    @property
    def url(self) -> str:
        """The address of the metrics."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
