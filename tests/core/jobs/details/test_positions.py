"""Where a job is in its steps and checkpoints, and from where its next run continues."""

from __future__ import annotations

from draftsman.errors import Failure
from draftsman.jobs.details.sections.order import sections
from draftsman.jobs.details.sections.section import Entry, Reader, plain
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory


async def marks(rt: Runtime, number: int) -> list[tuple[str, str]]:
    """Return the name of the section, and the mark, of each marked step and checkpoint."""
    details = await rt.read_model.details(number)
    return [
        (section.name, plain(line).partition("  ← ")[2])
        for section in sections(details, Reader(details.at), {"steps", "checkpoints"})
        for part in section.parts
        if isinstance(part, Entry)
        for line in part.lines
        if "←" in plain(line)
    ]


async def test_steps_and_checkpoints_mark_where_the_job_is(make: Factory, rt: Runtime) -> None:
    continues = "the next run continues"
    saved = ("checkpoints", f"{continues} from here")
    work = await make.running()
    await rt.checkpoints.begin_step(work.lease, "fetch", "1")
    await rt.checkpoints.finish_step(work.lease, "fetch", {})
    await rt.checkpoints.save(work.lease, {"page": 1})
    await rt.checkpoints.save(work.lease, {"page": 2})
    assert await marks(rt, work.number) == [("steps", "now after it"), saved]
    await rt.checkpoints.begin_step(work.lease, "pay", "2")
    assert await marks(rt, work.number) == [("steps", "now"), saved]
    await rt.asking.ask(work.lease, QUESTION)
    assert await marks(rt, work.number) == [("steps", f"{continues} here"), saved]


async def test_a_job_between_two_runs_continues_after_its_newest_step_until_it_ends(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    for key in ("fetch", "pay"):
        await rt.checkpoints.begin_step(work.lease, key, key)
        await rt.checkpoints.finish_step(work.lease, key, {})
    await rt.settlement.failure(work, Failure("busy", declared="TRANSIENT_APP"))
    assert await marks(rt, work.number) == [("steps", "the next run continues after it")]
    done = await make.running()
    await rt.checkpoints.begin_step(done.lease, "pay", "1")
    await rt.settlement.outcome(done, Done({}))
    assert await marks(rt, done.number) == []
