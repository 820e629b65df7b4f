"""Templates."""

from __future__ import annotations

from typing import Final

from draftsman.domain.schedules.template import TemplateDefinition
from draftsman.store import templates
from draftsman.store.postgres.database import Connection
from tests.soak.calls.call import Call

DEFINITION: Final = TemplateDefinition(type="seed")


async def _template(conn: Connection) -> None:
    assert await templates.add(conn, "weekly", 1, DEFINITION, "soak") is not None
    assert await templates.versions(conn, "weekly")


CALLS: Final[dict[str, Call]] = {
    "templates.newest": Call(lambda conn: templates.newest(conn, 5000)),
    "templates.versions": Call(_template),
    "templates.add": Call(_template),
}
