"""The channels of a worker, of which some are those of packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.deliveries.channels.worker_channels import target_names, worker_channels
from draftsman.settings import Settings, settings_model
from tests.support.distributions import Distribution, channel_source, installed

SENDER = """
from draftsman.deliveries.channel import Channel

class Fax(Channel):
    name = "fax"

def create(settings):
    return Fax()
"""


def _package(target: str) -> Distribution:
    modules = {"acme_fax": channel_source("fax", worker_channel=target), "acme_sender": SENDER}
    return Distribution("acme-fax", "1.2", {"fax": "acme_fax:CHANNEL"}, modules)


def test_a_worker_sends_to_the_channels_of_packages_that_need_no_bot(tmp_path: Path) -> None:
    with installed(tmp_path, _package("acme_sender:create")):
        assert target_names(worker_channels(Settings())) == ["log", "fax"]


def test_a_channel_that_cannot_be_loaded_harms_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with installed(tmp_path, _package("acme_sender:gone")):
        assert target_names(worker_channels(Settings())) == ["log"]
    assert "nothing is sent to fax: channel 'fax' of acme-fax 1.2 cannot be loaded" in caplog.text


def test_a_target_without_a_usable_secret_is_not_served_and_has_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY", "R0123456")
    pagers = {
        name: {"format": "pagerduty", "secret": {"env": variable}}
        for name, variable in (("ops", "KEY"), ("night", "NO_SUCH_KEY"))
    }
    channels = worker_channels(settings_model().model_validate({"pagers": pagers}))
    assert target_names(channels) == ["log", "pager:ops"]
    problems = [problem for channel in channels for problem in channel.problems()]
    assert problems == [
        "pager 'night': the variable NO_SUCH_KEY holds no secret on this worker",
    ]
