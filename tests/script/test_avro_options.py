"""Where the schemas of values in Avro are: what the options of a stream must say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sash.errors import OptionError
from sash.script.reader import read_script
from sash.script.sources import AvroOptions, avro_options, stream_columns
from sash.script.statements import CreateStream, Declaration


def declared(options: str, source: str = "kafka", topic: str = "subscribe 't'") -> Declaration:
    text = f"CREATE STREAM s (ts BIGINT) USING {source} OPTIONS (kafka.bootstrap.servers 'x:1', {topic}, {options})"
    (statement,) = read_script(text)
    assert isinstance(statement, CreateStream)
    return statement.declaration


REGISTRY = "registry 'http://localhost:8081'"


def test_a_file_or_a_registry() -> None:
    assert avro_options(declared("format 'avro', schema 'a.avsc'"))[0] == AvroOptions("a.avsc", None)
    by_topic, left = avro_options(declared(f"format 'AVRO', {REGISTRY}, registry.user 'me', registry.password 'p'"))
    assert by_topic == AvroOptions(None, "http://localhost:8081", "t-value", user="me", password="p")
    assert "secret" not in repr(AvroOptions(None, "x", password="secret"))
    assert set(left) == {"kafka.bootstrap.servers", "subscribe", "format"}, "Spark does not get them"
    named = avro_options(declared(f"format 'avro', {REGISTRY}, subject 'n'"))[0]
    assert (named.subject, named.expected) == ("n", True)
    assert avro_options(declared(f"format 'avro', {REGISTRY}", topic="subscribe 't,u'"))[0].subject is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("format 'avro'", r"need a schema: OPTIONS \(schema 'file.avsc'\), or OPTIONS \(registry"),
        (f"format 'avro', schema 'a.avsc', {REGISTRY}", "need a schema"),
        (
            "format 'avro', schema 'a.avsc', subject 'n'",
            "subject, registry.user and registry.password are for a registry",
        ),
        ("format 'avro', registry 'localhost:8081'", "registry is the address of a schema registry, such as http://"),
        (
            "format 'avro', registry 'http://me:secret@host'",
            r"without a user: give registry\.user and registry\.password$",
        ),
        ("format 'debezium-avro', schema 'a.avsc'", r"formats of CREATE RELATION \.\.\. CHANGES"),
    ],
)
def test_options_that_do_not_fit_together(options: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        stream_columns(declared(options))


def test_avro_is_of_topics() -> None:
    with pytest.raises(OptionError, match="Avro is a format of topics"):
        stream_columns(declared("format 'avro', schema 'a.avsc', path 'p'", source="text"))


def test_reading_a_script_compiles_no_loops() -> None:
    code = "import sys, sash.script.sources; sys.exit('numba' in sys.modules and 'sash.avro.kernel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
