"""Takes the pictures of the pages: the real dashboard with jobs of a real worker.

python -m tests.docs.pictures
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from unittest.mock import PropertyMock, patch

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.jobs.runs.run import Lease
from draftsman.people.actor import Actor
from draftsman.people.policy import ROLES
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime, open_runtime
from draftsman.settings import load
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.waits import until
from draftsman_tui.dashboard.frame.refresher import Refresher
from draftsman_tui.dashboard.tables.saved_views import BUILTIN_VIEWS
from draftsman_tui.dashboard.widgets.preview_pane import PreviewPane
from tests.docs.gallery.past import Past
from tests.docs.pages import DOCS
from tests.support.server import Server, make_home
from tests.support.svg import render_svg
from tests.tui.cli.cli_runner import COMMAND
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard

PLACE: Final = DOCS / "pictures"
HERO: Final = (140, 40)
"""Size of the picture of the jobs, with a preview."""
SIZE: Final = (100, 24)
ANNA: Final = Actor(Source.CLI, "anna", "Anna", "anna", ROLES, owner=True)
LIVE: Final = (
    ("stock", "Count the stock", "The counts of two shelves differ; I check the imports."),
    ("pay", "Round each refund once", "All tests of the ledger pass."),
    ("shop", "Show prices with taxes", "I add the tax to the cart."),
)
"""Repository and title of the jobs that run, and the newest line of their agents."""
NAMING: Final = QuestionSpec(
    key="name", text="Which name should the option have?", choices=["gift_wrap", "wrap"]
)
HOST: Final = "build-1"
"""Host name of the worker in a picture."""
PICTURED: Final = re.compile(r"!\[[^\]]*\]\(([^)]+\.svg)\)")


async def take(config: Path, into: Path) -> None:
    """Run jobs, and take pictures of the dashboard."""
    repo = config.parent / "inventory"
    await make_sample_repo(repo)
    async with open_runtime(load(config)) as rt:
        make = Factory(rt, ANNA)
        past = Past(rt)
        await _history(make, past)
        async with _worker(rt, config):
            done, asking = [
                (await rt.submissions.submit(_request(repo, title), ANNA)).number
                for title in ("Tidy up the inventory", "Fix the import of orders")
            ]
            for number in (done, asking):
                await _reached(rt, number, Status.WAITING_FOR_INPUT)
            await make.answer(done, "safe fixes", only=True)
            await _reached(rt, done, Status.COMPLETED)
            await past.wait(1700)
            for name, title in (("shop", "Deploy the shop"), ("pay", "Deploy the payments")):
                action = {"to": "origin", "push": f"draftsman/{name}"}
                gate = GATE.model_copy(update={"text": "Push the branch?", "action": action})
                await make.asked(gate, **_of(name, title))
                await past.wait(420)
            await make.asked(NAMING, **_of("shop", "Add an option for gift wrapping"))
            for nth, (name, title, line) in enumerate(LIVE, 1):
                work = await make.running(agent="coder", **_of(name, title))
                await _progress(rt, work.lease, nth, line)
                await past.wait(190)
            for name, title in (("site", "Send the weekly report"), ("pay", "Update httpx")):
                await make.queued(**_of(name, title))
                await past.wait(35)
            await past.apply()
            into.mkdir(exist_ok=True)
            with clock_at(await _now(rt)):
                await _pictures(rt, done, asking, into)


async def _progress(rt: Runtime, lease: Lease, nth: int, line: str) -> None:
    """Give a run a plan, a line of its agent, changes and costs."""
    steps = [{"text": text, "state": "completed"} for text in ("read", "plan")[:nth]]
    entries = [*steps, {"text": "write the tests", "state": "running"}, {"text": "validate"}]
    activity = [
        Activity(ActivityKind.PLAN, "", detail={"entries": entries}),
        Activity(ActivityKind.MESSAGE, line),
    ]
    await rt.activity.append(lease, 1, activity, QuotaLimit(100, 1 << 20))
    added = "+a line\n" * (20 * nth)
    patch_text = f"--- a/main.py\n+++ b/main.py\n@@ -1 +1,{20 * nth} @@\n-old\n{added}"
    await rt.changes.store(lease, patch_text.encode())
    await rt.model_calls.record(lease, {"cost_usd": 0.27 * nth}, "model-1")


async def _history(make: Factory, past: Past) -> None:
    """Make jobs that have ended, or that are retried."""
    for name, title in (("site", "Publish the price list"), ("stock", "Import the old orders")):
        await make.failed(**_of(name, title))
        await past.wait(5400)
    await make.dead(**_of("pay", "Fetch the bank statements"))
    for name, title in (
        *(("shop", "Translate the emails"), ("site", "Compress the pictures")),
        *(("stock", "Check the addresses"), ("pay", "Rename the ledger")),
    ):
        number = await make.queued(**_of(name, title))
        await past.wait(8)
        work = await make.running(number)
        await past.wait(260)
        await make.rt.settlement.outcome(work, Done({}))
        await past.wait(150)
    await make.canceled(**_of("site", "Rewrite the front page"))
    await make.retrying(**_of("stock", "Fetch exchange rates"))


def _of(repo: str, title: str) -> dict[str, Any]:
    """Return the fields of a job in a repository."""
    return {"type": "run_agent", "repo": f"https://git.example/acme/{repo}", "title": title}


async def _pictures(rt: Runtime, done: int, asking: int, into: Path) -> None:
    start = ("attention", BUILTIN_VIEWS["attention"])
    async with open_dashboard(rt, ANNA, size=HERO, view=start) as dashboard:
        await dashboard.see("push draftsman/", "leader ", "for you")
        for _ in range(len(dashboard.keys)):
            row = dashboard.app.main.table.row
            if row is not None and row.title == "Deploy the shop":
                break
            await dashboard.press("down")
        pane = dashboard.app.main.query_one(PreviewPane)
        await dashboard.until(lambda: "Deploy the shop" in pane.text)
        _keep(dashboard, into / "jobs.svg")
    async with open_dashboard(rt, ANNA, size=SIZE) as dashboard:
        await dashboard.job(f"D-{done}", "4")
        await dashboard.see("▾ ")
        _keep(dashboard, into / "job.svg")
        await dashboard.press("escape")
        await dashboard.dialog("MainScreen")
        await dashboard.job(f"D-{asking}")
        await dashboard.press("a")
        await dashboard.dialog("AnswerDialog")
        await dashboard.see("safe fixes")
        _keep(dashboard, into / "answer.svg")


def _keep(dashboard: DashboardPilot, path: Path) -> None:
    path.write_text(render_svg(dashboard.app, f"draftsman: {path.stem}"), "utf-8")


def _request(repo: Path, title: str) -> Invocation:
    return invocation(type="run_agent", agent="tidy", repo=str(repo), queue="demo", title=title)


@asynccontextmanager
async def _worker(rt: Runtime, config: Path) -> AsyncIterator[None]:
    command = [*COMMAND, "--config", str(config), "worker", "--queue", "demo", "--slots", "2"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    try:
        await until(lambda: _leads(rt), "the worker")
        async with rt.db.connection() as conn:
            await conn.execute("UPDATE draftsman.workers SET host = %s", (HOST,))
        yield
    finally:
        process.terminate()
        await process.wait()


async def _leads(rt: Runtime) -> bool:
    return any(worker.leader for worker in await rt.read_model.workers())


async def _reached(rt: Runtime, number: int, status: Status) -> None:
    async def there() -> bool:
        return (await rt.read_model.job(number)).status is status

    await until(there, f"D-{number} {status}")


async def _now(rt: Runtime) -> datetime:
    return await rt.checkpoints.now()


@contextmanager
def clock_at(now: datetime) -> Iterator[None]:
    """Stop the clock, so that all pictures display the same ages."""
    with patch.object(Refresher, "now", PropertyMock(return_value=now)):
        yield


def main() -> None:
    """Take all pictures again."""
    home = make_home()
    server = Server(home, None)
    try:
        config = home / "draftsman.toml"
        url = server.url(server.create())
        data = home / "data"
        values = f'database_url = "{url}"\ndata_dir = "{data}"\n'
        config.write_text(f'{values}people.carol.roles = ["approver"]\n', "utf-8")
        asyncio.run(take(config, PLACE))
    finally:
        server.end()
    sys.stdout.write(f"{PLACE}\n")


if __name__ == "__main__":
    main()
