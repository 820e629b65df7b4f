"""Templates and schedules."""

from __future__ import annotations

from typing import Final

from draftsman.domain.schedules.schedule import FireStatus, ScheduleSpec
from draftsman.domain.schedules.template import TemplateDefinition
from draftsman.store import checkpoints, schedules, templates
from draftsman.store.postgres.database import Connection
from tests.soak.calls.call import MIDDLE, MISSING, Call
from tests.soak.calls.sweeps import LEADER

DEFINITION: Final = TemplateDefinition(type="seed")


async def _template(conn: Connection) -> None:
    assert await templates.add(conn, "weekly", 1, DEFINITION, "soak") is not None
    assert await templates.versions(conn, "weekly")


async def _schedule(conn: Connection) -> None:
    """Add a schedule, change it, and store the outcomes of its occurrences."""
    spec = ScheduleSpec("nightly", "@daily", template="weekly")
    id = await schedules.add(conn, spec, "soak", None)
    assert id is not None
    await schedules.change(conn, id, spec, "soak", None)
    now = await checkpoints.now(conn)
    await schedules.set_next(conn, id, now, now)
    await schedules.pause(conn, id, "soak", None)
    await schedules.resume(conn, id, now, now)
    assert await schedules.lock(conn, "nightly") == await schedules.by_name(conn, "nightly")
    assert [found.id for found in await schedules.due(conn, LEADER, 200)] == [id]
    waiting = schedules.Outcome(id, now, FireStatus.WAITING)
    assert await schedules.record(conn, [waiting]) == 1
    assert [found.id for found in await schedules.ready(conn, LEADER, 200)] == [id]
    assert await schedules.recorded(conn, [(id, now)])
    fired = waiting._replace(status=FireStatus.FIRED, job=MIDDLE)
    assert await schedules.resolve(conn, [fired]) == 1
    await schedules.advance(conn, [(id, None, None, MIDDLE)])
    assert await schedules.forget(conn, [id]) == 0
    assert await schedules.history(conn, "nightly", 50)
    assert await schedules.of_job(conn, MIDDLE) is not None
    assert await schedules.remove(conn, id)


NAMES: Final = (
    *("add", "change", "set_next", "pause", "resume", "lock", "by_name", "due", "record"),
    *("ready", "recorded", "resolve", "advance", "forget", "history", "of_job", "remove"),
)
CALLS: Final[dict[str, Call]] = {
    **{f"schedules.{name}": Call(_schedule) for name in NAMES},
    "schedules.all_schedules": Call(lambda conn: schedules.all_schedules(conn, 20_000)),
    "schedules.unfinished": Call(lambda conn: schedules.unfinished(conn, [MIDDLE, MISSING])),
    "templates.newest": Call(lambda conn: templates.newest(conn, 5000)),
    "templates.versions": Call(_template),
    "templates.add": Call(_template),
}
