"""PostgreSQL over TLS, and names and values that try to be SQL."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sash.errors import SinkError
from sash.plan.types import BIGINT, STRING, Field
from sash.spark.sinks.base import OutputSpec
from tests.postgres import Server, free_port, restartable_server
from tests.spark.sinks.test_postgres import opened, rows_of

OUTPUT = OutputSpec((Field("k", STRING), Field("n", BIGINT)), BIGINT, "upsert", (0,), "one")


def make_certificate(folder: Path, name: str, *signed: str) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
         "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt", *signed],
        check=True, capture_output=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two authorities; `localhost` is certified by the first."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificates, is not installed")
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("authority", "stranger"):
        make_certificate(folder, name)
    made = ("-CA", str(folder / "authority.crt"), "-CAkey", str(folder / "authority.key"))
    make_certificate(folder, "localhost", *made, "-addext", "subjectAltName=DNS:localhost")
    return folder


@pytest.fixture(scope="module")
def tls(certificates: Path) -> Iterator[Server]:
    with restartable_server() as server:
        for part in ("key", "crt"):
            server.give(certificates / f"localhost.{part}", f"server.{part}")
        with (server.data / "postgresql.conf").open("a") as settings:
            settings.write("ssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\n")
        (server.data / "pg_hba.conf").write_text("local all all trust\nhostssl all all 127.0.0.1/32 trust\n")
        server.stop()
        server.start(port=free_port())
        yield server


def secure(server: Server, certificates: Path, authority: str, host: str = "host=localhost") -> str:
    address = f"{host} hostaddr=127.0.0.1 port={server.port} user=sash dbname=postgres"
    return f"{address} sslmode=verify-full sslrootcert={certificates / authority}.crt"


def test_a_server_with_a_certificate_is_written_to(tls: Server, certificates: Path) -> None:
    url = secure(tls, certificates, "authority")
    write = opened(url, "over_tls", OUTPUT)
    write([("+", 1, "a", 1)], 0)
    assert rows_of(tls.url, "over_tls") == [("a", 1)]
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
        assert found == (True,)


@pytest.mark.parametrize(
    ("authority", "host", "words"),
    [
        ("stranger", "host=localhost", "certificate verify failed"),
        ("authority", "host=other.example", "does not match host"),
    ],
)
def test_a_server_that_is_not_the_one_meant_is_refused(
    tls: Server, certificates: Path, authority: str, host: str, words: str
) -> None:
    with pytest.raises(SinkError, match=words) as caught:
        opened(secure(tls, certificates, authority, host), "elsewhere", OUTPUT)
    assert not caught.value.transient


HOSTILE = [
    "'; DROP TABLE kept; --", '"; DROP TABLE kept; --', "$$; DROP TABLE kept; --", "\\'; DROP TABLE kept; --", "%s", "%(x)s", "{}",
    "E'\\x00", "a\\.b\n\\.\n", "NULL", "\\N", '"', "",
]  # fmt: skip


@pytest.mark.parametrize("mode", ["upsert", "net", "changes"])
def test_names_and_values_are_never_sql(tls: Server, mode: Any) -> None:
    with psycopg.connect(tls.url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n INT)")
    named = [name for name in HOSTILE if name]
    schema = tuple(Field(name, STRING) for name in named)
    output = OutputSpec(schema, BIGINT, mode, tuple(range(len(named))) if mode == "upsert" else None, "one")
    table = f"t{mode}'; DROP TABLE kept; --"
    write = opened(tls.url, table, output)
    rows = [
        ("+", number, *(HOSTILE[(number + place) % len(HOSTILE)] for place in range(len(named)))) for number in range(3)
    ]
    write(rows, 0)
    write([("-", 5, *rows[0][2:])], 1)
    columns = ", ".join('"' + name.replace('"', '""').replace("%", "%%") + '"' for name in named)
    with psycopg.connect(tls.url) as connection:
        found = connection.execute(f'SELECT {columns.replace("%%", "%")} FROM "{table}"').fetchall()  # type: ignore[call-overload]
        assert connection.execute("SELECT COUNT(*) FROM kept").fetchone() == (0,)
    expected = [row[2:] for row in (rows[1:] if mode != "changes" else [*rows, rows[0]])]
    assert sorted(found) == sorted(expected)
