"""The jobs of the kill campaigns, and their expected results."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from draftsman.agent_runs.clones.tree_removal import clone_tag
from draftsman.jobs.job import TERMINAL, Job, Status
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from tests.kill.campaign import Campaign, all_ended, jobs_of, people_answer
from tests.kill.clients import SUBJECT, SUBMITTED
from tests.kill.faults import kill
from tests.kill.notifications import OWNER, SAYS, TOLD
from tests.kill.work import HALFWAY, MEMBERS
from tests.support.clock import Clock
from tests.support.event_history import event_bytes, over_a_year
from tests.support.limits import check_places, placed, set_limits
from tests.support.statements import value

S = Status
REMIND_NOW: Final = "UPDATE draftsman.question_times SET remind_at = draftsman.now() WHERE job = %s"
SILENT: Final = """
UPDATE draftsman.job_runs SET heartbeat_at = heartbeat_at - interval '1 day' WHERE job = %s"""
LOGS: Final = "SELECT count(*) FROM draftsman.run_log_chunks"
STEPS: Final = ["first", "snoozed", "failed", "last"]


@dataclass
class LifecycleScenario:
    """Jobs of every kind, from the request to the end."""

    rt: Runtime
    folder: Path
    data: str
    """The data directory of the workers, with their log."""

    async def begin(self) -> None:
        """Submit the jobs."""
        fields: dict[str, Any] = {"on_lost": "resume", "notify": ("log",)}
        self.life = await self._submit("kill:life", text="Live", **fields)  # asked of an agent
        self.given = await self._submit(
            "kill:given", on_lost="resume", overrides={"answers": {"colour": "red"}}
        )
        self.lost = await self._submit("kill:lost", on_lost="new_job", notify=("log",))
        self.groups = {kind: await self._group(kind) for kind in ("sequential", "parallel")}
        self.family = await self._submit("kill:family", on_lost="resume")
        self.after = await self._submit("kill:member", on_lost="resume", after=[self.family])

    async def _submit(self, type: str, **fields: Any) -> int:
        payload = {"folder": str(self.folder)}
        request = invocation(type=type, payload=payload, max_attempts=100, **fields)
        return (await self.rt.submissions.submit(request, OWNER)).number

    async def _group(self, kind: str) -> list[int]:
        """Submit a group in which a job fails before the last may start."""
        fields: dict[str, Any] = {"on_lost": "resume"}
        fields["group"] = {"name": f"{kind}-{self.folder.name}", "kind": kind}
        if kind == "parallel":
            fails = await self._submit("kill:fails", **fields)
            return [fails, await self._submit("kill:member", **fields, delay=86_400)]
        types = ("kill:member", "kill:fails", "kill:member")
        return [await self._submit(type, **fields) for type in types]

    async def check(self) -> None:
        """Compare the jobs with their expected results."""
        await self._check_life()
        self._check_log()
        returned = await self._job(self.given)
        assert (returned.status, returned.result) == (S.COMPLETED, {"said": "red"})
        assert (await self._job(self.lost)).status is S.FAILED
        later = [job for job in await jobs_of(self.rt) if job.number > self.lost]
        chain = [job for job in later if job.type == "kill:lost"]
        assert [job.status for job in chain].count(S.COMPLETED) == 1
        await self._check_family()
        await self._check_groups()

    async def _check_groups(self) -> None:
        """Fail for a job that started after the failure in its group, and for a late addition."""
        for kind, jobs in self.groups.items():
            name = f"{kind}-{self.folder.name}"
            late = await self._submit("kill:member", on_lost="resume", group=name)
            listed = await self.rt.workflows.groups.members(name)
            assert [item.number for item in listed] == [*jobs, late]
            ended = [S.FAILED, S.CANCELED, S.CANCELED]
            assert [item.status for item in listed][-3:] == ended
            for number in (jobs[-1], late):
                assert [run.status for run in await self.rt.read_model.runs(number)] == ["skipped"]

    async def _check_family(self) -> None:
        """Fail for a job that was spawned twice, and for a child without its parent's end."""
        family = await self._job(self.family)
        after = await self._job(self.after)
        assert (family.status, after.status) == (S.COMPLETED, S.COMPLETED), family.last_error
        assert family.result == {"names": list(MEMBERS)}
        assert after.result == {"name": None, "parents": [self.family]}
        later = [job for job in await jobs_of(self.rt) if job.number > self.family]
        assert [job.type for job in later].count("kill:member") == len(MEMBERS) + 1

    async def _check_life(self) -> None:
        job = await self._job(self.life)
        number = self.life
        assert job.status is S.COMPLETED, job.last_error
        await waited_for_the_database(self.rt, number)
        effects = [line.split() for line in (self.folder / str(number)).read_text().splitlines()]
        steps = await self.rt.checkpoints.steps(number)
        recorded = [[step.key, step.invocation_id, step.result] for step in steps]
        assert [step for step in recorded if not step[0].startswith("sleep:")] == effects
        assert [key for key, _, _ in effects] == STEPS
        result = job.result or {}
        assert (result["first"], result["last"]) == (effects[0][2], effects[-1][2])
        assert result["said"] == ["answered", "approved", "answered", "b"]
        questions, answers = await self.rt.questions.of_job(number)
        assert [question.key for question in questions] == ["go", "gate", "silence"]
        assert [answer.question for answer in answers if answer.accepted] == [1, 2]
        _, notes = await self.rt.checkpoints.read_artifact(number, "notes.md")
        assert notes.decode() == result["first"]

    def _check_log(self) -> None:
        """Fail for a message that was sent twice, and for a missing result."""
        text = Path(self.data, "notifications.jsonl").read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        markers = [line["id"] for line in lines]
        assert len(markers) == len(set(markers))
        of_life = [line for line in lines if line["data"]["job"]["number"] == self.life]
        kinds = [line["type"] for line in of_life]
        assert kinds.count("job.notice") == kinds.count("job.result") == 1
        [notice] = [line for line in of_life if line["type"] == "job.notice"]
        assert HALFWAY in notice["data"]["text"]
        question_ids = {line["id"] for line in of_life if line["type"] == "question.asked"}
        assert question_ids <= {line["data"].get("edits") for line in of_life}, "no copy stays open"

    async def _job(self, number: int) -> Job:
        return await self.rt.read_model.job(number)


async def waited_for_the_database(rt: Runtime, number: int) -> None:
    """Fail for a run that failed because of an outage; a killed worker's run is exempt."""
    failed = [run for run in await rt.read_model.runs(number) if run.status == "failed"]
    unreachable = [run.error for run in failed if "DatabaseUnreachable" in str(run.error)]
    assert unreachable == []


async def live(campaign: Campaign, folder: Path) -> None:
    """Run jobs through faults; the first must lose its worker."""
    life = LifecycleScenario(campaign.rt, folder, campaign.settings["data_dir"])
    await life.begin()
    async with people_answer(campaign.rt):
        await _lose_worker(campaign, life.lost)
        await leave_clones(campaign, life.life)
        await campaign.work(lambda: all_ended(campaign.rt))
    await life.check()


async def leave_clones(campaign: Campaign, number: int) -> None:
    """Create the folder that a dead worker's run leaves: the next worker removes it."""
    job = await campaign.rt.read_model.job(number)
    name = f"D-{number}.99-{clone_tag(job.id)}"
    Path(campaign.settings["data_dir"], "runs", name).mkdir(parents=True)


async def _lose_worker(campaign: Campaign, number: int) -> None:
    """Kill a worker while it runs this job."""
    before = replace(campaign, reached=set(campaign.reached), faulted=list(campaign.faulted))
    campaign.inject = kill

    async def never() -> bool:
        return False

    while (await campaign.rt.read_model.job(number)).run_count == 0:
        campaign.pending = {"worker.next_due before"}
        await campaign.worker(never)
    campaign.pending = before.pending
    campaign.inject = before.inject
    campaign.reached = before.reached
    campaign.faulted = before.faulted


async def drain(campaign: Campaign) -> None:
    """Stop workers while jobs run, and others are claimed ahead."""
    rt = campaign.rt
    request = [invocation(type="kill:lost", on_lost="resume", max_attempts=100) for _ in range(6)]
    jobs = [item.number for item in await rt.submissions.submit_many(request, OWNER)]

    async def busy() -> bool:
        *_, newest = await rt.read_model.workers()
        return newest.busy > newest.slots

    await campaign.work(busy)
    for number in jobs:
        job = await rt.read_model.job(number)
        # one that was lost with others twice waits for its trial
        expected = (S.QUEUED, S.RESUMED, S.RETRYING)
        assert job.status in expected, f"{job.name} is {job.status}"
        await rt.job_control.cancel(number, OWNER)


async def drain_limited(campaign: Campaign, limits: dict[str, Any]) -> None:
    """Run more jobs than a limit has places; each completes, and no place stays taken."""
    rt = campaign.rt
    async with rt.db.connection() as conn:
        await set_limits(rt, conn, **limits)
    [(type, limit)] = limits["type"].items()
    request = [invocation(type=type, on_lost="resume", max_attempts=100) for _ in range(12)]
    jobs = [item.number for item in await rt.submissions.submit_many(request, OWNER)]
    async with rt.db.connection() as conn:
        assert await placed(conn) == jobs[: limit["running"]]
    await campaign.work(lambda: all_ended(rt))
    for number in jobs:
        job = await rt.read_model.job(number)
        assert job.status is S.COMPLETED, job.last_error
        assert (job.result or {})["together"] <= limit["running"]
    await check_places(rt)
    async with rt.db.connection() as conn:
        assert await placed(conn) == []


async def prune(campaign: Campaign, clock: Clock) -> None:
    """Inject faults into processes that prune and restore events: none is lost."""
    rt = campaign.rt
    await clock.forward(over_a_year())
    async with rt.db.connection() as conn:
        before = await event_bytes(conn)
        assert await value(conn, LOGS) > 0
    months = {"events": 12, "logs": 12}
    campaign.settings["retention"] = months
    finished = next(job for job in await jobs_of(rt) if job.type == "kill:life")
    await campaign.ask("pruning", old=finished.number)
    del campaign.settings["retention"]
    async with rt.db.connection() as conn:
        assert await event_bytes(conn) == before
        assert await value(conn, LOGS) == 0
    assert list(await rt.archives.all()) == []


async def ask_people(campaign: Campaign, make: Factory) -> None:
    """Inject faults into people's commands; each takes effect once."""
    rt = campaign.rt
    work = await make.running()
    await rt.checkpoints.artifact(work.lease, "notes.md", "report", b"notes")
    assert await rt.asking.ask(work.lease, QUESTION)
    gate = await make.asked(GATE.model_copy(update={"quorum": 2}))
    jobs = {
        "answered": work.number,
        "gate": gate.number,
        "expired": await make.expired(),
        "failed": await make.failed(),
        "queued": await make.queued(),
        "running": (await make.running()).number,
        "stuck": (await make.running()).number,
        "reminded": (await make.asked(notify=("slack:fine",))).number,
        "shown": (await make.running(notify=("slack:fine",))).number,
        "unfollowed": await _unfollowed(make),
    }
    async with rt.db.connection() as conn:
        await conn.execute(REMIND_NOW, [jobs["reminded"]])
    campaign.settings["worker"]["lease"] = 3000  # canceled runs have no heartbeat
    await campaign.ask("people", **jobs)
    submitted = invocation(type="noop", key=SUBMITTED, queue="nobody")
    assert (await rt.submissions.submit(submitted, OWNER)).outcome == "deduplicated"
    for name in ("answered", "gate"):
        assert (await rt.read_model.job(jobs[name])).status is S.RESUMED, name
        _, answers = await rt.questions.of_job(jobs[name])
        voters = [answer.voter for answer in answers if answer.accepted]
        assert voters == (["carol", "dave"] if name == "gate" else ["root"])
    for name, status in (("queued", S.CANCELED), ("running", S.RUNNING), ("stuck", S.CANCELED)):
        assert (await rt.read_model.job(jobs[name])).status is status, name
    all_jobs = [await rt.read_model.job(line.number) for line in await jobs_of(rt)]
    [joined] = [job for job in all_jobs if job.subject_key == SUBJECT]
    kinds = [event.kind for event in await rt.read_model.job_events(joined.number)]
    assert kinds.count("request_joined") in (
        1,
        2,
    )  # a killed first client is started again, and joins
    asked = await rt.questions.get(jobs["reminded"], 1)
    assert asked.reminders == 1
    events = await rt.read_model.job_events(jobs["unfollowed"])
    assert [event.kind for event in events].count("retry_not_created") == 1
    for name in ("failed", "expired"):
        assert [job.retry_of for job in all_jobs].count(jobs[name]) == 1, name


async def _unfollowed(make: Factory) -> int:
    """Return a job of a dead worker whose new job cannot be created."""
    work = await make.running(on_lost="new_job")
    existing = row(invocation(type="noop", queue="nobody"), OWNER, make.rt.limits)
    existing |= {"idempotency_key": f"retry:{work.number}:1", "request_digest": "another"}
    async with make.rt.db.connection() as conn:
        await submissions.submit(conn, [existing], "old")
        await conn.execute(SILENT, [work.number])
    return work.number


async def tell_people(campaign: Campaign) -> None:
    """Inject faults into processes that deliver; the last finishes with its own job."""
    rt = campaign.rt
    await campaign.ask("telling")
    jobs = [await rt.read_model.job(line.number) for line in await jobs_of(rt)]
    notified = [job for job in jobs if job.queue == TOLD]
    last, retry = sorted(notified, key=lambda job: job.number)[-2:]
    assert (last.status, retry.retry_of) == (S.CANCELED, last.number)
    for job in (last, retry):
        assert [target.target for target in await rt.outbox.targets(job.number)] == list(SAYS)
    deliveries = await rt.outbox.all(last.number, limit=1000)
    fine = [(target.kind, target.status) for target in deliveries if target.target == "fine"]
    assert fine[::-1][:2] == [("status", "sent"), ("notice", "sent")]


async def cancel_all(rt: Runtime) -> None:
    """Cancel unfinished jobs."""
    for line in await jobs_of(rt):
        if line.status not in TERMINAL:
            await rt.job_control.cancel(line.number, OWNER, force=True)
