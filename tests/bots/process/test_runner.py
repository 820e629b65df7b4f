"""Bots are created from the declarations of their channels."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from draftsman.channels import registry
from draftsman.errors import ConfigError
from draftsman.settings import Settings
from draftsman_bots.process.runner import create_bots, with_statement_timeout
from draftsman_bots.slack.plugin import SLACK
from draftsman_bots.trello.plugin import TRELLO
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
        assert cast(Any, list(create_bots(RT, channels))) == [RT, 2]


def test_a_bot_that_cannot_be_created_harms_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with installed(tmp_path, _module("fax", "return 1 / 0"), _module("post", "return 2")):
        channels = [registry.channel(name) for name in ("fax", "post")]
        with caplog.at_level(logging.ERROR):
            assert cast(Any, list(create_bots(RT, channels))) == [2]
    assert "the bot of channel 'fax' of acme-fax 1.0 cannot be started" in caplog.text


def test_a_wrong_configuration_ends_the_process(tmp_path: Path) -> None:
    fax = _module("fax", "raise ConfigError('no token')")
    with installed(tmp_path, fax), pytest.raises(ConfigError, match="no token"):
        list(create_bots(RT, [registry.channel("fax")]))


def test_statements_time_out_before_the_callers_of_a_channel() -> None:
    settings = Settings()
    assert with_statement_timeout(settings, [TRELLO]) == settings
    assert with_statement_timeout(settings, [TRELLO, SLACK]).database.statement_timeout == 2.2
