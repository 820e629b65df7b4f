"""The contracts of channels, for the comments of forges."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.channel.channel_contract import ChannelContract
from draftsman_testing.channel.delivery_contract import DeliveryContract
from draftsman_testing.factories import Factory
from tests.bots.forges.forge_place import KINDS, ForgePlace, forge_place
from tests.bots.forges.issues import ForgeTalk
from tests.bots.story import ToldConversation
from tests.core.forges.api_contract import FAKES
from tests.support.slow import slow_except


class TestCalls(ChannelContract):
    """The calls, of each forge."""

    @pytest.fixture(params=KINDS)
    async def place(
        self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[ForgePlace]:
        async with forge_place(request.param, tmp_path, monkeypatch) as place:
            yield place


class TestDeliveries(DeliveryContract):
    """The messages of jobs, on GitHub."""

    @pytest.fixture
    async def place(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[ForgePlace]:
        async with forge_place("github", tmp_path, monkeypatch) as place:
            yield place


class TestConversation(ToldConversation):
    """What people write, in issues of a registered repository, on GitHub; each in `make soak`."""

    @pytest.fixture(params=slow_except(["github"], KINDS))
    async def place(
        self,
        request: pytest.FixtureRequest,
        rt: Runtime,
        make: Factory,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> AsyncIterator[ForgeTalk]:
        async with FAKES[request.param](tmp_path / "forge") as fake:
            monkeypatch.setenv("FORGE_TOKEN", fake.world.token)
            await rt.repos.add(Repo.at(parse(fake.url)), profile({}), make.owner)
            yield ForgeTalk(fake)
