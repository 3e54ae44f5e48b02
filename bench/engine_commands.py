"""The benchmarks of the engine: throughput, growth, jobs, systems beside it."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.options import AsJson, Save

app = typer.Typer()


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
    from bench.report import publish

    found = measure(rows, kills, turns, seed)
    publish("kafka", found, table, page=page, as_json=as_json, save=save)


@app.command()
def soak(
    seconds: Annotated[float, typer.Option(min=60, help="How long the job runs.")] = 3600,
    rate: Annotated[int, typer.Option(min=1, help="Rows per second.")] = 1_000,
    trigger: Annotated[float, typer.Option(min=0.1, help="Seconds between two batches.")] = 1,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """A job that runs for an hour: memory, open files, working state and checkpoint, and the slope of each."""
    from bench.report import publish
    from bench.soak.measure import measure, table
    from bench.soak.page import hour

    publish("soak", measure(seconds, rate, trigger), table, page=hour, as_json=as_json, save=save)


@app.command("soak-limited")
def soak_limited(
    rate: Annotated[int, typer.Option(min=1, help="Rows per second.")] = 20_000,
    room: Annotated[int, typer.Option(min=10, help="Megabytes beyond what the job has after five batches.")] = 150,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """A job whose memory becomes too little: it fails with a reason, and goes on from its checkpoint. Needs root."""
    from bench.report import publish
    from bench.soak.limited import measure, table
    from bench.soak.page import limited

    publish("soak-limited", measure(rate, room), table, page=limited, as_json=as_json, save=save)


@app.command("zero-sum")
def zero_sum(
    transfers: Annotated[int, typer.Option(min=100_000, help="Transfers.")] = 10_000_000,
    kills: Annotated[int, typer.Option(min=0, help="How often the job is killed.")] = 10,
    seed: int = 7,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Transfers out of order, in a job that is killed at random: all balances add up to zero at every instant."""
    from bench.report import publish
    from bench.zero_sum import measure, page, table

    found = measure(transfers, kills, seed)
    publish("zero-sum", found, table, page=page, as_json=as_json, save=save)


@app.command()
def windows(
    sizes: Annotated[str, typer.Option(help="Rows in the partition, comma-separated.")] = "1000,30000,1000000",
    functions: Annotated[str, typer.Option(help="Functions by name, comma-separated.")] = "all",
    repeats: Annotated[int, typer.Option(min=1, help="Runs per point; the fastest counts.")] = 3,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Processor time per change of window functions, by the rows of a partition."""
    from bench.report import publish
    from bench.window_costs import measure, page, table

    found = measure(sizes, functions, repeats)
    publish("windows", found, table, page=page, as_json=as_json, save=save)


@app.command()
def console(
    readers: Annotated[int, typer.Option(min=1, help="Readers of changes as server-sent events.")] = 200,
    rate: Annotated[float, typer.Option(min=1, help="Requests for answers per second.")] = 50,
    seconds: Annotated[float, typer.Option(min=10, help="How long the load lasts in all.")] = 240,
    turns: Annotated[
        int, typer.Option(min=1, help="In how many turns; between them no console runs, or a browser shows its pages.")
    ] = 2,
    as_json: AsJson = False,
    save: Save = False,
) -> None:
    """Batch times of a job of 100 changes per second, without a console, with its pages open, and with it under load."""
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
    from bench.report import publish

    settings = Settings(seconds, warmup, trigger, rate, alone_seconds, alone_queries, most_separate)
    found = measure_all(queries, alike, ways, settings)
    publish("queries", found, table, page=page, as_json=as_json, save=save)


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
