"""`python -m bench`: throughput, growth, many queries and the papers' experiments. Run it from the repository."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sash.errors import SashError

app = typer.Typer(
    name="bench",
    help="Benchmarks of Sash on this machine, and the papers' experiments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Save = Annotated[
    bool, typer.Option("--save", help="Save the figures in bench/results, with a description of the machine.")
]

Update = Annotated[
    bool, typer.Option("--update", help="Take what is not measured now from the results that were saved last.")
]


@app.command()
def throughput(
    queries: Annotated[
        str, typer.Option(help="Queries, comma-separated: q1, q2, q2-join-first, q3, q4, q5, top-n, lag, frame.")
    ] = "all",
    rows_per_batch: Annotated[
        int, typer.Option(min=1_000, help="Rows per micro-batch, all streams together.")
    ] = 1_000_000,
    batches: Annotated[int, typer.Option(min=1, help="Measured batches, after the window has filled.")] = 12,
    warm_up: Annotated[
        int,
        typer.Option(min=2, help="Batches before the measured ones, at least: Java compiles during about ten of them."),
    ] = 10,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Also measure a loop over single rows in transformWithStateInPandas.")
    ] = False,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Events per second of paper 1's queries, beside the limit of scan, filters and transfer to Python."""
    from bench.report import publish
    from bench.throughput import measure, table

    found = measure(queries, rows_per_batch, batches, warm_up, baseline=baseline)
    publish("throughput", found, table, as_json=as_json, save=save)


@app.command()
def kafka(
    rows: Annotated[int, typer.Option(min=20_000, help="Rows in the topic.")] = 1_000_000,
    kills: Annotated[int, typer.Option(min=0, help="How often the job is killed.")] = 3,
    turns: Annotated[int, typer.Option(min=1, help="How often the rates are measured; the medians count.")] = 3,
    seed: Annotated[int, typer.Option(help="Decides the rows, and the moments of the kills.")] = 0,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Kafka to Kafka and to a table: jobs that are killed at random, checked with DuckDB, and rates beside Spark's connector."""
    from bench.kafka import measure, page, table
    from bench.report import publish, write_page

    found = measure(rows, kills, turns, seed)
    publish("kafka", found, table, as_json=as_json, save=save)
    if save:
        write_page("kafka", page(found), ())


@app.command()
def soak(
    seconds: Annotated[float, typer.Option(min=60, help="How long the job runs.")] = 3600,
    rate: Annotated[int, typer.Option(min=1, help="Rows per second.")] = 1_000,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """A job that runs for an hour: memory, open files, working state and checkpoint, and the slope of each."""
    from bench.report import publish
    from bench.soak.measure import measure, table

    publish("soak", measure(seconds, rate), table, as_json=as_json, save=save)


@app.command("zero-sum")
def zero_sum(
    transfers: Annotated[int, typer.Option(min=100_000, help="Transfers.")] = 10_000_000,
    kills: Annotated[int, typer.Option(min=0, help="How often the job is killed.")] = 10,
    seed: int = 7,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Transfers out of order, in a job that is killed at random: all balances add up to zero at every instant."""
    from bench.report import publish, write_page
    from bench.zero_sum import measure, page, table

    found = measure(transfers, kills, seed)
    publish("zero-sum", found, table, as_json=as_json, save=save)
    if save:
        write_page("zero-sum", page(found), [])


@app.command()
def windows(
    sizes: Annotated[str, typer.Option(help="Rows in the partition, comma-separated.")] = "1000,30000,1000000",
    functions: Annotated[str, typer.Option(help="Functions by name, comma-separated.")] = "all",
    repeats: Annotated[int, typer.Option(min=1, help="Runs per point; the fastest counts.")] = 3,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Processor time per change of window functions, by the rows of a partition."""
    from bench.report import publish, write_page
    from bench.window_costs import measure, page, table

    found = measure(sizes, functions, repeats)
    publish("windows", found, table, as_json=as_json, save=save)
    if save:
        write_page("windows", page(found), [])


@app.command()
def console(
    readers: Annotated[int, typer.Option(min=1, help="Readers of changes as server-sent events.")] = 200,
    rate: Annotated[float, typer.Option(min=1, help="Requests for answers per second.")] = 50,
    seconds: Annotated[float, typer.Option(min=10, help="How long the load lasts in all.")] = 120,
    turns: Annotated[
        int, typer.Option(min=1, help="In how many turns; between them the job runs without a console.")
    ] = 3,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Batch times of a job of 100 changes per second, with the console under load and without it."""
    from bench.console.measure import measure, table
    from bench.report import publish

    publish("console", measure(readers, rate, seconds, turns), table, as_json=as_json, save=save)


@app.command()
def history(
    rows: Annotated[int, typer.Option(min=100, help="Rows per second.")] = 5_000,
    mode: Annotated[str, typer.Option(help="The mode of the output: changes, net or upsert.")] = "changes",
    seconds: Annotated[float, typer.Option(min=5, help="How long each job runs in a turn.")] = 30,
    turns: Annotated[int, typer.Option(min=1, help="How often each job runs.")] = 6,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Batch times of a job that keeps its history for the console, and of one that does not, in turns."""
    from bench.console.history import history_table, measure_history
    from bench.report import publish

    publish("history", measure_history(rows, mode, seconds, turns), history_table, as_json=as_json, save=save)


@app.command()
def growth(
    windows: Annotated[str, typer.Option(help="Rows in the window, comma-separated.")] = "100000,1000000,5000000",
    operators: Annotated[str, typer.Option(help="Operators, comma-separated: group-by, distinct, join.")] = "all",
    rows_per_batch: Annotated[
        int, typer.Option(min=1_000, help="Rows per micro-batch, all streams together.")
    ] = 100_000,
    batches: Annotated[int, typer.Option(min=1, help="Measured batches, after the window has filled.")] = 10,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """The time of a batch of fixed size by the size of the window."""
    from bench.growth import measure, table
    from bench.report import publish

    publish("growth", measure(windows, operators, rows_per_batch, batches), table, as_json=as_json, save=save)


@app.command()
def queries(
    queries: Annotated[
        str, typer.Option(help="Numbers of mixed queries, comma-separated; at most 100 each.")
    ] = "1,10,100",
    alike: Annotated[int, typer.Option(min=0, help="The number of queries that differ in a constant only.")] = 1_000,
    seconds: Annotated[float, typer.Option(min=1, help="Measured seconds of a job, and of separate queries.")] = 120,
    warmup: Annotated[float, typer.Option(min=0, help="Seconds before the measured ones.")] = 90,
    trigger: Annotated[float, typer.Option(min=0.1, help="Seconds between the starts of batches.")] = 2,
    rate: Annotated[int, typer.Option(min=1, help="Events per second and stream.")] = 10_000,
    ways: Annotated[str, typer.Option(help="How queries run, comma-separated: job, separate, alone.")] = (
        "job,separate,alone"
    ),
    alone_seconds: Annotated[float, typer.Option(min=1, help="Measured seconds of each query that runs alone.")] = 20,
    alone_queries: Annotated[int, typer.Option(min=1, help="How many of a job's queries run alone, at most.")] = 10,
    most_separate: Annotated[
        int, typer.Option(min=1, help="The most queries to run at the same time as separate ones.")
    ] = 100,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Batch time, processor time and lag of many queries over two streams: as one job, separately, and alone."""
    from bench.many.command import Settings, measure_all, table
    from bench.many.page import page
    from bench.report import publish, write_page

    settings = Settings(seconds, warmup, trigger, rate, alone_seconds, alone_queries, most_separate)
    found = measure_all(queries, alike, ways, settings)
    publish("queries", found, table, as_json=as_json, save=save)
    if save:
        write_page("queries", page(found), ())


@app.command()
def handover(
    megabytes: Annotated[str, typer.Option(help="Amounts of state, comma-separated.")] = "100,2000",
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """The time from the last batch of a job to the first batch of the job it is changed to, by its state."""
    from bench.handover import measure, table
    from bench.report import publish

    publish("handover", measure(megabytes), table, as_json=as_json, save=save)


@app.command()
def sketches(
    rows: Annotated[int, typer.Option(min=1_000, help="Rows of a window of ten sub-windows.")] = 200_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every point, each over other rows.")] = 5,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Approximate counts by key: the frequent-items sketch beside Count-Min at the same size (paper 2, 2.1)."""
    from bench.report import publish
    from bench.sketches import measure, table

    publish("sketches", measure(rows, seeds), table, as_json=as_json, save=save)


@app.command()
def pairs(
    base: Annotated[str, typer.Option(help="The commit to compare with.")],
    turns: Annotated[int, typer.Option(min=1, help="Pairs of runs; the median of their ratios counts.")] = 7,
    query: Annotated[str, typer.Option(help="One of the queries of `throughput`.")] = "q1",
    rows_per_batch: Annotated[
        int, typer.Option(min=1_000, help="Rows per micro-batch, all streams together.")
    ] = 500_000,
    batches: Annotated[int, typer.Option(min=1, help="Measured batches of each run.")] = 12,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Throughput of a query in this tree relative to another commit, in alternating pairs of runs."""
    from bench.pairs import measure, table
    from bench.report import publish

    found = measure(base, turns, query, rows_per_batch, batches)
    publish("pairs", found, table, as_json=as_json, save=save)


@app.command()
def paper1(
    rate: Annotated[float, typer.Option(min=1, help="Sales per second and stream.")] = 10,
    window: Annotated[int, typer.Option(min=1, help="The window, in seconds.")] = 60,
    changes: Annotated[int, typer.Option(min=1, help="The least number of changes of a run.")] = 2_000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every point, each with other arrivals.")] = 5,
    spark_seconds: Annotated[int, typer.Option(min=1, help="Seconds of each part of a run on Spark.")] = 3,
    experiments: Annotated[str, typer.Option(help="Experiments, comma-separated: delays, throughput, spark.")] = "all",
    update: Update = False,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Output delay by strategy, rate, depth and selectivity, and throughput (paper 1, Figs 8-12)."""
    from bench.paper1.measure import judged, measure, table
    from bench.paper1.page import figures, page
    from bench.report import latest, publish, write_page

    found = measure(rate, window, changes, seeds, spark_seconds, experiments)
    found = judged({**latest("paper1"), **found} if update else found)
    publish("paper1", found, table, as_json=as_json, save=save)
    if save:
        write_page("paper1", page(found), figures(found))


@app.command()
def strategies(
    queries: Annotated[str, typer.Option(help="Queries, comma-separated: q1 to q5.")] = "q1,q2,q3,q4,q5",
    rates: Annotated[str, typer.Option(help="Sales per second and stream, comma-separated.")] = "5,200",
    rows_per_batch: Annotated[
        int, typer.Option(min=1_000, help="Rows per micro-batch when the throughput is measured.")
    ] = 400_000,
    experiments: Annotated[str, typer.Option(help="Experiments: releases, throughput, re-evaluation, or all.")] = "all",
    update: Update = False,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Paper 1's queries under every strategy on Spark: rows, messages, probes, batches until release, delay, throughput."""
    from bench.report import latest, publish, write_page
    from bench.strategies import measure, page, table

    chosen = [name.strip() for name in queries.split(",")]
    known = latest("strategies") if update else {}
    found = measure(chosen, [float(rate) for rate in rates.split(",")], rows_per_batch, experiments, known)
    publish("strategies", found, table, as_json=as_json, save=save)
    if save:
        write_page("strategies", page(found), [])


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
    from bench.report import latest, publish, write_page

    made = measure(window, rows, changes, seeds, experiments=experiments)
    found = judged({**latest("paper3"), **made} if update else made)
    publish("paper3", found, table, as_json=as_json, save=save)
    if save:
        write_page("paper3", page(found), figures(found))


@app.command()
def paper4(
    experiments: Annotated[
        str, typer.Option(help="Experiments, comma-separated: table8, engine, fig2, fig3, fig4, spark.")
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


def main() -> None:
    """Run the command; errors that the user can fix are printed as one line."""
    try:
        app(prog_name="python -m bench")
    except SashError as problem:
        typer.echo(f"bench: {problem}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
