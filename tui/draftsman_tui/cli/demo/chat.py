"""The demo in a chat: a fake of the service, its page in the browser, and draftsman behind it."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.errors import DraftsmanError
from draftsman.ids import job_name
from draftsman_tui.cli.demo.steps import Steps
from draftsman_tui.cli.demo.unfinished import Cursor, UnfinishedJobs, clean_up, recorded
from draftsman_tui.cli.processes.process_setup import child
from draftsman_tui.common.sections import reader_at
from draftsman_tui.terminal.browser import open_url
from draftsman_tui.terminal.own_command import start_process, stop_process

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_tui.cli.app import App

SAMPLE: Final = "inventory"
LABEL: Final = "draftsman"
TO_DO: Final = "To do"
DONE: Final = "Done"
APPROVE: Final = "As Ben, approve the change: Anna has no role to approve."


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
    board: Sequence[str] = ()
    """The arguments of `boards add`: a board that is watched for the time of the demo."""


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


@asynccontextmanager
async def _watching(app: App, chat: Chat) -> AsyncIterator[None]:
    """Watch the board for the block, by the commands of a user."""
    if not chat.board:
        yield
        return
    await _run(app, chat.env, "boards", "add", *chat.board)
    try:
        yield
    finally:
        await _remove_board(app, chat.env, chat.board[0])


async def _remove_board(app: App, env: Mapping[str, str], board: str) -> None:
    await _run(app, env, "boards", "remove", board, "--yes")


async def _run(app: App, env: Mapping[str, str], *command: str) -> None:
    """Run a command; raises DraftsmanError with its error."""
    name, *arguments = command
    with tempfile.TemporaryFile() as output:
        process = await start_process([*child(app, name), *arguments], output=output, env=env)
        if await process.wait() == 0:
            return
        output.seek(0)
        text = output.read().decode("utf-8", "replace").strip()
    raise DraftsmanError(f"draftsman {' '.join(command)}: {text}")


async def demonstrate_chat(
    app: App, open_chat: OpenChat, repo: Path | None, env: Mapping[str, str], *, browser: bool
) -> None:
    """Serve the page of a fake, and print the steps of the jobs, until a shutdown signal."""
    steps = Steps(app.out)
    async with app.runtime() as runtime:
        folder = app.settings.data_dir
        remove_board = partial(_remove_board, app, {})
        if removed := await clean_up(runtime, await runtime.actor(), folder, remove_board):
            steps.info("clean up", removed, "yellow")
        cursor = await runtime.read_model.end_cursor()
        name = await _repository(app, runtime, repo)
        steps.info("repo", name, "cyan")
        async with (
            open_chat(name) as chat,
            _recorded(folder, cursor, chat),
            _watching(app, chat),
            _running(app, {**env, **chat.env}) as up,
        ):
            await up.outlives(chat.ready())
            steps.info("started", f"a worker and the bot of {chat.label}; log: {up.log}", "cyan")
            opened = browser and open_url(chat.page)
            steps.info("page", chat.page, "bold")
            hint = "opened in the browser" if opened else "open it in a browser"
            steps.info("", f"{hint}; nothing leaves this machine; Ctrl-C ends the demo")
            await _follow(runtime, cursor, steps, up)


@asynccontextmanager
async def _recorded(folder: Path, cursor: Cursor, chat: Chat) -> AsyncIterator[None]:
    with recorded(folder, cursor, chat.board[0] if chat.board else ""):
        yield


async def _follow(runtime: Runtime, cursor: Cursor, steps: Steps, up: RunningDraftsman) -> None:
    """Print the steps of the jobs of this demo; cancel those that are not finished at the end.

    Events of jobs of a demo that was killed go on: their messages have no channel any more.
    """
    unfinished = UnfinishedJobs(cursor)
    own: set[int] = set()
    events = runtime.read_model.follow(None, after=cursor)
    reader = reader_at(policy=runtime.policy)
    try:
        while True:
            event = await up.outlives(anext(events))
            unfinished.add(event)
            if event.kind == "job_created":
                own.add(event.job)
            if event.job in own:
                steps.show(event, reader, job_name(event.job))
    finally:
        await unfinished.cancel(runtime, await runtime.actor())


async def _repository(app: App, runtime: Runtime, repo: Path | None) -> str:
    """Register the repository, by default the sample, as that of requests; return its name.

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
    actor = await runtime.actor()
    if (known := await runtime.repos.known(found.remote_url)) is not None:
        await runtime.repos.set_default(known, actor)
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
    added = await runtime.repos.add(found, profile, actor)
    await runtime.repos.set_default(added, actor)
    return added.full_name


def _people(table: str, anna: str, ben: str) -> dict[str, str]:
    """Return the variable with the two people of a chat: Anna asks, and Ben approves."""
    accounts = {
        "anna": {table: anna, "roles": ["invoker", "responder"]},
        "ben": {table: ben, "roles": ["invoker", "responder", "approver"]},
    }
    return {"DRAFTSMAN_PEOPLE": json.dumps(accounts)}


@asynccontextmanager
async def open_slack(agent: str, request: str, repo: str) -> AsyncIterator[Chat]:
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
        page = ChannelPage(
            slack, channel, guide, f"/draftsman fix --repo={repo} --agent={agent} {request}"
        )
        table = {
            "api_url": slack.api_url,
            "bot_token": {"env": "SLACK_BOT_TOKEN"},
            "app_token": {"env": "SLACK_APP_TOKEN"},
        }
        env = _people("slack", anna, ben) | {
            "DRAFTSMAN_SLACK": json.dumps(table),
            "SLACK_BOT_TOKEN": slack.bot_token,
            "SLACK_APP_TOKEN": slack.app_token,
        }
        async with page.serving() as url:
            yield Chat("Slack", url, env, slack.sockets.connected)


@asynccontextmanager
async def open_trello(agent: str, request: str, repo: str) -> AsyncIterator[Chat]:
    """Serve a board with a card, which gets the label of a request on its page."""
    from draftsman_testing.fake.page import Guide
    from draftsman_testing.trello import FakeTrello
    from draftsman_testing.trello.page.board_page import BoardPage

    async with FakeTrello() as trello:
        anna = trello.member("Anna")
        ben = trello.member("Ben")
        board = trello.board(repo.rpartition("/")[2], [anna, ben])
        to_do, _ = (trello.list(board, name) for name in (TO_DO, DONE))
        trello.label(board, LABEL)
        trello.label(board, f"{LABEL}: queued", "yellow")
        trello.card(board, to_do, request, by=anna)
        guide = Guide(
            "draftsman demo: Trello",
            (
                f"As Anna, add the label {LABEL}: it is the request.",
                "Answer the question: check an item, or comment its number.",
                f"{APPROVE} Comment: approve",
                "Read the result on the card. Then comment: /help",
            ),
        )
        listen = f"127.0.0.1:{_free_port()}"
        table = {
            "api_url": trello.api_url,
            "key": {"env": "TRELLO_KEY"},
            "token": {"env": "TRELLO_TOKEN"},
            "secret": {"env": "TRELLO_SECRET"},
            "callback_url": f"http://{listen}/trello",
            "listen": listen,
            "label": LABEL,
            "poll": 2,
        }
        env = _people("trello", anna, ben) | {
            "DRAFTSMAN_TRELLO": json.dumps(table),
            "TRELLO_KEY": trello.key,
            "TRELLO_TOKEN": trello.token,
            "TRELLO_SECRET": trello.secret,
        }

        async def ready() -> None:
            while not trello.webhooks:
                await trello.wait_for_call()

        async with BoardPage(trello, board, guide).serving() as url:
            options = ("--label", f"{LABEL}=fix/{agent}", "--ready", DONE)
            watched = (board, *options, "--checklists", "questions")
            yield Chat("Trello", url, env, ready, watched)


def _free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


CHATS: Final = {"slack": open_slack, "trello": open_trello}
