"""Concurrent changes of a template: each version is stored by one session."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Conflict
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules.template import define
from tests.support.races import FirstSession


async def test_the_second_edit_of_a_version_waits_and_is_refused(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    base = await rt.templates.add("report", define({"type": "noop"}), owner)
    mine, other = (define({"type": "noop", "title": title}) for title in ("mine", "other"))
    async with first.doing(first.rt.templates.edit(base, mine, owner)) as edited:
        with pytest.raises(Conflict, match="template report was changed meanwhile"):
            await first.then(rt.templates.edit(base, other, owner), conn)
    assert edited.result().version == 2
    assert (await rt.templates.get("report")).definition == mine
