"""Serves the pages of the model job, without safety, for tests and screenshots: `python -m tests.console.serve PORT [BEGUN]`."""

from __future__ import annotations

import socket
import sys

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from sash.console.pages import register
from tests.console.fake_view import START, FakeView


def main() -> None:
    begun = int(sys.argv[2]) if len(sys.argv) > 2 else START
    view = FakeView(allow_changes=True, begun=begun, polite=len(sys.argv) > 2)
    app = FastAPI()

    @app.post("/advance/{seconds}")
    def advance(seconds: int) -> int:
        for _ in range(seconds):
            view.advance()
        return view.now

    @app.post("/broken/{broken}")
    def break_status(broken: bool) -> None:
        view.broken = broken

    @app.post("/stopped/{stopped}")
    def stop(stopped: bool) -> None:
        view.stopped = stopped

    register({"shop": view})
    ui.run_with(app, dark=None, show_welcome_message=False)
    listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
