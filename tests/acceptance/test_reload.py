"""`draftsman up --reload`: the worker starts again with the code that changed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from draftsman.jobs.job import Job
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from tests.acceptance.processes import Installation
from tests.core.worker.workers import wait_for_end

CODE = """
from draftsman import RunContext, job

@job("greet")
async def greet(ctx: RunContext) -> str:
    return {greeting}
"""


class App:
    """The module of an app, whose files get a new time at each change."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "company" / "jobs.py"
        self.file.parent.mkdir()
        self._time = 1

    def write(self, greeting: str) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(CODE.format(greeting=greeting))
        self._time += 1
        os.utime(new, (self._time, self._time))
        new.rename(self.file)


async def greeted(rt: Runtime, owner: Actor) -> Job:
    """Return a job of the app, once it ended."""
    submitted = await rt.submissions.submit(invocation(type="greet"), owner)
    return await wait_for_end(rt, submitted.number)


async def test_the_worker_restarts_when_the_code_of_its_app_changes(
    rt: Runtime, owner: Actor, installation: Installation
) -> None:
    installation.configure()
    app = App(installation.folder)
    app.write("'hello'")
    up = installation.start("up", "--headless", "--reload", "--app", "company.jobs")
    assert (await greeted(rt, owner)).result == {"value": "hello"}
    app.write("'good morning'")
    await up.says("company/jobs.py changed; restarting the worker")
    await up.says("stopping worker; runs get time to finish")
    assert (await greeted(rt, owner)).result == {"value": "good morning"}
    app.write("'a' if True else (")
    await up.says("cannot import the app company.jobs: '(' was never closed (jobs.py, line 6)")
    await up.says("worker cannot start; it waits for a change of its code")
    app.write("'ok'\n\nnowhere.at_all()")
    await up.says("name 'nowhere' is not defined (jobs.py:8); is it below")
    app.write("'good night'")
    assert (await greeted(rt, owner)).result == {"value": "good night"}
    up.signal(signal.SIGTERM)
    assert up.popen.wait(60) == 0


async def test_a_worker_that_waits_for_a_change_can_be_stopped(installation: Installation) -> None:
    installation.configure()
    App(installation.folder).write("(")
    up = installation.start("up", "--headless", "--reload", "--app", "company.jobs")
    await up.says("worker cannot start; it waits for a change of its code")
    up.signal(signal.SIGTERM)
    assert up.popen.wait(60) == 0


async def test_reload_needs_an_app(installation: Installation) -> None:
    installation.configure()
    ended = await installation.run("up", "--headless", "--reload")
    assert ended.returncode == 2
    assert "--reload needs an app; name its module with --app" in ended.stderr
