"""A job on a Trello card from label to result, with every process killed on the way."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from draftsman.domain.people.actor import Actor
from draftsman.domain.repos.repo_catalog import Repo, RepoLocation
from draftsman.domain.repos.repo_url import parse
from draftsman.domain.trello.board import BoardConfig, LabelRule
from draftsman.handlers.clone.sample_repo import make_sample_repo
from draftsman.handlers.run_agent.profile_detection import detect_profile
from draftsman.runtime import Runtime
from draftsman.store.postgres.database import Connection
from tests.acceptance.processes import Installation, Process
from tests.core.loops.agent_jobs import git
from tests.support.trello import FakeTrello
from tests.support.waits import until


class Story:
    """A board, and the processes that serve it."""

    def __init__(
        self, trello: FakeTrello, place: Installation, rt: Runtime, conn: Connection
    ) -> None:
        self.trello, self.place, self.rt, self.conn = trello, place, rt, conn
        self.anna, self.ben = trello.member("anna"), trello.member("ben")
        self.board = trello.board("Work", [self.anna, self.ben])
        self.todo, self.review = (trello.list(self.board, name) for name in ("To do", "Review"))
        self.label = trello.label(self.board, "draftsman")
        self.queued = trello.label(self.board, "draftsman: queued", "blue")
        place.configure(
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
        )

    async def watch(self, repo: Path, owner: Actor) -> None:
        """Let the label stand for a repository, and make jobs."""
        profile = detect_profile(repo)
        linters = tuple(one for one in profile.validation_commands if one.name != "tests")
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
        await self.rt.boards.save(config, owner)

    async def bots(self) -> Process:
        """Start the bots."""
        env = {"KEY": self.trello.key, "TOKEN": self.trello.token}
        started = self.place.start("bots", "--trello", env=env)
        await started.says("polling Trello")
        return started

    async def anew(self, bots: Process) -> Process:
        """Kill the bots, whatever they were at; half a minute later others poll in their place."""
        bots.signal(signal.SIGKILL)
        await bots.end()
        await self.conn.execute(
            "UPDATE draftsman.leases SET expires_at = draftsman.now() WHERE name = 'trello'"
        )
        return await self.bots()

    def says(self, card: str, part: str) -> Sequence[str]:
        """Return the bot's comments on a card that hold this."""
        bot = self.trello.bot_member
        found = self.trello.comments(card)
        return [one.text for one in found if one.member == bot and part in one.text]

    async def shown(self, card: str, part: str) -> None:
        """Return once the bot has said this on a card."""
        await self.see(lambda: bool(self.says(card, part)), part)

    async def see(self, look: Callable[[], bool], what: str) -> None:
        """Return once this is to be seen."""

        async def looked() -> bool:
            return look()

        await until(looked, what)


async def test_a_story_whose_every_process_is_killed_is_told_once(
    place: Installation, rt: Runtime, conn: Connection, owner: Actor, tmp_path: Path
) -> None:
    repo = tmp_path / "repo"
    await make_sample_repo(repo)
    async with FakeTrello() as trello:
        story = Story(trello, place, rt, conn)
        await story.watch(repo, owner)
        worker, bots = place.start("worker"), await story.bots()

        async def begun() -> bool:
            return await rt.boards.cursor(story.board) is not None

        await until(begun, "the first look at the board")
        card = trello.card(story.board, story.todo, "Tidy up, please", by=story.anna)
        bots = await story.anew(bots)

        trello.add_label(card, story.label, story.anna)
        await story.see(lambda: "draftsman: queued" in trello.labels_of(card), "the swap")
        bots = await story.anew(bots)

        await story.shown(card, "Which fixes should be applied")
        bots = await story.anew(bots)

        trello.comment(card, story.anna, "1")
        await story.shown(card, "was answered by anna")
        worker.signal(signal.SIGKILL)
        await worker.end()
        bots, worker = await story.anew(bots), place.start("worker")

        trello.comment(card, story.ben, "2")
        await story.shown(card, "Your answer was not accepted: D-1/1 was already answered by anna")
        bots = await story.anew(bots)

        await story.shown(card, "safe fixes applied")
        bots = await story.anew(bots)
        await story.see(lambda: len(trello.attachments(card)) == 3, "the files of the result")
        await story.see(lambda: trello.labels_of(card) == [], "the label to be taken off")
        await story.shown(card, "✅")
        for process in (bots, worker):
            process.signal(signal.SIGTERM)
            assert await process.end() == 0, process.output_text

        own = [one for one in trello.comments(card) if one.member == trello.bot_member]
        assert len(own) == 4, "status, question, the word for ben, result"
        assert (own[0].edited, "D-1" in own[0].text) == (True, True)
        for part in (
            "Which fixes should be applied",
            "Your answer was not accepted",
            "safe fixes applied",
        ):
            assert len(story.says(card, part)) == 1, part
        assert trello.card_now(card)["idList"] == story.review
        files = {one.name.partition(" · ")[0] for one in trello.attachments(card)}
        assert files == {"D-1-result.md", "changes.patch", "report.md"}
        [job] = await rt.read_model.jobs()
        assert (job.number, job.status, job.ticket_title) == (1, "completed", "Tidy up, please")
        found = [one for one in await rt.read_model.job_events(1) if one.kind == "repo_resolved"]
        assert {one.payload["method"] for one in found} == {"label_id"}
        assert git("log", "--format=%s", "-1", "draftsman/D-1", cwd=repo)
