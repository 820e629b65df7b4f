"""The demo in a chat: a fake of the service, its page in the browser, and draftsman behind it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.errors import DraftsmanError
from draftsman.ids import job_name
from draftsman.jobs.job import TERMINAL
from draftsman_tui.cli.demo.steps import Steps
from draftsman_tui.cli.processes.process_setup import child
from draftsman_tui.terminal.browser import open_url
from draftsman_tui.terminal.own_command import start_process, stop_process

if TYPE_CHECKING:
    from draftsman.events.event import Event
    from draftsman.runtime import Runtime
    from draftsman_tui.cli.app import App

SAMPLE: Final = "inventory"


@dataclass(frozen=True, slots=True)
class Chat:
    """A running fake."""

    label: str
    page: str
    """URL of its page."""
    env: Mapping[str, str]
    """Variables with which draftsman uses it."""
    ready: Callable[[], Awaitable[object]]
    """Waits until draftsman uses it."""


OpenChat = Callable[[str], AbstractAsyncContextManager[Chat]]
"""Starts a fake with a request for the repository of this name."""
T = TypeVar("T")


class RunningDraftsman:
    """`draftsman up` as a process of the demo."""

    def __init__(self, process: Process, log: Path) -> None:
        self.log = log
        self._exit = asyncio.ensure_future(process.wait())

    async def outlives(self, work: Awaitable[T]) -> T:
        """Wait for work; raises DraftsmanError if the process exits before it is done."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._exit}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        finally:
            task.cancel()
        last = self.log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
        raise DraftsmanError(f"draftsman up exited: {last}; log: {self.log}")


@asynccontextmanager
async def _running(app: App, env: Mapping[str, str]) -> AsyncIterator[RunningDraftsman]:
    """Run a worker and the bot for the block; they stop also if this process is killed."""
    command = [*child(app, "up"), "--headless", "--attached"]
    with tempfile.NamedTemporaryFile(prefix="draftsman-demo-", suffix=".log", delete=False) as log:
        process = await start_process(command, stdin=subprocess.PIPE, output=log, env=env)
    try:
        yield RunningDraftsman(process, Path(log.name))
    finally:
        await stop_process(process)


async def demonstrate_chat(
    app: App, open_chat: OpenChat, repo: Path | None, env: Mapping[str, str], *, browser: bool
) -> None:
    """Serve the page of a fake, and print the steps of the jobs, until a shutdown signal."""
    steps = Steps(app.out)
    async with app.runtime() as runtime:
        cursor = await runtime.read_model.end_cursor()
        name = await _repository(app, runtime, repo)
        steps.info("repo", name, "cyan")
        async with open_chat(name) as chat, _running(app, {**env, **chat.env}) as up:
            await up.outlives(chat.ready())
            steps.info("started", f"a worker and the bot of {chat.label}; log: {up.log}", "cyan")
            opened = browser and open_url(chat.page)
            steps.info("page", chat.page, "bold")
            hint = "opened in the browser" if opened else "open it in a browser"
            steps.info("", f"{hint}; nothing leaves this machine; Ctrl-C ends the demo")
            await _follow(runtime, runtime.read_model.follow(None, after=cursor), steps, up)


async def _follow(
    runtime: Runtime, events: AsyncIterator[Event], steps: Steps, up: RunningDraftsman
) -> None:
    """Print the steps of all jobs; cancel those that are not finished at the end."""
    unfinished: set[int] = set()
    try:
        while True:
            event = await up.outlives(anext(events))
            steps.show(event, job_name(event.job))
            if event.to_status is not None:
                unfinished.add(event.job)
            if event.to_status in TERMINAL:
                unfinished.discard(event.job)
    finally:
        actor = await runtime.actor()
        for number in unfinished:
            await runtime.job_control.cancel(number, actor, "the demo ended", force=True)


async def _repository(app: App, runtime: Runtime, repo: Path | None) -> str:
    """Register the repository, by default the sample, unless it is; return its name.

    Each change of it needs an approval, and no validator has to pass: none is run beforehand.
    """
    from draftsman.agent_runs.validation.profile_check import (
        find_local_repository,
        inspect_repository,
    )
    from draftsman.settings.policies import PathRule, PolicySettings

    place = repo
    if place is None:
        place = app.settings.data_dir / SAMPLE
        if not place.exists():
            await make_sample_repo(place)
    found, path = await find_local_repository(place.expanduser())
    if (known := await runtime.repos.known(found.remote_url)) is not None:
        return known.full_name
    async with inspect_repository(app.settings, found.remote_url) as inspection:
        profile = inspection.detect_profile(path)
        names = sorted(entry.name for entry in inspection.workspace.path.iterdir())
    optional = [
        command.model_copy(update={"required": False}) for command in profile.validation_commands
    ]
    rules = tuple(PathRule(path=name, effect="ask") for name in names)
    fields = {"validation_commands": tuple(optional), "policy": PolicySettings(paths=rules)}
    profile = profile.model_copy(update=fields)
    added = await runtime.repos.add(found, profile, await runtime.actor())
    return added.full_name


def people(table: str, anna: str, ben: str) -> dict[str, str]:
    """Return the variable with the two people of a chat: Anna asks, and Ben approves."""
    accounts = {
        "anna": {table: anna, "roles": ["invoker", "responder"]},
        "ben": {table: ben, "roles": ["invoker", "responder", "approver"]},
    }
    return {"DRAFTSMAN_PEOPLE": json.dumps(accounts)}


APPROVE: Final = "As Ben, approve the change: nobody approves the work that they asked for."


@asynccontextmanager
async def open_slack(request: str, repo: str) -> AsyncIterator[Chat]:
    """Serve a workspace with a channel, whose page begins with the request."""
    from draftsman_testing.fake.page import Guide
    from draftsman_testing.slack import FakeSlack
    from draftsman_testing.slack.page.channel_page import ChannelPage

    async with FakeSlack(first_id=int(time.time())) as slack:
        anna = slack.user("anna")
        ben = slack.user("ben")
        channel = slack.channel(repo.rpartition("/")[2], [anna, ben])
        guide = Guide(
            "draftsman demo: Slack",
            (
                "As Anna, send the request.",
                "Answer the question: press a button, or reply with its number.",
                APPROVE,
                "Read the result. Then try: /draftsman help",
            ),
        )
        page = ChannelPage(slack, channel, guide, f"/draftsman fix --repo={repo} {request}")
        table = {
            "api_url": slack.api_url,
            "bot_token": {"env": "SLACK_BOT_TOKEN"},
            "app_token": {"env": "SLACK_APP_TOKEN"},
        }
        env = people("slack", anna, ben) | {
            "DRAFTSMAN_SLACK": json.dumps(table),
            "SLACK_BOT_TOKEN": slack.bot_token,
            "SLACK_APP_TOKEN": slack.app_token,
        }
        async with page.serving() as url:
            yield Chat("Slack", url, env, slack.sockets.connected)
