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
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from draftsman import __version__
from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.errors import DraftsmanError
from draftsman.ids import job_name
from draftsman_tui.cli.demo.steps import Steps
from draftsman_tui.cli.demo.unfinished import (
    Cursor,
    Left,
    UnfinishedJobs,
    clean_up,
    recorded,
    take_over,
    world_name,
)
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


OpenChat = Callable[[str, Path], AbstractAsyncContextManager[Chat]]
"""Starts a fake with a request for the repository of this name, or goes on with that of a file."""
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
async def _watching(app: App, chat: Chat, is_watched: bool) -> AsyncIterator[None]:
    """Watch the board for the block, by the commands of a user, unless it is watched already."""
    if not chat.board:
        yield
        return
    if not is_watched:
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
    app: App,
    open_chat: OpenChat,
    repo: Path | None,
    env: Mapping[str, str],
    story: str,
    *,
    browser: bool,
) -> None:
    """Serve the page of a fake, and print the steps of the jobs, until a shutdown signal.

    It goes on with a demo of the same `story` that was killed.
    """
    steps = Steps(app.out)
    async with app.runtime() as runtime:
        folder = app.settings.data_dir
        remove_board = partial(_remove_board, app, {})
        story = f"{__version__} {story} {repo or SAMPLE}"
        killed = take_over(folder, story, _can_go_on)
        if removed := await clean_up(runtime, await runtime.actor(), folder, remove_board, killed):
            steps.info("clean up", removed, "yellow")
        if killed is not None:
            steps.info("go on", "an earlier demo was killed; its page and its jobs go on", "cyan")
        cursor = killed.cursor if killed else await runtime.read_model.end_cursor()
        left = killed or Left(cursor, "", story, world_name())
        name = await _repository(app, runtime, repo)
        steps.info("repo", name, "cyan")
        async with (
            open_chat(name, folder / left.world) as chat,
            _recorded(folder, left, chat),
            _watching(app, chat, bool(left.board)),
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
async def _recorded(folder: Path, left: Left, chat: Chat) -> AsyncIterator[None]:
    with recorded(folder, replace(left, board=chat.board[0] if chat.board else "")):
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
async def open_slack(agent: str, request: str, repo: str, saved: Path) -> AsyncIterator[Chat]:
    """Serve a workspace with a channel, whose page begins with the request."""
    from draftsman_testing.fake.page import Guide
    from draftsman_testing.fake.server import read_state
    from draftsman_testing.slack import FakeSlack
    from draftsman_testing.slack.page.channel_page import ChannelPage

    world = read_state(saved) if saved.exists() else None
    async with FakeSlack(first_id=int(time.time()), world=world) as slack:
        if world is None:
            anna, ben = slack.user("anna"), slack.user("ben")
            channel = slack.channel(repo.rpartition("/")[2], [anna, ben])
        else:
            ids = {user["name"]: id for id, user in world.users.items()}
            anna, ben = ids["anna"], ids["ben"]
            channel = next(room.id for room in world.channels.values() if room.kind == "channel")
        slack.keep_in(saved)
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
async def open_trello(agent: str, request: str, repo: str, saved: Path) -> AsyncIterator[Chat]:
    """Serve a board with a card, which gets the label of a request on its page."""
    from draftsman_testing.fake.page import Guide
    from draftsman_testing.fake.server import read_state
    from draftsman_testing.trello import FakeTrello
    from draftsman_testing.trello.page.board_page import BoardPage

    world = read_state(saved) if saved.exists() else None
    async with FakeTrello(world=world) as trello:
        if world is None:
            anna, ben = trello.member("Anna"), trello.member("Ben")
            board = trello.board(repo.rpartition("/")[2], [anna, ben])
            to_do, _ = (trello.list(board, name) for name in (TO_DO, DONE))
            trello.label(board, LABEL)
            trello.label(board, f"{LABEL}: queued", "yellow")
            trello.card(board, to_do, request, by=anna)
        else:
            anna, ben = world.member("anna").id, world.member("ben").id
            board = next(iter(world.boards))
        trello.keep_in(saved)
        guide = Guide(
            "draftsman demo: Trello",
            (
                f"As Anna, add the label {LABEL}: it is the request.",
                "Answer the question: check an item, or comment its number.",
                f"{APPROVE} Comment: approve",
                "Read the result on the card. Then comment: /help",
            ),
        )
        webhook = next((webhook.url for webhook in trello.world.webhooks.values()), "")
        listen = urlsplit(webhook).netloc or f"127.0.0.1:{_free_port()}"
        while not _is_free(listen):  # noqa: ASYNC110 - the bot of the killed demo is about to end
            await asyncio.sleep(0.1)
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
            while not trello.webhooks or _is_free(listen):
                await trello.wait_for_call()

        async with BoardPage(trello, board, guide).serving() as url:
            options = ("--label", f"{LABEL}=fix/{agent}", "--ready", DONE)
            watched = (board, *options, "--checklists", "questions")
            yield Chat("Trello", url, env, ready, watched)


def _can_go_on(saved: Path) -> bool:
    """Return whether the ports of a stored fake and of its page are free."""
    from draftsman_testing.fake.server import read_state

    state = read_state(saved)
    return all(_is_free(urlsplit(url).netloc) for url in (state.base, state.page_url) if url)


def _is_free(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_server((host, int(port))).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


CHATS: Final = {"slack": open_slack, "trello": open_trello}
