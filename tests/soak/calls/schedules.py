"""Templates and schedules."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from draftsman.database.database import Connection
from draftsman.schedules import store as schedules
from draftsman.schedules.schedule import FireStatus, ScheduleSpec
from draftsman.schedules.template import TemplateDefinition
from tests.soak.calls.call import MIDDLE, MISSING, Call
from tests.soak.calls.sweeps import HAND, LEADER

DEFINITION: Final = TemplateDefinition(type="seed")
SPEC: Final = ScheduleSpec("s1", "@daily", template="weekly")
SEEDED: Final = range(1, 51)
"""Seeded schedules that are due; of the first, an occurrence waits."""
WAITING: Final = datetime(2001, 1, 21, tzinfo=UTC)
NEW: Final = datetime(2002, 1, 1, tzinfo=UTC)
OUTCOMES: Final = [schedules.Outcome(id, NEW, FireStatus.SKIPPED, None, "soak") for id in SEEDED]
RESOLVED: Final = schedules.Outcome(1, WAITING, FireStatus.FIRED, MIDDLE)


async def _template(conn: Connection) -> None:
    assert await schedules.add_template(conn, "weekly", 1, DEFINITION, "soak") is not None
    assert await schedules.template_versions(conn, "weekly")


async def _new(conn: Connection) -> None:
    spec = ScheduleSpec("new", "@daily", template="weekly")
    assert await schedules.add(conn, spec, "soak", None) is not None


CALLS: Final[dict[str, Call]] = {
    "schedules.add": Call(_new),
    "schedules.change": Call(lambda conn: schedules.change(conn, 1, SPEC, "soak", None)),
    "schedules.set_next": Call(lambda conn: schedules.set_next(conn, 1, NEW, NEW)),
    "schedules.pause": Call(lambda conn: schedules.pause(conn, 1, "soak", None)),
    "schedules.resume": Call(lambda conn: schedules.resume(conn, 1, NEW, NEW)),
    "schedules.lock": Call(lambda conn: schedules.lock(conn, "s1")),
    "schedules.by_name": Call(lambda conn: schedules.by_name(conn, "s1")),
    "schedules.due: by hand": Call(lambda conn: schedules.due(conn, HAND, 200)),
    "schedules.due: as leader": Call(lambda conn: schedules.due(conn, LEADER, 200)),
    "schedules.ready": Call(lambda conn: schedules.ready(conn, HAND, 200)),
    "schedules.recorded": Call(
        lambda conn: schedules.recorded(conn, [(id, WAITING) for id in SEEDED])
    ),
    "schedules.record": Call(lambda conn: schedules.record(conn, OUTCOMES)),
    "schedules.resolve": Call(lambda conn: schedules.resolve(conn, [RESOLVED])),
    "schedules.advance": Call(
        lambda conn: schedules.advance(conn, [(id, NEW, NEW, None) for id in SEEDED])
    ),
    "schedules.forget": Call(lambda conn: schedules.forget(conn, SEEDED), 1200),
    "schedules.history": Call(lambda conn: schedules.history(conn, "s1", 50)),
    "schedules.latest": Call(lambda conn: schedules.latest(conn, 50)),
    "schedules.of_job": Call(lambda conn: schedules.of_job(conn, MIDDLE)),
    "schedules.remove": Call(lambda conn: schedules.remove(conn, 1)),
    "schedules.all_schedules": Call(lambda conn: schedules.all_schedules(conn, 200)),
    "schedules.of_origin": Call(lambda conn: schedules.of_origin(conn, "code", 200)),
    "schedules.unfinished": Call(lambda conn: schedules.unfinished(conn, [MIDDLE, MISSING])),
    "schedules.newest_templates": Call(lambda conn: schedules.newest_templates(conn, 5000)),
    "schedules.template_versions": Call(_template),
    "schedules.add_template": Call(_template),
}
