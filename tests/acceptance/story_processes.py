"""The services and processes of the story of a pull request, and the steps of its people."""

from __future__ import annotations

import html
import itertools
import json
import random
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from draftsman.database.database import Connection
from draftsman.jobs.job import TERMINAL, Status
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_bots.slack import ids
from draftsman_bots.trello.records.board import BoardConfig, LabelRule
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.forges.conversation import SECRET, Payloads, deliver, github_webhook
from draftsman_testing.forges.github import FakeGitHub
from draftsman_testing.slack import FakeSlack
from draftsman_testing.trello import FakeTrello
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation, Process
from tests.core.forges.api_contract import forge_repository

Json = dict[str, Any]
WORDS: Final = ("one", "two", "three")
"""Lines that the agent adds to its file: for the request, the failed check and the review."""
FILE: Final = "ran.txt"
AGENT: Final = "codex"
COPIES: Final = 3
SECONDS: Final = 120.0
"""Deadline of a step."""
BOTS: Final = ("slack", "trello", "forges")
EVENTS: Final = "SELECT kind, key, outcome, reason FROM draftsman.forge_events ORDER BY id"


def command_of(word: str) -> str:
    """Return the command that the agent makes."""
    return f"echo {word} >> {FILE}"


@dataclass
class Services:
    """The fakes of Slack, Trello and a forge."""

    slack: FakeSlack
    trello: FakeTrello
    forge: FakeGitHub


@asynccontextmanager
async def services(folder: Path) -> AsyncIterator[Services]:
    """Serve Slack, Trello and a forge with a repository."""
    async with FakeSlack() as slack, FakeTrello() as trello, FakeGitHub(folder) as forge:
        forge.publish(forge_repository())
        yield Services(slack, trello, forge)


@dataclass
class Story:
    """A job on its way to the merge, and the processes that work on it."""

    services: Services
    installation: Installation
    rt: Runtime
    conn: Connection
    moments: Callable[[], bool]
    """Whether everything is killed at the next moment between two steps."""
    next_word: Callable[[str], None] = lambda _: None
    """Called with the word before the agent starts with it."""
    env: dict[str, str] = field(default_factory=dict)
    running: dict[str, Process] = field(default_factory=dict)
    hooks: list[tuple[bytes, dict[str, str]]] = field(default_factory=list)
    """Webhooks of the forge so far."""
    killed: int = 0

    def __post_init__(self) -> None:
        slack = self.services.slack
        trello = self.services.trello
        self.world = self.services.forge.world
        self.payloads = Payloads(self.world)
        self.anna = slack.user("anna")
        self.ben = slack.user("ben")
        self.room = slack.channel("pay", [self.anna, self.ben])
        self.member = trello.member("anna")
        self.approver = trello.member("ben")
        self.board = trello.board("Work", [self.member, self.approver])
        self.todo, self.review_list, self.done = (
            trello.list(self.board, name) for name in ("To do", "Review", "Done")
        )
        self.label = trello.label(self.board, "draftsman")
        self.shuffled = random.Random(1)
        self.numbers = itertools.count(1)

    def configure(self, **agent: Any) -> None:
        """Write the configuration, with these settings of the agent and its gateway."""
        slack = self.services.slack
        trello = self.services.trello
        world = self.world
        listen, self.webhook = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.env |= {
            "SLACK_BOT": slack.bot_token,
            "SLACK_APP": slack.app_token,
            "TRELLO_KEY": trello.key,
            "TRELLO_TOKEN": trello.token,
            "TRELLO_SECRET": trello.secret,
            "FORGE_TOKEN": world.token,
            "FORGE_SECRET": SECRET,
        }
        self.installation.configure(
            people__anna__slack=self.anna,
            people__anna__trello=self.member,
            people__anna__roles=["invoker", "responder"],
            people__ben__slack=self.ben,
            people__ben__trello=self.approver,
            people__ben__forge="acme:ben",
            people__ben__roles=["responder", "approver"],
            http__allow=["127.0.0.1"],
            questions__ask_grace=0,
            worker__heartbeat=1,
            worker__lease=5,
            sweeps__lease=2,
            sweeps__interval=1,
            notifications__timeout=0.5,
            notifications__lease=2,
            slack__api_url=slack.api_url,
            slack__bot_token__env="SLACK_BOT",
            slack__app_token__env="SLACK_APP",
            trello__api_url=trello.api_url,
            trello__key__env="TRELLO_KEY",
            trello__token__env="TRELLO_TOKEN",
            trello__secret__env="TRELLO_SECRET",
            trello__callback_url=f"http://{listen}/trello",
            trello__listen=listen,
            trello__poll=1,
            forges__acme__kind="github",
            forges__acme__url=world.base,
            forges__acme__token__env="FORGE_TOKEN",
            forges__acme__events="webhook",
            forges__acme__listen=self.webhook,
            forges__acme__webhook_secret__env="FORGE_SECRET",
            forges__acme__follow_up_delay=0,
            forges__acme__delete_branch=True,
            forges__acme__merge="ask",
            **agent,
        )

    async def set_up(self, owner: Actor, **fields: Any) -> None:
        """Add the repository, a template whose questions are asked in Slack, and the board.

        `fields` are further fields of the repository's profile.
        """
        repo = Repo.at(parse(self.services.forge.url))
        check = {"name": "tests", "command": ["grep", "-c", WORDS[0], FILE]}
        await self.rt.repos.add(repo, profile({"validation_commands": [check]} | fields), owner)
        await self.run(
            *("templates", "add", "fix", "--agent", AGENT, "--repo", "pay"),
            *("--notify", f"slack:{self.room}", "--parameter", "title", "{title}"),
        )
        config = BoardConfig(
            board_id=self.board,
            name="Work",
            labels={self.label: LabelRule(name="draftsman", template="fix")},
            ready_for_review_list_id=self.review_list,
            transition_rules={"merged": {"to": self.done}},
        )
        await boards_of(self.rt).save(config, owner)

    async def run(self, *args: str) -> None:
        """Run a command."""
        done = await self.installation.run(*args, **self.env)
        assert done.returncode == 0, done.stderr

    # Processes

    async def start(self) -> None:
        """Start the worker and the bots."""
        self.running = {"worker": self.installation.start("worker", env=self.env)}
        for name in BOTS:
            self.running[name] = self.installation.start("bots", name, env=self.env)
        await self.services.slack.sockets.wait(2)
        for name in BOTS[1:]:
            await self.running[name].says("serving HTTP on")

    async def strike(self) -> None:
        """Kill the worker and all bots, and start them again; at some moments only."""
        if not self.moments():
            return
        self.killed += 1
        for process in self.running.values():
            process.signal(signal.SIGKILL)
        for process in self.running.values():
            assert await process.end() == -signal.SIGKILL, process.output_text
        await self.services.slack.sockets.wait(0)
        await self.start()

    async def stop(self) -> None:
        """End all processes, which end in order."""
        for process in self.running.values():
            process.signal(signal.SIGTERM)
        for process in self.running.values():
            assert await process.end() == 0, process.output_text

    # Waits

    async def until(self, look: Callable[[], bool], what: str) -> None:
        """Wait for a condition of the fakes; fail with the errors of jobs."""

        async def looked() -> bool:
            return look()

        try:
            await until(looked, what, SECONDS)
        except AssertionError as error:
            jobs = [await self.rt.read_model.job(job.number) for job in await self.jobs()]
            lines = [f"{job.name} {job.type} {job.status} {job.last_error}" for job in jobs]
            events = await (await self.conn.execute(EVENTS)).fetchall()
            logs = [f"{name}: {it.output_text[-2000:]}" for name, it in self.running.items()]
            raise AssertionError(
                "\n".join([str(error), *lines, *map(str, events), *logs])
            ) from None

    async def jobs(self, type: str | None = None) -> list[Any]:
        """Return the jobs, oldest first."""
        jobs = await self.rt.read_model.jobs(type=type)
        return sorted(jobs, key=lambda job: job.number)

    def messages(self) -> list[Json]:
        """Return the messages of the channel and its threads, oldest first."""
        return list(self.services.slack.world.channels[self.room].messages.values())

    async def asked(self, part: str, control: str) -> Json:
        """Wait for a message of Slack with a text and a control; return it."""

        def found() -> list[Json]:
            texts = [(message, shown(message)) for message in self.messages()]
            return [message for message, text in texts if part in text and control in text]

        await self.until(lambda: bool(found()), f"{part!r} with {control} in Slack")
        [message] = found()
        return message

    async def asked_on_card(self, card: str, name: str) -> None:
        """Wait for the comment of the bot that asks a question on the card."""
        trello = self.services.trello

        def found() -> list[str]:
            texts = [
                item.text for item in trello.comments(card) if item.member == trello.bot_member
            ]
            return [text for text in texts if name in text and "approve" in text]

        await self.until(lambda: bool(found()), f"{name} on the card")
        assert len(found()) == 1, found()

    async def pull_recorded(self) -> None:
        """Wait until the job of the pull request is known; a webhook before has no effect.

        The next read of the forge, minutes later, has it.
        """
        await self.until(lambda: len(self.world.pulls) == 1, "the pull request")

        async def look() -> bool:
            rows = await self.conn.execute("SELECT FROM draftsman.pull_requests")
            return await rows.fetchone() is not None

        await until(look, "the record of the pull request", SECONDS)

    async def settled(self) -> None:
        """Wait until all jobs have ended and every delivery is sent."""

        async def look() -> bool:
            rows = await self.conn.execute(
                "SELECT count(*) FROM draftsman.deliveries"
                " WHERE status NOT IN ('sent', 'superseded', 'dead_letter')"
            )
            (open_ones,) = (await rows.fetchone()) or (0,)
            ended = [Status(job.status) in TERMINAL for job in await self.jobs()]
            return not open_ones and all(ended)

        await until(look, "the end of all jobs and deliveries", SECONDS)

    # Steps

    async def answer(self, person: str, part: str, control: str) -> None:
        """Press a control three times; everything is killed before and after it."""
        message = await self.asked(part, control)
        await self.strike()
        ack = await self.services.slack.press(
            person, self.room, message["ts"], control, retries=COPIES, copies=COPIES
        )
        assert ack.acked
        await self.strike()

    async def comment(self, card: str, text: str) -> None:
        """Comment as the approver; everything is killed before and after it.

        Its webhook arrives three times, like those before, out of order.
        """
        trello = self.services.trello
        await self.strike()
        trello.comment(card, self.approver, text)
        await trello.deliver(copies=COPIES, shuffle=1, replay=True, together=True)
        await self.strike()

    async def work(self, word: str) -> str:
        """Answer the question about the next command; return the head that it led to."""
        branch = "draftsman/D-1"
        before = self.world.head("draftsman/D-1")
        await self.answer(self.anna, command_of(word), f"{ids.ANSWER}:1")
        await self.until(
            lambda: self.world.head(branch) not in (None, before), f"the commit with {word}"
        )
        head = self.world.head(branch)
        assert head is not None
        await self.until(lambda: self.world.latest(head) != [], f"the status of {head}")
        await self.strike()
        return head

    async def send(self, *events: tuple[str, Json]) -> None:
        """Send new webhooks of the forge, and those before, in any order.

        Each arrives three times until the next ones: some before and some after everything was
        killed.
        """
        new = [
            github_webhook(event, body | {"repository": self.payloads.repository})
            for event, body in events
        ]
        copies = new * COPIES + self.hooks
        self.hooks += new
        self.shuffled.shuffle(copies)
        half = len(copies) // 2
        for part in (copies[:half], copies[half:]):
            for body, headers in part:
                status, text = await deliver(f"http://{self.webhook}/forges/acme", body, headers)
                assert status == 200, text
            await self.strike()

    async def label_card(self) -> str:
        """Add the label to a new card; its webhooks arrive three times, out of order."""
        trello = self.services.trello
        card = trello.card(self.board, self.todo, "Count to three", by=self.member)
        await trello.deliver()
        trello.add_label(card, self.label, self.member)
        await trello.deliver(copies=COPIES, shuffle=1, replay=True, together=True)
        return card


def shown(message: Json) -> str:
    """Return a message of Slack as text, without escapes."""
    return html.unescape(json.dumps(message))


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
