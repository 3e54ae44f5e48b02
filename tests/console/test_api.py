from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pyarrow as pa
import pytest

from tests.console.served import history_of, view_of
from tests.history.rings import changes, kept

pytest.importorskip("nicegui", reason="the console's extra is not installed")


class Client:
    """Calls an application without a server."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def get(self, url: str, **options: Any) -> Any:
        import httpx

        async def ask() -> Any:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
                return await client.get(url, **options)

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
