from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sash.errors import CatalogError, OverloadedError, QueryTimeoutError
from sash.history.limits import HistoryLimits
from tests.console.served import history_of, view_of
from tests.history.rings import changes, kept

pytest.importorskip("nicegui", reason="the console's extra is not installed")


class Client:
    """Calls an application without a server."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def get(self, url: str, **options: Any) -> Any:
        return self._ask("GET", url, **options)

    def post(self, url: str, **options: Any) -> Any:
        return self._ask("POST", url, **options)

    def _ask(self, method: str, url: str, **options: Any) -> Any:
        import httpx

        async def ask() -> Any:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
                return await client.request(method, url, **options)

        return asyncio.run(ask())


HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from fastapi import FastAPI

    from sash.console.api import api_routes

    views = {}
    for name in ("shop", "depot"):
        folder = tmp_path_factory.mktemp(name)
        history = history_of(folder).open(kept("totals"), kept(f"of_{name}", mode="net"), fresh=True)
        history.batch(0, 10, {"totals": changes(("+", 1, "tea", 1), ("+", 1, "tea", 1)), f"of_{name}": changes()})
        given = changes(("-", 12, "tea", 1), ("+", 12, HOSTILE, 2))
        history.batch(1, 20, {"totals": given, f"of_{name}": given.slice(1)})
        history.settled()
        history.close()
        views[name] = view_of(folder, name)
    app = FastAPI()
    app.include_router(api_routes(views))
    return Client(app)


def test_an_answer_now_and_at_an_instant(client: Any) -> None:
    now = client.get("/api/queries/totals/answer?job=shop").json()
    assert now["rows"] == [{"item": "tea", "n": 1}, {"item": HOSTILE, "n": 2}]
    assert (now["as_of"], now["watermark"], now["position"]) == (19_999_999, 20_000_000, "1.2")
    assert now["granularity"] == "instant"
    assert now["columns"] == [{"name": "item", "type": "STRING"}, {"name": "n", "type": "BIGINT"}]
    then = client.get("/api/queries/totals/answer", params={"job": "shop", "at": "1970-01-01T00:00:05Z"}).json()
    assert then["rows"] == [{"item": "tea", "n": 1}] * 2
    assert then["as_of"] == 5_000_000
    assert then["position"] is None
    batch = client.get("/api/queries/of_shop/answer?at=15000000").json()
    assert (batch["granularity"], batch["as_of"], batch["rows"]) == ("batch", 9_999_999, [])


def test_the_forms_of_an_answer(client: Any) -> None:
    url = "/api/queries/totals/answer?job=depot"
    found = client.get(url, headers={"accept": "text/csv"})
    assert found.text == f'"item","n"\n"tea",1\n"{HOSTILE}",2\n'
    assert found.headers["x-sash-watermark"] == "20000000"
    assert found.headers["x-sash-position"] == "1.2"
    assert found.headers["content-type"].startswith("text/csv")
    arrow = client.get(url, headers={"accept": "text/html;q=0.9, application/vnd.apache.arrow.stream"})
    table = pa.ipc.open_stream(io.BytesIO(arrow.content)).read_all()
    assert table.to_pylist() == [{"item": "tea", "n": 1}, {"item": HOSTILE, "n": 2}]
    plain = client.get(url, headers={"accept": "text/csv;q=0.1, application/json"})
    assert plain.headers["content-type"] == "application/json"
    assert client.get(url, headers={"accept": "text/html"}).status_code == 406


def test_what_is_not_known_is_said(client: Any) -> None:
    soon = client.get("/api/queries/totals/answer?job=shop&at=20000000")
    assert soon.status_code == 409
    assert soon.json()["watermark"] == 20_000_000
    assert "not yet known" in soon.json()["reason"]
    assert client.get("/api/queries/totals/answer?job=shop&at=soon").status_code == 422
    assert client.get("/api/queries/none/answer").status_code == 404
    assert client.get("/api/queries/totals/answer?job=none").status_code == 404
    assert client.get("/api/queries/totals/changes?job=shop&after=x").status_code == 400


def test_what_is_no_longer_kept_has_a_status_of_its_own(tmp_path: Path) -> None:
    from fastapi import FastAPI

    from sash.console.api import api_routes

    history = history_of(tmp_path, HistoryLimits(80, 1 << 20)).open(fresh=True)
    for number in range(40):
        history.now += 10
        history.batch(number, 10 * number + 10, {"q": changes(("+", 10 * number, "tea", number))})
        history.settled()
    history.close()
    app = FastAPI()
    app.include_router(api_routes({"shop": view_of(tmp_path)}))
    gone = Client(app).get("/api/queries/q/answer?at=5000000")
    assert gone.status_code == 410
    assert "no longer kept" in gone.json()["reason"]
    assert gone.json()["watermark"] == 400_000_000
    assert Client(app).get("/api/queries/q/answer?at=399000000").status_code == 200


class Snapshots:
    """A job of which only snapshots are asked."""

    problem: Exception | None = None

    def snapshot(self, sql: str, isolation: str, timeout: float, limit: int) -> dict[str, Any]:
        if self.problem is not None:
            raise self.problem
        return {"sql": sql, "isolation": isolation, "timeout": timeout, "limit": limit}


def test_snapshots_are_bounded_in_time_rows_and_number() -> None:
    from fastapi import FastAPI

    from sash.console.api import api_routes

    views: Any = {"shop": Snapshots()}
    app = FastAPI()
    app.include_router(api_routes(views))
    client = Client(app)
    usual = client.post("/api/snapshot", json={"sql": "SELECT 1"}).json()
    assert usual == {"sql": "SELECT 1", "isolation": "latest", "timeout": 10, "limit": 1_000}
    for wrong in (
        {"timeout": 31}, {"timeout": 0}, {"limit": 100_001}, {"limit": 0}, {"isolation": "none"}, {"sql": "x" * 100_001},
    ):  # fmt: skip
        assert client.post("/api/snapshot", json={"sql": "SELECT 1", **wrong}).status_code == 422, wrong
    for problem, status in (
        (OverloadedError("full"), 503),
        (QueryTimeoutError("late"), 504),
        (CatalogError("no"), 400),
    ):
        views["shop"].problem = problem
        assert client.post("/api/snapshot", json={"sql": "SELECT 1"}).status_code == status


def test_no_route_changes_anything(client: Any) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    methods = {(path, method) for path, given in paths.items() for method in given}
    assert {one for one in methods if one[1] != "get"} == {("/api/snapshot", "post")}  # which reads, and no more


def test_a_query_of_several_jobs_needs_its_job(client: Any) -> None:
    found = client.get("/api/queries/totals/answer")
    assert found.status_code == 409
    assert "shop, depot" in found.json()["detail"]
    assert client.get("/api/queries/of_depot/answer").status_code == 200


def test_the_interface_is_documented(client: Any) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/health", "/metrics", "/api/snapshot", "/api/queries/{name}/answer", "/api/queries/{name}/changes"} <= set(
        paths
    )
    assert "text/event-stream" in json.dumps(paths["/api/queries/{name}/changes"])
