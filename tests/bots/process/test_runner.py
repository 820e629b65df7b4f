"""Bots are created from the declarations of their channels."""

from __future__ import annotations

import asyncio
import logging
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from draftsman import plugins
from draftsman.channels import registry
from draftsman.errors import ConfigError
from draftsman.plugins import Plugin
from draftsman.processes.components import ComponentGroup, Routine
from draftsman.processes.lifecycle import StopSignal
from draftsman.settings import Settings
from draftsman_bots.process.runner import IsolatedBot, create_bots, with_statement_timeout
from draftsman_bots.slack.plugin import SLACK
from draftsman_bots.trello.plugin import TRELLO
from draftsman_testing.waits import until
from tests.support.distributions import Distribution, channel_source, installed

RT: Any = SimpleNamespace(settings=None)


def _module(name: str, body: str) -> Distribution:
    source = channel_source(name, bot=f"acme_{name}:create")
    code = f"{source}\nfrom draftsman.errors import ConfigError\ndef create(rt):\n    {body}\n"
    return Distribution(
        f"acme-{name}", "1.0", {name: f"acme_{name}:CHANNEL"}, {f"acme_{name}": code}
    )


def test_bots_of_packages_are_created(tmp_path: Path) -> None:
    with installed(tmp_path, _module("mail", "return rt"), _module("post", "return 2")):
        channels = [registry.channel(name) for name in ("mail", "post")]
        bots = cast(Any, list(create_bots(RT, channels)))
        assert [bot._bot for bot in bots] == [RT, 2]


def test_a_bot_that_cannot_be_created_harms_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with installed(tmp_path, _module("mail", "return 1 / 0"), _module("post", "return 2")):
        channels = [registry.channel(name) for name in ("mail", "post")]
        with caplog.at_level(logging.ERROR):
            [bot] = cast(Any, list(create_bots(RT, channels)))
            assert bot._bot == 2
    assert "the bot of channel 'mail' of acme-mail 1.0 cannot be started" in caplog.text


def test_a_wrong_configuration_ends_the_process(tmp_path: Path) -> None:
    mail = _module("mail", "raise ConfigError('no token')")
    with installed(tmp_path, mail), pytest.raises(ConfigError, match="no token"):
        list(create_bots(RT, [registry.channel("mail")]))


def test_statements_time_out_before_the_callers_of_a_channel() -> None:
    settings = Settings()
    assert with_statement_timeout(settings, [TRELLO]) == settings
    assert with_statement_timeout(settings, [TRELLO, SLACK]).database.statement_timeout == 2.2


class Fragile:
    """A bot that fails when it runs for the first time."""

    runs = 0

    def __init__(self) -> None:
        self.stop = StopSignal()

    async def run(self) -> None:
        """Fail, or wait."""
        Fragile.runs += 1
        if Fragile.runs == 1:
            raise LookupError("unexpected")
        await self.stop.wait(math.inf)


async def test_a_bot_that_fails_is_started_again_while_others_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plugin = Plugin("mail", "acme_mail:CHANNEL", "acme-mail", "1.0", plugins.CHANNELS)
    other = Routine(wait)
    fragile = IsolatedBot(plugin, Fragile, pause=0)
    bots = ComponentGroup([fragile, other])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(bots.run())
        await until(is_running, "the second run")
        assert not other.stop
        bots.stop.set()
    assert "the bot of channel 'mail' of acme-mail 1.0 failed" in caplog.text


async def wait(stop: StopSignal) -> None:
    """Wait for the signal."""
    await stop.wait(math.inf)


async def is_running() -> bool:
    """Return whether the bot was started again."""
    return Fragile.runs == 2
