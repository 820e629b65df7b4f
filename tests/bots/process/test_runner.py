"""Bots are created from the declarations of their channels."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from draftsman import plugins
from draftsman.channels import registry
from draftsman.errors import ConfigError
from draftsman.processes.components import ComponentGroup, Routine
from draftsman.processes.lifecycle import StopSignal
from draftsman.settings import Settings
from draftsman_bots.process.plugin_bot import PluginBot
from draftsman_bots.process.runner import create_bots, with_statement_timeout
from draftsman_bots.slack.plugin import SLACK
from draftsman_bots.trello.plugin import TRELLO
from draftsman_testing.waits import background
from tests.support.distributions import Distribution, channel_source, installed

RT: Any = SimpleNamespace(settings=None)


def _module(name: str, body: str) -> Distribution:
    source = channel_source(name, bot=f"acme_{name}:create")
    code = f"{source}\nfrom draftsman.errors import ConfigError\ndef create(rt):\n    {body}\n"
    return Distribution(
        f"acme-{name}", "1.0", {name: f"acme_{name}:CHANNEL"}, {f"acme_{name}": code}
    )


def test_bots_of_packages_are_created(tmp_path: Path) -> None:
    with installed(tmp_path, _module("fax", "return rt"), _module("post", "return 2")):
        channels = [registry.channel(name) for name in ("fax", "post")]
        assert [type(bot) for bot in create_bots(RT, channels)] == [PluginBot] * 2


def test_a_bot_that_cannot_be_created_harms_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with installed(tmp_path, _module("fax", "return 1 / 0"), _module("post", "return 2")):
        channels = [registry.channel(name) for name in ("fax", "post")]
        with caplog.at_level(logging.ERROR):
            assert len(list(create_bots(RT, channels))) == 1
    assert "the bot of channel 'fax' of acme-fax 1.0 cannot be started" in caplog.text


async def test_a_bot_that_fails_starts_again_and_harms_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs: list[str] = []
    ended = asyncio.Event()

    async def fail_once(stop: StopSignal) -> None:
        runs.append("fax")
        if len(runs) == 1:
            raise ValueError("no server")
        ended.set()

    async def other(stop: StopSignal) -> None:
        await ended.wait()

    with installed(tmp_path, _module("fax", "return rt")):
        plugin = plugins.find(plugins.CHANNELS, "fax")
    bot = PluginBot(plugin, lambda: Routine(fail_once), restart=0)
    with caplog.at_level(logging.ERROR):
        await ComponentGroup([bot, Routine(other)]).run()
    assert runs == ["fax", "fax"]
    assert "the bot of channel 'fax' of acme-fax 1.0 failed; it starts again" in caplog.text


async def test_a_bot_of_a_package_is_stopped(tmp_path: Path) -> None:
    async def work(stop: StopSignal) -> None:
        await stop.wait(60)

    with installed(tmp_path, _module("fax", "return rt")):
        bot = PluginBot(plugins.find(plugins.CHANNELS, "fax"), lambda: Routine(work))
    async with background(bot.run()) as running:
        bot.stop.set()
        await running


def test_a_wrong_configuration_ends_the_process(tmp_path: Path) -> None:
    fax = _module("fax", "raise ConfigError('no token')")
    with installed(tmp_path, fax), pytest.raises(ConfigError, match="no token"):
        list(create_bots(RT, [registry.channel("fax")]))


def test_statements_time_out_before_the_callers_of_a_channel() -> None:
    settings = Settings()
    assert with_statement_timeout(settings, [TRELLO]) == settings
    assert with_statement_timeout(settings, [TRELLO, SLACK]).database.statement_timeout == 2.0
