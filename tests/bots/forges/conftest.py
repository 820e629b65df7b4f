"""An issue of a registered repository on a fake forge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import run_dispatcher
from tests.bots.forges.forge_place import forge_place
from tests.bots.forges.issues import LOGINS, Issue


@pytest.fixture
async def issue(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Issue]:
    """Give an issue of a registered repository, and people with logins."""
    async with forge_place(
        "github", tmp_path, monkeypatch, issue_label="fix it", events="poll"
    ) as place:
        await rt.repos.add(Repo.at(parse(place.fake.url)), profile({}), make.owner)
        rt.policy.people = {
            name: replace(person, ids={**person.ids, "forge": LOGINS[name]})
            if name in LOGINS
            else person
            for name, person in rt.policy.people.items()
        }
        async with run_dispatcher(rt, place.channel):
            yield Issue(place, rt)
