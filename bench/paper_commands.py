"""The papers' experiments, and their strategies on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.options import AsJson, Save, Update

app = typer.Typer()


@app.command()
def paper1(
    rate: Annotated[float, typer.Option(min=1, help="Sales per second and stream.")] = 10,
    window: Annotated[int, typer.Option(min=1, help="The window, in seconds.")] = 60,
    changes: Annotated[int, typer.Option(min=1, help="The least number of changes of a run.")] = 2_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every point, each with other arrivals.")] = 5,
    spark_seconds: Annotated[int, typer.Option(min=1, help="Seconds of each part of a run on Spark.")] = 3,
    experiments: Annotated[
        str, typer.Option(help="Experiments, comma-separated: delays, rows, throughput, spark.")
    ] = "all",
    update: Update = False,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Output delay by strategy, rate, depth and selectivity, and throughput (paper 1, Figs 8-12)."""
    from bench.paper1.measure import judged, measure, table
    from bench.paper1.page import figures, page
    from bench.report import latest, publish

    found = measure(rate, window, changes, seeds, spark_seconds, experiments)
    found = judged({**latest("paper1"), **found} if update else found)
    publish("paper1", found, table, page=page, plots=figures, as_json=as_json, save=save)


@app.command()
def paper2(
    sizes: Annotated[str, typer.Option(help="Sub-windows of the simulated windows, comma-separated.")] = (
        "10,20,40,60,80,100"
    ),
    repeats: Annotated[int, typer.Option(min=1, help="Runs per point, in simulation and in real time.")] = 5,
    realtime: Annotated[str, typer.Option(help="Sub-windows of the windows in real time.")] = "20,100",
    t: Annotated[float, typer.Option(min=0.01, help="Seconds between updates in real time.")] = 0.1,
    seconds: Annotated[float, typer.Option(min=1, help="Length of each run in real time.")] = 3,
    snapshots: Annotated[
        int, typer.Option(min=1, help="Snapshots of a window on Spark, per turn and isolation level.")
    ] = 4,
    experiments: Annotated[str, typer.Option(help="Experiments, comma-separated: simulated, realtime, spark.")] = "all",
    update: Update = False,
    as_json: AsJson = False,
    save: Annotated[
        bool, typer.Option("--save", help="Save the figures, the plots and the page in docs/experiments.")
    ] = False,
) -> None:
    """Isolation of queries over sliding windows: aborts, freshness, throughput, response times (paper 2, Figs 8-14)."""
    from bench.paper2.measure import Plan, judged, measure, plots, table
    from bench.paper2.page import write
    from bench.report import latest, publish

    timed = [int(n) for n in realtime.split(",")]
    plan = Plan([int(n) for n in sizes.split(",")], repeats, timed, t, seconds, snapshots)
    found = measure(plan, experiments)
    results = judged({**latest("paper2"), **found} if update else found)
    if not as_json:
        for figure in plots(results):
            Console().print(figure.table())
    publish("paper2", results, table, as_json=as_json, save=save)
    if save:
        for figure in plots(results):
            figure.draw()
        write(results)


@app.command()
def paper3(
    window: Annotated[int, typer.Option(min=1, help="The window, in seconds.")] = 10,
    rows: Annotated[int, typer.Option(min=1, help="Rows of a stream in a window, at most.")] = 1_000,
    changes: Annotated[int, typer.Option(min=1, help="Changes of a run whose delay is averaged, at least.")] = 2_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every point, each with other arrivals.")] = 5,
    experiments: Annotated[str, typer.Option(help="Experiments, comma-separated: simulated, baseline.")] = "all",
    update: Update = False,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Rows through the pipeline and delays of negative tuples, time messages and piggybacking (paper 3)."""
    from bench.paper3.measure import judged, measure, table
    from bench.paper3.page import figures, page
    from bench.report import latest, publish

    made = measure(window, rows, changes, seeds, experiments=experiments)
    found = judged({**latest("paper3"), **made} if update else made)
    publish("paper3", found, table, page=page, plots=figures, as_json=as_json, save=save)


@app.command()
def paper4(
    experiments: Annotated[
        str, typer.Option(help="Experiments, comma-separated, as table8, engine, fig2, fig3, fig4, purging.")
    ] = "all",
    rows: Annotated[int, typer.Option(min=1_000, help="Rows of the fastest runs; slower runs use fewer.")] = 200_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs per point, each over other rows.")] = 5,
    update: Update = False,
    as_json: AsJson = False,
    save: Annotated[
        bool, typer.Option("--save", help="Save the figures, the plots and the page in docs/experiments.")
    ] = False,
) -> None:
    """Multi-way joins: Table 8 and Figures 2, 3 and 4 of paper 4, and the throughput of the whole engine."""
    from bench.paper4.command import judged, measure, plots, table
    from bench.paper4.page import write
    from bench.report import latest, publish

    made = measure(experiments, rows, repeats)
    found = judged({**latest("paper4"), **made} if update else made)
    publish("paper4", found, table, as_json=as_json, save=save)
    if save:
        for figure in plots(found):
            figure.draw()
        write(found)


@app.command()
def paper5(
    queries: Annotated[
        str,
        typer.Option(help="Queries, comma-separated: q1-ftp, q1-telnet, q2-src, q2-pairs, q3, q4, q5-below, q5-above."),
    ] = "all",
    windows: Annotated[str, typer.Option(help="Rows per window of the generated trace, comma-separated.")] = (
        "2000,6000,20000,60000,200000"
    ),
    rows: Annotated[int, typer.Option(min=1_000, help="Measured rows per link, once windows are full.")] = 160_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per point, each over another generated trace.")] = 5,
    data: Annotated[Path | None, typer.Option(help="Folder of recorded traces; default: ../shared/data.")] = None,
    state_rows: Annotated[int, typer.Option(min=1_000, help="Rows in the window of the group-by.")] = 1_000_000,
    checkpoint: Annotated[
        bool, typer.Option(help="Measure the bytes that batches write to a checkpoint on Spark.")
    ] = True,
    experiments: Annotated[
        str, typer.Option(help="Experiments, comma-separated: generated, recorded, variants, sizes, ends, state.")
    ] = "all",
    update: Update = False,
    as_json: AsJson = False,
    save: Annotated[
        bool, typer.Option("--save", help="Save the figures, the plots and the page in docs/experiments.")
    ] = False,
) -> None:
    """Update patterns: Queries 1 to 5 of paper 5 under three strategies, time and state by window (Figs 9-17)."""
    from bench.paper5.command import DATA, judged, measure_all, plots, table
    from bench.paper5.page import write
    from bench.report import latest, publish

    sizes = sorted(int(size) for size in windows.split(","))
    found = measure_all(queries, sizes, rows, seeds, data or DATA, state_rows, checkpoint, experiments)
    results = judged({**latest("paper5"), **found} if update else found)
    publish("paper5", results, table, as_json=as_json, save=save)
    if save:
        for figure in plots(results):
            figure.draw()
        write(results)


@app.command()
def strategies(
    queries: Annotated[str, typer.Option(help="Queries, comma-separated: q1 to q5.")] = "q1,q2,q3,q4,q5",
    rates: Annotated[str, typer.Option(help="Sales per second and stream, comma-separated.")] = "5,200",
    rows_per_batch: Annotated[
        int, typer.Option(min=1_000, help="Rows per micro-batch when the throughput is measured.")
    ] = 400_000,
    experiments: Annotated[
        str, typer.Option(help="Experiments, comma-separated: releases, spark, throughput, re-evaluation.")
    ] = "all",
    changes: Annotated[int, typer.Option(min=1, help="The least number of changes of a run.")] = 2_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every point, each with other arrivals.")] = 5,
    update: Update = False,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Paper 1's queries under every strategy on Spark: rows, messages, probes, batches until release, delay, throughput."""
    from bench.report import latest, publish
    from bench.strategies import measure, page, table

    chosen = [name.strip() for name in queries.split(",")]
    known = latest("strategies") if update else {}
    found = measure(
        chosen, [float(rate) for rate in rates.split(",")], rows_per_batch, experiments, known, changes, seeds
    )
    publish("strategies", found, table, page=page, as_json=as_json, save=save)
