"""Fixtures: servers of mail, people with addresses, and the bot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from draftsman.runtime import Runtime
from draftsman.settings import Settings, settings_model
from draftsman_bots.mail.service import MailService, create
from draftsman_testing.people import PEOPLE
from tests.bots.mail.mail_side import KEY, PASSWORD, MailSide, open_side


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    monkeypatch.setenv("MAIL_KEY", KEY.decode())


@pytest.fixture
async def side() -> AsyncIterator[MailSide]:
    """Provide the servers."""
    async with open_side() as side:
        yield side


@pytest.fixture
def settings(settings: Settings, side: MailSide) -> Settings:
    """Provide a configuration with the servers."""
    return with_mail(settings, side.settings())


@pytest.fixture
async def bot(rt: Runtime) -> MailService:
    """Provide the bot, whose loops do not run."""
    return create(rt)


def with_mail(settings: Settings, table: dict[str, Any]) -> Settings:
    """Return a configuration with a table `[mail]`, and people with addresses."""
    people = {name: {**own, "mail": f"{name}@example.org"} for name, own in PEOPLE.items()}
    changed = {"mail": table, "people": people}
    return settings_model().model_validate(settings.model_dump() | changed)
