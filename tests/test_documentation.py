"""README and docs/ are correct: their blocks are executed, page by page and in order, and the names in them exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from sash.cli.check import check
from sash.cli.main import app
from sash.script.backend import QueryOptions
from sash.script.dry_run import DryRunBackend
from sash.script.reader import read_script
from sash.script.session import Session
from sash.script.statements import CreateStream, Select
from sash.testing import replay

HOME = Path(__file__).parents[1]
PAGES = [HOME / "README.md", *sorted((HOME / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="(.+?)"')
DECLARED = """
CREATE STREAM sales (ts TIMESTAMP, store_id INT, item_id INT, price DOUBLE) USING csv OPTIONS (path 'x');
CREATE STREAM returned (ts TIMESTAMP, item_id INT, price DOUBLE) USING csv OPTIONS (path 'x');
CREATE STREAM link_a (ts TIMESTAMP, source STRING) USING csv OPTIONS (path 'x');
"""
"""Streams that every page may use; its own declarations replace these."""

RUN = ("mkdir", "mv", "printf")
READ = (
    "createdb",
    "curl",
    "export",
    "kill",
    "pip",
    "psql",
    "source",
    "spark-submit",
    "sudo",
    "systemctl",
    "systemd-analyze",
)
"""Programs that change the machine, or need a system that may be missing: only the syntax of their commands is checked."""

NEEDED = {"lakehouse.md": ("deltalake", "pyiceberg")}
"""Optional packages that a page needs."""

OTHER_DIALECTS = ("Flink", "ksqlDB", "Spark")
"""Titles of SQL that is not Sash's."""


@dataclass(frozen=True)
class Block:
    language: str
    info: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], m[3], text.count("\n", 0, m.start()) + 1) for m in BLOCK.finditer(text)]


def needs_spark(page: Path) -> bool:
    return any(block.language == "python" and "sash.Engine(" in block.text for block in blocks(page))


def named(page: Path) -> Any:
    marks = [pytest.mark.spark] if needs_spark(page) else []
    return pytest.param(page, id=str(page.relative_to(HOME)), marks=marks)


FOLDER = re.compile(r'\.(csv|json|parquet)\("(\w+)"')


class Reader:
    """Executes the blocks of a page in a temporary folder."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.session = Session(DryRunBackend())
        for statement in read_script(DECLARED):
            self.session.execute(statement)

    def python(self, block: Block) -> None:
        # Spark may have been started in another folder by an earlier test.
        text = FOLDER.sub(lambda found: f'.{found[1]}("{Path(found[2]).absolute()}"', block.text)
        exec(compile(text, f"line {block.line}", "exec"), self.names)

    def sql(self, block: Block) -> None:
        title = TITLE.search(block.info)
        if title and title[1] in OTHER_DIALECTS:
            return
        if title and title[1] != "Sash":
            Path(title[1]).write_text(block.text)
            assert check(block.text, DryRunBackend()) == []
            return
        for statement in read_script(block.text):
            if isinstance(statement, CreateStream):  # replaces that of another block
                self.session.backend.catalog.streams.pop(statement.declaration.name.lower(), None)
            if isinstance(statement, Select):
                self.names["query"] = statement.query.sql  # a Python block may use the query above it
                assert self.session.backend.plan(statement.query.sql, QueryOptions()).explain()
            else:
                self.session.execute(statement)

    def bash(self, block: Block) -> None:
        subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
        for line in block.text.replace("\\\n", " ").splitlines():
            words = [word for word in shlex.split(line, comments=True) if word != "&"]
            if words:
                self.command(words, line)

    def command(self, words: list[str], line: str) -> None:
        program, *arguments = words
        if re.match(r"\w+=", program):
            return
        if program in RUN:
            subprocess.run(["bash", "-c", line], check=True)
        elif program == "make":
            assert re.search(rf"^{arguments[0]}:.*##", (HOME / "Makefile").read_text(), re.MULTILINE), line
        elif program == "python":
            assert (HOME / arguments[0]).is_file(), line
        elif program == "sash":
            self.sash(arguments)
        else:
            assert program in READ, f"no check is defined for {line!r}"

    def sash(self, arguments: list[str]) -> None:
        command, rest = typer.main.get_command(app), arguments
        while hasattr(command, "commands"):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context(command.name or "", list(rest))  # the options exist, and their values are valid
        if arguments[0] == "run":
            arguments = ["validate", arguments[1]]
        if arguments[0] in ("validate", "explain"):
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, done.output


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    monkeypatch.chdir(tmp_path)
    reads = Reader()
    yield reads
    if "engine" in reads.names:
        reads.names["engine"].close()


@pytest.mark.parametrize("page", [named(page) for page in PAGES])
def test_a_page_can_be_followed(page: Path, reader: Reader, request: pytest.FixtureRequest) -> None:
    for package in NEEDED.get(page.name, ()):
        pytest.importorskip(package)
    if needs_spark(page):
        request.getfixturevalue("spark")
    for block in blocks(page):
        assert block.language in ("python", "sql", "bash", "text"), f"{page}:{block.line}: mark what cannot run as text"
        if block.language != "text":
            getattr(reader, block.language)(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_excerpts_of_files_are_in_them(page: Path) -> None:
    for block in blocks(page):
        title = TITLE.search(block.info)
        if title and "/" in title[1]:
            assert block.text in (HOME / title[1]).read_text(), f"{page}:{block.line}"


@pytest.mark.spark
def test_spark_understands_its_side_of_a_comparison(spark: Any) -> None:
    columns = {"sales": "1 AS item_id, 2.0 AS price", "orders": "1 AS order_id, 'EUR' AS currency"}
    columns |= {"payments": "1 AS order_id, 2.0 AS amount", "rates": "'EUR' AS currency, 1.1 AS rate"}
    for name, text in columns.items():
        rows = (
            spark.readStream.format("rate").load()
            if name != "rates"
            else spark.range(1).selectExpr("now() AS timestamp")
        )
        rows.selectExpr("timestamp AS ts", *text.split(", ")).createOrReplaceTempView(name)
    queries = [block.text for block in blocks(HOME / "docs" / "coming-from.md") if 'title="Spark"' in block.info]
    assert len(queries) == 5
    assert all(spark.sql(query).isStreaming for query in queries)


@pytest.mark.spark
def test_a_slide_has_the_rows_of_the_hopping_window_of_spark_that_ends_there(spark: Any) -> None:
    given = [(5, 1, 2.0), (42, 1, 3.0), (42, 2, 1.0), (77, 1, 5.0), (131, 2, 4.0)]
    frame = spark.createDataFrame(given, "second LONG, item_id INT, price DOUBLE")
    frame.selectExpr("timestamp_seconds(second) AS ts", "item_id", "price").createOrReplaceTempView("sales")
    query = "SELECT CAST(window.end AS LONG) AS second, item_id, SUM(price) AS total FROM sales"
    query += " GROUP BY window(ts, '1 minute', '10 seconds'), item_id"
    hopping = sorted((row["second"], row["item_id"], row["total"]) for row in spark.sql(query).collect())
    result = replay(
        "SELECT item_id, SUM(price) AS total FROM sales [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY item_id",
        {"sales": [{"ts": ts, "item_id": item, "price": price} for ts, item, price in given]},
        unit="s",
    )
    ends = range(0, 200, 10)
    assert hopping == sorted((end, row["item_id"], row["total"]) for end in ends for row in result.at(end))


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").is_file()


def test_pictures_are_as_they_are_drawn() -> None:
    drawn = subprocess.run(
        [sys.executable, "-c", "import draw_windows as d; [print(p.draw(), end='') for p in d.DRAWN.values()]"],
        cwd=HOME / "scripts",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    kept = [
        (HOME / "docs" / "pictures" / f"{name}.svg").read_text()
        for name in ("hopping", "sliding", "slide", "join", "rows")
    ]
    assert drawn == "".join(kept)


LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site name them."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *sorted(HOME.glob("[AC]*.md"))], ids=lambda page: str(page.relative_to(HOME)))
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(file), f"{page.name}: {target}#{anchor}"


PATH = re.compile(r"`([\w/]+(?:\.(?:py|md|toml|txt)|/))`")
TEST = re.compile(r"`(test_\w+)`")
GUIDES = [
    HOME / "ARCHITECTURE.md",
    HOME / "CONTRIBUTING.md",
    HOME / "docs" / "paper-map.md",
    HOME / "docs" / "strategies.md",
]
TREE = [
    "/" + str(path.relative_to(HOME)) + ("/" if path.is_dir() else "")
    for folder in ("src", "tests", "bench", "campaign", "docs", "examples", "scripts")
    for path in [HOME / folder, *(HOME / folder).rglob("*")]
] + [f"/{path.name}" for path in HOME.iterdir() if path.is_file()]
BUILT = {"site/"}


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_files_and_tests_that_a_guide_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    paths = set(PATH.findall(text)) - BUILT
    assert sorted(path for path in paths if not any(found.endswith(f"/{path}") for found in TREE)) == []
    tests = "\n".join(file.read_text(encoding="utf-8") for file in (HOME / "tests").rglob("*.py"))
    assert sorted(name for name in set(TEST.findall(text)) if not re.search(rf"def {name}\b", tests)) == []


def test_the_architecture_lists_the_layers_of_the_import_contract() -> None:
    settings = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    assert "```\n" + "\n".join(layers) + "\n```" in (HOME / "ARCHITECTURE.md").read_text(encoding="utf-8")
