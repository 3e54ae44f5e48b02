"""CREATE FUNCTION and CREATE AGGREGATE: read and checked without executing the user's module, and packed by value."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from sash.errors import CatalogError, SashError
from sash.script.dry_run import DryRunBackend
from sash.script.reader import read_script
from sash.script.session import Session
from sash.script.statements import CreateFunction, Position
from sash.script.user_code import loaded_code, outlined_code

CODE = """
import pyarrow.compute as pc

FACTOR = 0.5


def net(price):
    return pc.multiply(price, FACTOR)


class Spread:
    def init(self): return None
    def add(self, state, values): return values
    def merge(self, earlier, later): return later
    def result(self, state): return None


class Incomplete:
    def init(self): return None
"""
STREAM = "CREATE STREAM sales (ts TIMESTAMP, price DOUBLE) USING csv OPTIONS (path 'in') TIME ts;\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder, which cannot be executed a second time without notice."""
    name = f"script_code_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def created(code: str, *, aggregate: bool = False) -> CreateFunction:
    return CreateFunction(Position(1, 1), "f", aggregate, code, pa.float64())


def test_reading() -> None:
    one, two = read_script(
        "CREATE FUNCTION f AS 'a.b:c' RETURNS DECIMAL(10, 2) VERSION '3'; create aggregate g as 'm:C' returns ARRAY<INT>"
    )
    assert isinstance(one, CreateFunction)
    assert isinstance(two, CreateFunction)
    assert (one.name, one.aggregate, one.code, one.returns, one.version) == (
        "f",
        False,
        "a.b:c",
        pa.decimal128(10, 2),
        "3",
    )
    assert (two.name, two.aggregate, two.code, two.returns, two.version) == (
        "g",
        True,
        "m:C",
        pa.list_(pa.int32()),
        "1",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE FUNCTION f RETURNS INT", "expected AS"),
        ("CREATE FUNCTION f AS c RETURNS INT", "as 'module:name'"),
        ("CREATE FUNCTION f AS 'a:b'", "expected RETURNS"),
        ("CREATE FUNCTION f AS 'a:b' RETURNS", "type that the function returns"),
        ("CREATE FUNCTION f AS 'a:b' RETURNS NOTHING", "NOTHING"),
    ],
)
def test_syntax_errors(text: str, message: str) -> None:
    with pytest.raises(SashError, match=message):
        read_script(text)


def test_a_script_is_checked_without_executing_the_module(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text(CODE + "\nraise RuntimeError('executed')\n")
    backend = DryRunBackend()
    session = Session(backend)
    script = (
        STREAM + f"CREATE FUNCTION net AS '{module}:net' RETURNS DOUBLE;"
        f"CREATE AGGREGATE spread AS '{module}:Spread' RETURNS DOUBLE VERSION '2';"
        "CREATE QUERY q AS SELECT spread(net(price)) AS s FROM sales [RANGE 1 HOUR] INTO console"
    )
    replies = [session.execute(statement) for statement in read_script(script)]
    assert [reply.text for reply in replies[1:3]] == ["Created function net", "Created aggregate spread"]
    (checked,) = backend.checked
    assert checked.planned is not None
    assert "spread" in checked.planned.explain()
    assert module not in sys.modules


@pytest.mark.parametrize(
    ("code", "aggregate", "message"),
    [
        ("{}", False, "written 'module:name'"),
        ("{}:a.b", False, "written 'module:name'"),
        ("nowhere_at_all:f", False, "no module nowhere_at_all in the current folder"),
        ("{}.inner:f", False, "no module .*inner"),
        ("{}:other", False, "has no other"),
        ("{}:Spread", False, "is a class; write CREATE AGGREGATE"),
        ("{}:net", True, "is a function; write CREATE FUNCTION"),
    ],
)
def test_code_that_is_not_there(module: str, code: str, aggregate: bool, message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        outlined_code(created(code.format(module), aggregate=aggregate))


def test_a_class_without_the_methods_of_an_aggregate(module: str) -> None:
    (statement,) = read_script(f"CREATE AGGREGATE spread AS '{module}:Incomplete' RETURNS DOUBLE")
    with pytest.raises(CatalogError, match="add, result is missing"):
        Session(DryRunBackend()).execute(statement)


def test_a_syntax_error_in_the_module(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text("def net(:\n")
    with pytest.raises(CatalogError, match="cannot be read"):
        outlined_code(created(f"{module}:net"))


def test_code_is_packed_with_what_it_uses_of_its_module(module: str, tmp_path: Path) -> None:
    """Another process, which does not find the module, executes the function."""
    from sash.spark.packing import pack_by_value

    packed = tmp_path / "packed"
    packed.write_bytes(pack_by_value(loaded_code(created(f"{module}:net"))))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    program = f"import pickle; import pyarrow as pa; print(pickle.load(open({str(packed)!r}, 'rb'))(pa.array([3.0])))"
    done = subprocess.run([sys.executable, "-c", program], cwd=elsewhere, capture_output=True, text=True, check=True)
    assert "1.5" in done.stdout
