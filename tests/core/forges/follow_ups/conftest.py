"""The forge whose pull requests the tests follow up on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from draftsman.runtime import Runtime
from draftsman_bots.forges.receiver import ForgeReceiver
from tests.core.forges.api_contract import forge_harness
from tests.core.forges.follow_ups.followed_forge import FollowedForge


@pytest.fixture(params=["github"])
async def forge(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rt: Runtime
) -> AsyncIterator[FollowedForge]:
    async with forge_harness(request.param, tmp_path, monkeypatch) as site:
        table = site.table(events="poll", follow_up_delay=0, delete_branch=True)
        update = {"forges": {"acme": table}, "http": site.settings.http}
        mapped = replace(rt, settings=rt.settings.model_copy(update=update))
        ben = mapped.policy.people["ben"]
        ids = {**ben.ids, "forge": "acme:ben"}
        people = {**mapped.policy.people, "ben": replace(ben, ids=ids)}
        mapped = replace(mapped, policy=replace(mapped.policy, people=people))
        yield FollowedForge(site, mapped, ForgeReceiver(mapped))
