"""The application: the HTTP interface and the pages, behind the guard."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from fastapi import FastAPI

from sash.console.api import api_routes
from sash.console.guard import Access, Application, Guard
from sash.console.job_view import JobView


def create_app(views: Mapping[str, JobView], access: Access, *, pages: bool = True) -> Application:
    """The application over the jobs that are served, by name."""
    app = FastAPI(title="Sash", version=version("sash"), docs_url=None, redoc_url=None)
    app.include_router(api_routes(views))
    if pages:
        from nicegui import ui

        from sash.console.pages import register

        register(views)
        ui.run_with(app, title="Sash", dark=None, show_welcome_message=False)
    return Guard(app, access)
