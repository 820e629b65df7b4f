"""An issue of a registered repository on a fake forge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.bots.bot_contract import run_dispatcher
from tests.bots.forges.forge_side import forge_side
from tests.bots.forges.issues import Issue

LOGINS: Final = {"anna": "acme:anna", "ben": "acme:ben", "carol": "acme:carol"}


@pytest.fixture
async def issue(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Issue]:
    """Give an issue of a registered repository, and people with logins."""
    async with forge_side(
        "github", tmp_path, monkeypatch, issue_label="fix it", events="poll"
    ) as side:
        await rt.repos.add(Repo.at(parse(side.fake.url)), profile({}), make.owner)
        rt.policy.people = {
            name: replace(person, ids={**person.ids, "forge": LOGINS[name]})
            if name in LOGINS
            else person
            for name, person in rt.policy.people.items()
        }
        async with run_dispatcher(rt, side.channel):
            yield Issue(side, rt)
