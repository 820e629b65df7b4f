"""A job on a Trello card from label to result, with every process killed: soak_killed_bots.py."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.database.database import Connection
from draftsman.people.actor import Actor
from draftsman.repos.profile_detection import detect_profile
from draftsman.repos.repo_catalog import Repo, RepoLocation
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_bots.trello.records.board import BoardConfig, LabelRule
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.trello import FakeTrello
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation, Process
from tests.core.worker.agent_jobs import git


class Story:
    """A board, and the processes that serve it."""

    def __init__(
        self,
        trello: FakeTrello,
        installation: Installation,
        every: int,
        rt: Runtime,
        conn: Connection,
    ) -> None:
        self.trello = trello
        self.installation = installation
        self.rt = rt
        self.conn = conn
        self.moments = itertools.cycle(n == every - 1 for n in range(every))
        self.anna = trello.member("anna")
        self.ben = trello.member("ben")
        self.board = trello.board("Work", [self.anna, self.ben])
        self.todo, self.review = (trello.list(self.board, name) for name in ("To do", "Review"))
        self.label = trello.label(self.board, "draftsman")
        self.queued = trello.label(self.board, "draftsman: queued", "blue")
        installation.configure(
            people__anna__trello=self.anna,
            people__anna__roles=["invoker", "responder"],
            people__ben__trello=self.ben,
            people__ben__roles=["responder"],
            notifications__timeout=0.5,
            notifications__lease=2,
            trello__api_url=trello.api_url,
            trello__key__env="KEY",
            trello__token__env="TOKEN",
            trello__poll=1,
            trello__members="may_submit",
        )

    async def watch(self, repo: Path, owner: Actor) -> None:
        """Map the label to a repository, and watch the board."""
        profile = detect_profile(repo)
        linters = tuple(  # the repository has errors that the safe fixes leave
            command.model_copy(update={"required": False})
            for command in profile.validation_commands
            if command.name != "tests"
        )
        profile = profile.model_copy(update={"validation_commands": linters})
        known = await self.rt.repos.add(Repo.at(parse(str(repo))), profile, owner)
        await self.rt.repos.map(RepoLocation(known), owner, label_id=self.label)
        config = BoardConfig(
            board_id=self.board,
            name="Work",
            labels={self.label: LabelRule(name="draftsman")},
            queued_label_id=self.queued,
            ready_for_review_list_id=self.review,
        )
        await boards_of(self.rt).save(config, owner)

    async def bots(self) -> Process:
        """Start the bots."""
        env = {"KEY": self.trello.key, "TOKEN": self.trello.token}
        started = self.installation.start("bots", "trello", env=env)
        await started.says("polling Trello")
        return started

    async def restart(self, bots: Process) -> Process:
        """Kill the bots at every last moment of `every`; others poll half a minute later."""
        if not next(self.moments):
            return bots
        bots.signal(signal.SIGKILL)
        await bots.end()
        await self.conn.execute(
            "UPDATE draftsman.leases SET expires_at = draftsman.now() WHERE name = 'trello'"
        )
        return await self.bots()

    def comments_with(self, card: str, part: str) -> Sequence[str]:
        """Return the bot's comments on a card that contain a text."""
        bot = self.trello.bot_member
        comments = self.trello.comments(card)
        return [
            comment.text for comment in comments if comment.member == bot and part in comment.text
        ]

    async def wait_for_comment(self, card: str, part: str) -> None:
        """Wait until the bot has posted a text on a card."""
        await self.wait_until(lambda: bool(self.comments_with(card, part)), part)

    async def wait_until(self, look: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""

        async def looked() -> bool:
            return look()

        await until(looked, what)


async def test_every_message_is_posted_once_although_each_process_is_killed(
    installation: Installation,
    every: int,
    rt: Runtime,
    conn: Connection,
    owner: Actor,
    tmp_path: Path,
) -> None:
    repo = tmp_path / "repo"
    await make_sample_repo(repo)
    async with FakeTrello() as trello:
        story = Story(trello, installation, every, rt, conn)
        await story.watch(repo, owner)
        worker = installation.start("worker")
        bots = await story.bots()

        async def begun() -> bool:
            return await boards_of(rt).cursor(story.board) is not None

        await until(begun, "the first look at the board")
        card = trello.card(story.board, story.todo, "Tidy up, please", by=story.anna)
        bots = await story.restart(bots)

        trello.add_label(card, story.label, story.anna)
        await story.wait_until(lambda: "draftsman: queued" in trello.labels_of(card), "the swap")
        bots = await story.restart(bots)

        await story.wait_for_comment(card, "Which fixes should be applied")
        bots = await story.restart(bots)

        trello.comment(card, story.anna, "1")
        await story.wait_for_comment(card, "was answered by anna")
        worker.signal(signal.SIGKILL)
        await worker.end()
        bots = await story.restart(bots)
        worker = installation.start("worker")

        trello.comment(card, story.ben, "2")
        await story.wait_for_comment(
            card, "Your answer was not accepted: D-1/1 was already answered by anna"
        )
        bots = await story.restart(bots)

        await story.wait_for_comment(card, "safe fixes applied")
        bots = await story.restart(bots)
        await story.wait_until(
            lambda: len(trello.attachments(card)) == 3, "the files of the result"
        )
        await story.wait_until(lambda: trello.labels_of(card) == [], "the label to be taken off")
        await story.wait_for_comment(card, "✅")
        for process in (bots, worker):
            process.signal(signal.SIGTERM)
            assert await process.end() == 0, process.output_text

        own = [item for item in trello.comments(card) if item.member == trello.bot_member]
        assert len(own) == 4, "status, question, the word for ben, result"
        assert (own[0].edited, "D-1" in own[0].text) == (True, True)
        for part in (
            "Which fixes should be applied",
            "Your answer was not accepted",
            "safe fixes applied",
        ):
            assert len(story.comments_with(card, part)) == 1, part
        assert trello.card_now(card)["idList"] == story.review
        files = {item.name.partition(" · ")[0] for item in trello.attachments(card)}
        assert files == {"D-1-result.md", "changes.patch", "report.md"}
        [job] = await rt.read_model.jobs()
        assert (job.number, job.status, job.title) == (1, "completed", "Tidy up, please")
        resolved = [
            item for item in await rt.read_model.job_events(1) if item.kind == "repo_resolved"
        ]
        assert {item.payload["method"] for item in resolved} == {"label_id"}
        assert git("log", "--format=%s", "-1", "draftsman/D-1", cwd=repo)
