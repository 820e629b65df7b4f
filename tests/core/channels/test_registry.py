"""Channels of installed packages, and those of packages with a mistake."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from draftsman import plugins
from draftsman.channels import registry
from draftsman.errors import ConfigError
from tests.support.cases import cases
from tests.support.distributions import Distribution, channel_source, installed

ROOT = Path(__file__).resolve().parents[3]
OWN = ["forge", "mail", "pager", "slack", "trello", "web"]
FAX = Distribution("acme-fax", "1.2", {"fax": "acme_fax:CHANNEL"}, {"acme_fax": ""})


def _fax(source: str) -> Distribution:
    return Distribution(FAX.name, FAX.version, FAX.entries, {"acme_fax": source})


def test_the_channels_of_draftsman_are_those_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = project["entry-points"][plugins.CHANNELS]
    found = {plugin.name: plugin.target for plugin in plugins.installed(plugins.CHANNELS)}
    assert found == declared, "the installed metadata is old; run: make check"
    assert [channel.name for channel in registry.channels()] == OWN
    assert list(registry.problems()) == []


@cases("name", OWN)
def test_what_a_channel_names_can_be_imported(name: str) -> None:
    channel = registry.channel(name)
    commands = [command.target for command in channel.commands]
    parts = [channel.bot, channel.worker_channel, channel.doctor, channel.settings, *commands]
    for target in filter(None, parts):
        assert callable(plugins.resolve(target))


def test_declarations_import_nothing_heavy() -> None:
    code = (
        "import sys; from draftsman.channels import registry; registry.channels();"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded & {"click", "httpx", "psycopg", "pydantic", "slack_bolt", "trello"} == set()
    assert "draftsman_bots" in loaded


def test_a_channel_of_another_package_is_found(tmp_path: Path) -> None:
    with installed(tmp_path, _fax(channel_source("fax", "Fax", table="mailbox"))):
        fax = registry.channel("fax")
        assert (fax.label, fax.table, fax.bot_label) == ("Fax", "mailbox", "Fax bot")
        assert [channel.name for channel in registry.channels()] == sorted([*OWN, "fax"])
        assert list(registry.problems()) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import nothing_of_this_name", "cannot be loaded: ModuleNotFoundError: No module named"),
        ("raise SystemExit('stop')", "cannot be loaded: SystemExit: stop"),
        ("OTHER = 1", "cannot be loaded: AttributeError: "),
        ("CHANNEL = 1", "cannot be used: acme_fax:CHANNEL is no ChannelPlugin"),
        (channel_source("post"), "cannot be used: it is named 'post'"),
    ],
)
def test_a_broken_channel_is_named_and_harms_no_other(
    tmp_path: Path, source: str, problem: str
) -> None:
    with installed(tmp_path, _fax(source)):
        with pytest.raises(ConfigError, match=r"channel 'fax' of acme-fax 1\.2") as refused:
            registry.channel("fax")
        assert problem in str(refused.value)
        assert [channel.name for channel in registry.channels()] == OWN
        assert [text for _, text in registry.problems()] == [str(refused.value)]


def test_the_name_of_a_channel_of_draftsman_cannot_be_taken(tmp_path: Path) -> None:
    theirs = Distribution(
        "acme-slack", "3.0", {"slack": "acme_slack:CHANNEL"}, {"acme_slack": "raise OSError"}
    )
    with installed(tmp_path, theirs):
        assert registry.channel("slack").label == "Slack"
        assert [text for _, text in registry.problems()] == [
            "channel 'slack' of acme-slack 3.0 is ignored: draftsman has this name"
        ]


def test_two_packages_with_a_name_are_both_refused(tmp_path: Path) -> None:
    other = Distribution("other-fax", "0.1", {"fax": "acme_fax:CHANNEL"})
    with installed(tmp_path, _fax(channel_source("fax")), other):
        with pytest.raises(ConfigError, match="uninstall all but one") as refused:
            registry.channel("fax")
        assert "acme-fax 1.2 and other-fax 0.1" in str(refused.value)
        assert len(list(registry.problems())) == 2
        assert [channel.name for channel in registry.channels()] == OWN


def test_an_unknown_channel_is_refused_with_the_known() -> None:
    with pytest.raises(ConfigError, match="channel 'fax'; known: forge, mail, pager, slack"):
        registry.channel("fax")
