"""A card from its label to the merged pull request, with every process killed at each step.

Every webhook of the forge is delivered three times, in another order than that of its events.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import ClientError

from draftsman.domain.people.actor import Actor
from draftsman.domain.repos.repo_catalog import Repo, RepoLocation
from draftsman.domain.repos.repo_profile import profile
from draftsman.domain.repos.repo_url import parse
from draftsman.domain.trello.board import BoardConfig, LabelRule
from draftsman.runtime import Runtime
from draftsman.store.postgres.database import Connection
from tests.acceptance.conftest import _patience, installation, installations
from tests.acceptance.processes import Installation, Process
from tests.core.handlers.run_agent.profiled_jobs import commit_files
from tests.core.loops.agent_jobs import git
from tests.support.codex_recording import native_program
from tests.support.fake_model import FakeModel, Turn, fake_model
from tests.support.forges.conversation import SECRET, Payloads, deliver, github_webhook
from tests.support.forges.github import FakeGitHub
from tests.support.trello import FakeTrello
from tests.support.waits import until

__all__ = ["_patience", "installation", "installations"]
pytestmark = pytest.mark.timeout(600)
TWO: Final = {"name": "tests", "command": ["grep", "-c", "two", "a.txt"]}
CODE: Final = """
texts = [item["text"] for item in start["messages"]]
turns = (start["checkpoint"] or {}).get("turns", 0)
if turns == 0:
    parked(ask("pick", "Which color?", choices=["red", "blue"]))
open("a.txt", "a").write("two\\n" if turns == 0 else f"turn {turns}\\n")
say("checkpoint", id="c", data={"turns": turns + 1})
hear()
say("result", summary=f"turn {turns}: " + " | ".join(texts))
"""
PROGRAM: Final = os.environ.get("CODEX") or shutil.which("codex")
SECONDS: Final = 120.0
"""Deadline of each wait: Codex needs seconds to start, and each process is killed."""
FILES: Final = {
    "add.sh": 'grep -qx two a.txt || exec sh -c "echo two >> a.txt"\necho turn >> a.txt\n',
    ".codex/rules/default.rules": 'prefix_rule(pattern=["sh", "add.sh"], decision="allow")\n',
}
"""The command of Codex, and the rule by which it is not asked."""
MODEL: Final = 'model="fake-1"'
RUN: Final = {"tool": "exec_command", "args": {"cmd": "sh add.sh"}}
QUESTION: Final = {
    "id": "color",
    "header": "Color",
    "question": "Which color?",
    "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}],
}
ASK: Final = {"tool": "request_user_input", "args": {"questions": [QUESTION]}}
Hook = tuple[bytes, dict[str, str]]


class PullRequestModel(FakeModel):
    """A model that asks once, and then calls a command after each text of a user."""

    def turn(self, results: int, conversation: list[dict[str, Any]]) -> Turn:
        calls = [(at, item.get("name")) for at, item in enumerate(conversation)]
        if not any(name == "request_user_input" for _, name in calls):
            return ASK
        last = max(at for at, item in enumerate(conversation) if item.get("role") == "user")
        ran = any(at > last and name == "exec_command" for at, name in calls)
        return {"text": f"done after {results} calls"} if ran else RUN


class PullRequestStory:
    """A board and a forge, and the processes that serve them."""

    def __init__(
        self,
        trello: FakeTrello,
        forge: FakeGitHub,
        installation: Installation,
        rt: Runtime,
        conn: Connection,
        agent: dict[str, Any],
    ) -> None:
        self.trello, self.forge, self.installation = trello, forge, installation
        self.rt, self.conn = rt, conn
        self.anna, self.ben = trello.member("anna"), trello.member("ben")
        self.board = trello.board("Work", [self.anna, self.ben])
        self.todo, self.done = (trello.list(self.board, name) for name in ("To do", "Done"))
        self.label = trello.label(self.board, "draftsman")
        self.hooks: list[Hook] = []
        self.processes: list[Process] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.agent = "codex" if agent else "test"
        installation.configure(
            agent=CODE,
            **agent,
            people__anna__trello=self.anna,
            people__anna__roles=["invoker", "responder"],
            people__ben__trello=self.ben,
            people__ben__forge="acme:ben",
            people__ben__roles=["responder"],
            people__carol__forge="acme:carol",
            people__carol__roles=["approver"],
            notifications__timeout=0.5,
            notifications__lease=2,
            trello__api_url=trello.api_url,
            trello__key__env="KEY",
            trello__token__env="TOKEN",
            trello__poll=1,
            http__allow=["127.0.0.1"],
            forges__acme__kind="github",
            forges__acme__url=forge.world.base,
            forges__acme__token__env="FORGE_TOKEN",
            forges__acme__events="webhook",
            forges__acme__listen=f"127.0.0.1:{self.port}",
            forges__acme__webhook_secret__env="HOOK",
            forges__acme__follow_up_delay=0,
            forges__acme__merge="ask",
            forges__acme__delete_branch=True,
        )

    async def watch(self, owner: Actor) -> None:
        """Register the repository, and watch the board."""
        repo = Repo.at(parse(self.forge.url))
        checks = {"validation_commands": [TWO], "agent_config": ["codex"]}
        known = await self.rt.repos.add(repo, profile(checks), owner)
        await self.rt.repos.map(RepoLocation(known), owner, label_id=self.label)
        config = BoardConfig(
            board_id=self.board,
            name="Work",
            labels={self.label: LabelRule(name="draftsman", agent=self.agent)},
            transition_rules={"merged": self.done},
        )
        await self.rt.boards.save(config, owner)

    def start(self) -> None:
        """Start a worker and the bots."""
        env = {
            "KEY": self.trello.key,
            "TOKEN": self.trello.token,
            "FORGE_TOKEN": self.forge.world.token,
            "HOOK": SECRET,
            "KEY_OF_TEST": "the-key-of-the-provider",
        }
        self.processes = [self.installation.start(name, env=env) for name in ("worker", "bots")]

    async def kill(self) -> None:
        """Kill all processes, and start others, which do not wait for the leases of the killed."""
        for process in self.processes:
            process.signal(signal.SIGKILL)
            await process.end()
        await self.conn.execute("UPDATE draftsman.leases SET expires_at = draftsman.now()")
        self.start()

    def happens(self, event: str, **body: Any) -> None:
        """Add a webhook to those that are delivered."""
        repository = Payloads(self.forge.world).repository
        self.hooks.append(github_webhook(event, {**body, "repository": repository}))

    async def deliver_webhooks(self) -> None:
        """Deliver all webhooks so far three times, in random order, until each is stored."""
        hooks = self.hooks * 3
        random.Random(len(hooks)).shuffle(hooks)
        url = f"http://127.0.0.1:{self.port}/forges/acme"

        async def stored() -> bool:
            try:
                return (await deliver(url, *hooks[-1]))[0] == 200
            except (ClientError, OSError):
                return False

        while hooks:
            await until(stored, "the receipt of a webhook", SECONDS)
            hooks.pop()

    async def jobs(self) -> list[int]:
        """Return the jobs of the pull request."""
        family = await self.rt.forge_events.follow_ups.family(1)
        return [] if family is None else list(family.jobs)

    async def completed(self, count: int) -> int:
        """Wait until this many jobs of the pull request have completed; return the last."""

        async def look() -> bool:
            jobs = await self.jobs()
            states = [(await self.rt.read_model.job(job)).status for job in jobs]
            assert not {"failed", "dead_letter"} & set(states), states
            return states == ["completed"] * count

        await until(look, f"{count} completed jobs", SECONDS)
        return (await self.jobs())[-1]

    async def merge_question(self, job: int) -> str:
        """Wait until the merge of a job is asked for on the pull request; return its name."""
        name = ""

        async def look() -> bool:
            nonlocal name
            for item in await self.rt.read_model.jobs(type="merge_pull_request"):
                found = await self.rt.read_model.job(item.number)
                if found.payload == {"job": job} and found.status == "waiting_for_approval":
                    name = f"D-{item.number}/1"
            comments = self.forge.world.talk.comments
            return bool(name) and any(name in item.body for item in comments)

        await until(look, f"the question about the merge of D-{job}", SECONDS)
        return name

    async def wait_until(self, look: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""

        async def looked() -> bool:
            return look()

        await until(looked, what, SECONDS)

    def shows(self, card: str, part: str) -> bool:
        """Return whether a comment of the bot on a card has a text."""
        return any(part in comment.text for comment in self.trello.comments(card))


@pytest.fixture(params=["script", "codex"])
def agent(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Provide the configuration of an agent; none for that of the test."""
    if request.param == "script":
        yield {}
        return
    if PROGRAM is None:
        pytest.skip("no Codex here: npm i @openai/codex@0.169.0 outside of /tmp; set CODEX")
    with fake_model([], PullRequestModel) as model:
        yield {
            "agents__codex__command": [native_program(PROGRAM), "app-server", "-c", MODEL],
            "agents__codex__gateway": "model",
            "gateways__model__provider": "openai",
            "gateways__model__base_url": model.url,
            "gateways__model__api_key__env": "KEY_OF_TEST",
            "questions__ask_grace": 0,
        }


async def test_a_card_becomes_a_merged_pull_request_although_each_process_is_killed(
    installation: Installation,
    rt: Runtime,
    conn: Connection,
    owner: Actor,
    tmp_path: Path,
    agent: dict[str, Any],
) -> None:
    async with FakeTrello() as trello, FakeGitHub(tmp_path / "forge") as forge:
        forge.publish(commit_files(tmp_path / "source", FILES))
        world, shown = forge.world, Payloads(forge.world)
        story = PullRequestStory(trello, forge, installation, rt, conn, agent)
        await story.watch(owner)
        story.start()

        async def begun() -> bool:
            return await rt.boards.cursor(story.board) is not None

        await until(begun, "the first look at the board", SECONDS)
        card = trello.card(story.board, story.todo, "Count to two", by=story.anna)
        await story.kill()
        trello.add_label(card, story.label, story.anna)
        await story.wait_until(lambda: story.shows(card, "Which color?"), "the question")
        await story.kill()
        trello.comment(card, story.anna, "1")
        await story.wait_until(lambda: len(world.pulls) == 1, "the pull request")
        await story.kill()
        await story.completed(1)
        branch = "draftsman/D-1"
        heads = [world.head(branch)]

        world.talk.logs[1] = "E  assert 1 == 2\n"
        world.checks.append({"name": "ci", "state": "failed", "commit": str(heads[0])})
        story.happens("check_run", action="completed")
        await story.deliver_webhooks()
        await story.kill()
        await story.completed(2)
        heads.append(world.head(branch))
        world.checks[0] |= {"state": "passed", "commit": "*"}

        review, [line] = world.talk.review(1, "ben", "changes_requested", "No", a_txt="Name it")
        about = {"pull_request": {"number": 1}}
        comment = shown.comment(line)
        story.happens("pull_request_review_comment", action="created", comment=comment, **about)
        told = shown.review(review, upper=False)
        story.happens("pull_request_review", action="submitted", review=told, **about)
        await story.deliver_webhooks()
        await story.kill()
        last = await story.completed(3)
        heads.append(world.head(branch))

        name = await story.merge_question(last)
        await story.kill()
        assert world.head("main") not in heads, "not merged without an approval"
        approval = world.talk.comment(1, "carol", f"/approve {name}")
        issue = {"number": 1, "pull_request": {}}
        written = shown.comment(approval)
        story.happens("issue_comment", action="created", issue=issue, comment=written)
        await story.deliver_webhooks()
        await story.kill()
        await story.wait_until(lambda: world.pulls[0].state == "merged", "the merge")
        await story.kill()
        pull = {"number": 1, "merged": True, "state": "closed", "merged_at": "2026-01-02T03:04:05Z"}
        story.happens("pull_request", action="closed", pull_request=pull)
        await story.deliver_webhooks()
        await story.kill()
        in_done = lambda: trello.card_now(card)["idList"] == story.done  # noqa: E731
        await story.wait_until(in_done, "the card in Done")
        await story.wait_until(lambda: world.head(branch) is None, "the end of the branch")
        await story.wait_until(lambda: line.resolved, "the answer in the thread")
        for process in story.processes:
            process.signal(signal.SIGTERM)
            assert await process.end() == 0, process.output_text
        await asyncio.to_thread(_check_commits, world.repository, heads)

        assert len(await story.jobs()) == 3, "each event of the forge started work once"
        family = [await rt.read_model.job(job) for job in await story.jobs()]
        assert {job.agent for job in family} == {story.agent}
        titles = [job.ticket_title for job in family]
        assert titles == [
            f"{about}Count to two" for about in ("", "Fix CI of ", "Address review of ")
        ]
        assert len(world.pulls) == 1
        assert world.head("main") == heads[-1]
        answers = [item for item in world.talk.comments if "Done in" in item.body]
        assert sorted(str(item.replies_to) for item in answers) == sorted([str(line.id), "None"])
        merged = [c for c in trello.comments(card) if "was merged" in c.text]
        assert len(merged) == 1, "the merge is announced once"


def _check_commits(repository: Path, heads: list[str | None]) -> None:
    """Check that each follow-up added a commit to the one before."""
    log = git("log", "--format=%H", str(heads[-1]), cwd=repository).split()
    assert log[:3] == heads[::-1]
