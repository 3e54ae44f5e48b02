"""The addresses of the pages. Who may see them is the server's to check."""

from __future__ import annotations

from nicegui import ui
from starlette.responses import RedirectResponse

from sash.console.pages import formats
from sash.console.pages.frame import Fragment, address, card, every_second, listing, page, state
from sash.console.pages.job import show_job
from sash.console.pages.markup import Child, tag
from sash.console.pages.model import Poll, Views
from sash.console.pages.plan import show_plan
from sash.console.pages.query import QueryPage
from sash.console.pages.sql import SqlPage
from sash.console.pages.windows import show_windows


def register(views: Views) -> None:
    """Add the pages of jobs to NiceGUI's application; the mapping may change while it runs."""
    polls: dict[str, Poll] = {}

    def poll_of(job: str) -> Poll | None:
        view = views.get(job)
        if view is None:
            with page("No such job"), card():
                Fragment(tag("div", f"There is no job {job} here.", class_="empty"))
            return None
        if job not in polls or polls[job].view is not view:
            polls[job] = Poll(view)
        return polls[job]

    @ui.page("/")
    def jobs_page() -> RedirectResponse | None:
        if len(views) == 1:
            return RedirectResponse(address(next(iter(views))))
        with page("Jobs"), card("Jobs"):
            _show_jobs(views)
        return None

    @ui.page("/job/{job}")
    def job_page(job: str) -> None:
        if (poll := poll_of(job)) is not None:
            with page(poll.view.name, job, "", poll.view):
                show_job(job, poll)

    @ui.page("/job/{job}/query/{query}")
    def query_page(job: str, query: str) -> None:
        if (poll := poll_of(job)) is not None:
            with page(query, job, "query", poll.view):
                QueryPage(query, poll)

    @ui.page("/job/{job}/plan")
    def plan_page(job: str) -> None:
        if (poll := poll_of(job)) is not None:
            with page("Plan", job, "plan", poll.view):
                show_plan(poll)

    @ui.page("/job/{job}/windows")
    def windows_page(job: str) -> None:
        if (poll := poll_of(job)) is not None:
            with page("Windows", job, "windows", poll.view):
                show_windows(poll)

    @ui.page("/job/{job}/sql")
    def sql_page(job: str) -> None:
        if (poll := poll_of(job)) is not None:
            with page("SQL", job, "sql", poll.view):
                SqlPage(poll)


def _show_jobs(views: Views) -> None:
    listed = Fragment()
    polls = {job: Poll(view) for job, view in views.items()}

    async def read() -> None:
        rows: list[list[Child]] = []
        for job, poll in polls.items():
            status = await poll.read(poll.view.status)
            last = (status.get("batches") or [{}])[-1]
            rows.append(
                [
                    tag("a", poll.view.name, href=address(job)),
                    state(str(status.get("state") or "unknown")),
                    formats.seconds(last.get("lag_seconds")),
                    formats.milliseconds(last.get("batch_ms")),
                    tag("span", poll.view.checkpoint, class_="mono soft"),
                ]
            )
        heads = [("Job", False), ("State", False), ("Behind", True), ("Batch", True), ("Checkpoint", False)]
        listed.show(listing(heads, rows, "No jobs"))

    every_second(read)
