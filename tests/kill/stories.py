"""The jobs that live through the kills, and what must be true of them afterwards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from draftsman.domain.job import TERMINAL, Job, Status
from draftsman.handlers.leftovers import tag_of
from draftsman.runtime import Runtime
from draftsman.services.intake import invocation
from tests.core.loops.agents import PRELUDE, git, make_repository
from tests.factories import GATE, QUESTION, Factory
from tests.kill.campaign import Campaign, all_ended, people_answer
from tests.kill.clients import OWNER, SUBMITTED
from tests.kill.faults import AGENT, kill
from tests.support.clock import Clock
from tests.support.statements import value
from tests.support.trail import over_a_year, trail_bytes

S = Status
LOGS: Final = "SELECT count(*) FROM draftsman.run_log_chunks"
STEPS: Final = ["first", "snoozed", "failed", "last"]
AGENT_CODE: Final = """
import signal
from pathlib import Path
here, folder = Path(start["workspace"]), Path(os.environ["FOLDER"])
def tell(type, **fields):
    say(type, id=type, **fields)
    return hear()
say("log", text="hello")
say("nonsense")
hear()
tell("event", kind="looked")
if "effect" not in start["steps"] or start["steps"]["effect"]["state"] == "pending":
    tell("step", key="effect", state="pending", invocation_id="once")
    (here / "work.txt").write_text(f"of run {start['run']}\\n")
    tell("checkpoint", data={"run": start["run"]})
    tell("step", key="effect", state="done", result=start["run"])
tell("artifact", path="work.txt")
tell("usage", input_tokens=1)
parked(ask("pick", choices=["yes", "no"]))
say("approve", id="gate", key="gate", text="Really?")
if hear()["type"] == "park":
    signal.pause()  # deaf: it has to be ended
if not (folder / "failed").exists():
    tell("error", message="busy", **{"class": "TRANSIENT_APP"})
    (folder / "failed").touch()  # only once it was heard
    sys.exit(0)
(here / "last.txt").write_text(f"of run {start['run']}\\n")
tell("result", summary="done")
"""
"""It says everything once, and what it writes is another thing in each run, as with most agents."""


@dataclass
class Life:
    """Jobs of every kind, from the request to the end."""

    rt: Runtime
    folder: Path

    async def begin(self) -> None:
        """Submit them."""
        self.life = await self._submit("kill:life", on_lost="resume")
        self.given = await self._submit(
            "kill:given", on_lost="resume", overrides={"answers": {"colour": "red"}}
        )
        self.lost = await self._submit("kill:lost", on_lost="new_job")
        self.unknown = await self._submit("kill:nobody-knows-it", on_lost="resume")

    async def _submit(self, type: str, **fields: Any) -> int:
        payload = {"folder": str(self.folder)}
        wanted = invocation(type=type, payload=payload, max_attempts=100, **fields)
        return (await self.rt.intake.submit(wanted, OWNER)).number

    async def check(self) -> None:
        """Hold what became of them against what was asked."""
        await self._check_life()
        given = await self._job(self.given)
        assert (given.status, given.result) == (S.COMPLETED, {"said": "red"})
        assert (await self._job(self.lost)).status is S.FAILED
        later = [job for job in await self.rt.inspect.jobs() if job.number > self.lost]
        chain = [job for job in later if job.type == "kill:lost"]
        assert [job.status for job in chain].count(S.COMPLETED) == 1
        unknown = await self._job(self.unknown)
        assert unknown.status is S.FAILED
        assert "no worker knows the type" in str(unknown.last_error)

    async def _check_life(self) -> None:
        job, number = await self._job(self.life), self.life
        assert job.status is S.COMPLETED, job.last_error
        await waited_for_the_database(self.rt, number)
        made = [line.split() for line in (self.folder / str(number)).read_text().splitlines()]
        steps = await self.rt.checkpoints.steps(number)
        recorded = [[step.key, step.invocation_id, step.result] for step in steps]
        assert [step for step in recorded if not step[0].startswith("sleep:")] == made
        assert [key for key, _, _ in made] == STEPS
        result = job.result or {}
        assert (result["first"], result["last"]) == (made[0][2], made[-1][2])
        assert result["said"] == ["answered", "approved", "answered", "b"]
        asked, answers = await self.rt.questions.of_job(number)
        assert [question.key for question in asked] == ["go", "gate", "silence"]
        assert [answer.question for answer in answers if answer.accepted] == [1, 2]
        _, notes = await self.rt.checkpoints.read_artifact(number, "notes.md")
        assert notes.decode() == result["first"]

    async def _job(self, number: int) -> Job:
        return await self.rt.inspect.job(number)


async def waited_for_the_database(rt: Runtime, number: int) -> None:
    """Fail for a run that failed because it was cut off; one whose worker died did not fail."""
    failed = [run for run in await rt.inspect.runs(number) if run.status == "failed"]
    unreachable = [run.error for run in failed if "DatabaseUnreachable" in str(run.error)]
    assert unreachable == []


async def live(campaign: Campaign, folder: Path) -> None:
    """Let jobs live through strikes; one of them must lose its worker first."""
    life = Life(campaign.rt, folder)
    await life.begin()
    async with people_answer(campaign.rt):
        await _lose(campaign, life.lost)
        await _leave_over(campaign, life.life)
        await campaign.work(lambda: all_ended(campaign.rt))
    await life.check()


async def _leave_over(campaign: Campaign, number: int) -> None:
    """Make the folder that a dead worker's run left: the next worker clears it away."""
    job = await campaign.rt.inspect.job(number)
    name = f"D-{number}.99-{tag_of(job.id)}"
    Path(campaign.settings["data_dir"], "runs", name).mkdir(parents=True)


async def _lose(campaign: Campaign, number: int) -> None:
    """Kill a worker while it runs this job."""
    before = replace(campaign, reached=set(campaign.reached), struck=list(campaign.struck))
    campaign.strike = kill

    async def never() -> bool:
        return False

    while (await campaign.rt.inspect.job(number)).run_count == 0:
        campaign.pending = {"sweeps.next_due before"}
        await campaign.worker(never)
    campaign.pending, campaign.strike = before.pending, before.strike
    campaign.reached, campaign.struck = before.reached, before.struck


async def drain(campaign: Campaign) -> None:
    """Let workers be told to stop while jobs run, and others are claimed ahead."""
    rt = campaign.rt
    wanted = [invocation(type="kill:lost", on_lost="resume", max_attempts=100) for _ in range(6)]
    jobs = [item.number for item in await rt.intake.submit_many(wanted, OWNER)]

    async def busy() -> bool:
        *_, newest = await rt.inspect.workers()
        return newest.busy > newest.slots

    await campaign.work(busy)
    for number in jobs:
        assert (await rt.inspect.job(number)).status in (S.QUEUED, S.RESUMED)
        await rt.operate.cancel(number, OWNER)


async def prune(campaign: Campaign, clock: Clock) -> None:
    """Let whoever prunes the past and restores it be struck: nothing of the trail is lost."""
    rt = campaign.rt
    await clock.forward(over_a_year())
    async with rt.db.connection() as conn:
        before = await trail_bytes(conn)
        assert await value(conn, LOGS) > 0
    months = {"events": 12, "logs": 12}
    campaign.settings["retention"] = months
    ended = next(job for job in await rt.inspect.jobs() if job.type == "kill:life")
    await campaign.ask("pruning", old=ended.number)
    del campaign.settings["retention"]
    async with rt.db.connection() as conn:
        assert await trail_bytes(conn) == before
        assert await value(conn, LOGS) == 0
    assert list(await rt.archives.all()) == []


async def ask_people(campaign: Campaign, make: Factory) -> None:
    """Let people's commands be struck; what they did is done once."""
    rt = campaign.rt
    work = await make.running()
    await rt.checkpoints.artifact(work.lease, "notes.md", "report", b"notes")
    assert await rt.questions.ask(work.lease, QUESTION)
    gate = await make.asked(GATE.model_copy(update={"quorum": 2}))
    jobs = {
        "answered": work.number,
        "gate": gate.number,
        "expired": await make.expired(),
        "failed": await make.failed(),
        "queued": await make.queued(),
        "running": (await make.running()).number,
        "stuck": (await make.running()).number,
    }
    campaign.settings["worker"]["lease"] = 300  # nobody beats for what they cancel
    await campaign.ask("people", **jobs)
    submitted = invocation(type="noop", key=SUBMITTED, queue="nobody")
    assert (await rt.intake.submit(submitted, OWNER)).how == "deduplicated"
    for name in ("answered", "gate"):
        assert (await rt.inspect.job(jobs[name])).status is S.RESUMED, name
        _, answers = await rt.questions.of_job(jobs[name])
        voters = [answer.voter for answer in answers if answer.accepted]
        assert voters == (["carol", "dave"] if name == "gate" else ["root"])
    for name, status in (("queued", S.CANCELED), ("running", S.RUNNING), ("stuck", S.CANCELED)):
        assert (await rt.inspect.job(jobs[name])).status is status, name
    all_jobs = [await rt.inspect.job(line.number) for line in await rt.inspect.jobs()]
    for name in ("failed", "expired"):
        assert [job.retry_of for job in all_jobs].count(jobs[name]) == 1, name


async def cancel_all(rt: Runtime) -> None:
    """Cancel what has not ended."""
    for line in await rt.inspect.jobs():
        if line.status not in TERMINAL:
            await rt.operate.cancel(line.number, OWNER, force=True)


async def drive_agent(campaign: Campaign, folder: Path) -> None:
    """Let an agent work on a repository through strikes."""
    rt = campaign.rt
    repo = make_repository(folder / "repo")
    command = ["{python}", "-I", "-S", "-c", PRELUDE + AGENT_CODE, AGENT]
    campaign.settings["agents"] = {"test": {"command": command, "env": {"FOLDER": str(folder)}}}
    wanted = invocation(
        type="run_agent", agent="test", repo=str(repo), max_attempts=100, max_retries=100
    )
    number = (await rt.intake.submit(wanted, OWNER)).number
    await _leave_over(campaign, number)
    async with people_answer(rt):
        await campaign.work(lambda: all_ended(rt))
    job = await rt.inspect.job(number)
    assert job.status is S.COMPLETED, job.last_error
    await waited_for_the_database(rt, number)
    steps = {step.key: step for step in await rt.checkpoints.steps(number)}
    assert steps["effect"].invocation_id == "once"
    published = git("rev-parse", f"draftsman/D-{number}", cwd=repo)
    assert published == (job.result or {})["commit"]
    made = git("show", f"draftsman/D-{number}:work.txt", cwd=repo)
    assert made == f"of run {steps['effect'].result}"
    _, answers = await rt.questions.of_job(number)
    assert [answer.question for answer in answers if answer.accepted] == [1, 2]
    await campaign.work(lambda: all_ended(rt))  # it clears away what the last dead one left
    runs = Path(campaign.settings["data_dir"], "runs")
    assert list(runs.iterdir()) == [], "clones are left"
