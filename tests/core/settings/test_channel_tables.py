"""Tables and accounts that packages of channels add to the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from draftsman import basic_settings
from draftsman.errors import ConfigError
from draftsman.people.configuration import configured_policy
from draftsman.settings import Settings, channel_tables, load
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.web.settings import WebSettings
from tests.support.cases import cases
from tests.support.distributions import Distribution, channel_source, installed

Write = Callable[[str], Path]
SETTINGS: Final = """
from typing import Annotated
from pydantic import AfterValidator
from draftsman.settings.section import ChannelSection, NamedSection, Section

class FaxSettings(ChannelSection):
    table = "mailbox"
    host: str
    port: int = 25

class FaxAccount(Section):
    fax: Annotated[str, AfterValidator(str.lower)] | None = None

class FaxMachine(NamedSection):
    table = "mailbox"
    example = "office"
    number: int

class Wrong(ChannelSection):
    table = "worker"
"""


def package(**fields: object) -> Distribution:
    """Return the package of a channel with a table and an account."""
    parts = {"settings": "acme_settings:FaxSettings", "account": "acme_settings:FaxAccount"}
    source = channel_source("fax", "Fax", table="mailbox", **{**parts, **fields})
    modules = {"acme_fax": source, "acme_settings": SETTINGS}
    return Distribution("acme-fax", "1.2", {"fax": "acme_fax:CHANNEL"}, modules)


@pytest.fixture
def fax(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "packages", package()):
        yield


@pytest.fixture
def write(tmp_path: Path) -> Write:
    path = tmp_path / "draftsman.toml"

    def write(text: str) -> Path:
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.usefixtures("fax")
def test_a_package_adds_a_table_and_an_account(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_MAILBOX__PORT", "587")
    settings = load(write('[mailbox]\nhost = "a"\n[people.anna]\nfax = "Anna@example.org"\n'))
    table = channel_tables.section_of(settings, "fax")
    assert (table.host, table.port) == ("a", 587)
    assert settings.people["anna"].accounts == {"fax": ("anna@example.org",)}
    policy = configured_policy(settings)
    assert policy.people["anna"].has_account("fax", "anna@example.org")


@pytest.mark.usefixtures("fax")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[mailbox]\nport = 1", "mailbox.host: "),
        ('[mailbox]\nhost = "a"\nxyz = 1', "allowed here: host, port"),
        ('[mailbox]\nhost = "a"\npost = 1', "did you mean (host|port)"),
        ("[fax]", "allowed here: agents, .*mailbox"),
        ("[people.anna]\ntelex = 1", "allowed here: fax, forge, .*mail, pager"),
        (
            "[people.a]\nfax = 'x@y.z'\n[people.b]\nfax = 'X@y.z'",
            "people.a and people.b have the same fax: 'x@y.z'",
        ),
    ],
)
def test_a_wrong_key_or_value_of_a_package_is_refused(
    write: Write, text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(write(text))


@pytest.mark.usefixtures("fax")
def test_an_account_that_is_written_differently_is_validated_each_time(write: Write) -> None:
    for account, has_stamp in (("Anna@example.org", False), ("anna@example.org", True)):
        config = write(f"[people.anna]\nfax = '{account}'\n")
        digest = basic_settings.digest(config)
        assert digest is not None
        people = load(config).people.items()
        accounts = {name: person.accounts for name, person in people}
        basic_settings.remember(digest, config, accounts)
        basic = basic_settings.read(config, lambda: None)
        assert (basic is not None) == has_stamp
        assert basic is None or basic.people["anna"].accounts == accounts["anna"]


MACHINES = """
from draftsman.channels.plugin import ChannelPlugin, TargetSyntax

CHANNEL = ChannelPlugin(
    name="fax",
    label="Fax",
    table="mailbox",
    settings="acme_settings:FaxMachine",
    target=TargetSyntax(form="fax:NAME", parse=lambda address: (address, None)),
)
"""


def test_a_package_adds_tables_whose_names_are_its_targets(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder = "[[ladders.a.steps]]\nnotify = ['fax:{}']\n"
    machines = "[mailbox.office]\nnumber = 1\n"
    monkeypatch.setenv("DRAFTSMAN_MAILBOX__HOME__NUMBER", "2")
    modules = {"acme_fax": MACHINES, "acme_settings": SETTINGS}
    fax = Distribution("acme-fax", "1.2", {"fax": "acme_fax:CHANNEL"}, modules)
    with installed(tmp_path / "packages", fax):
        settings = load(write(machines + ladder.format("home")))
        tables = channel_tables.section_of(settings, "fax")
        assert {name: table.number for name, table in tables.items()} == {"office": 1, "home": 2}
        with pytest.raises(ConfigError, match="unknown name 'gone'; known: home, office"):
            load(write(machines + ladder.format("gone")))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"settings": "acme_settings:Gone"}, "cannot be loaded: AttributeError"),
        ({"settings": "acme_settings:FaxAccount"}, "is no ChannelSection"),
        ({"settings": "acme_settings:Wrong"}, r"its table is \[worker\]"),
        ({"account": "acme_settings:FaxSettings"}, "an account is a single field, fax"),
        ({"account": "acme_nothing:X"}, "cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_wrong_part_is_named_and_harms_no_other(
    tmp_path: Path, write: Write, fields: dict[str, str], problem: str
) -> None:
    tokens = "[slack]\nbot_token.env = 'B'\napp_token.env = 'A'\n"
    with installed(tmp_path / "packages", package(**fields)):
        settings = load(write(f"{tokens}[fax]\nx = 1\n[people.anna]\nfax = 'A'\nslack = 'U1'\n"))
        assert SlackSettings.of(settings) is not None
        assert settings.people["anna"].accounts["slack"] == ("U1",)
        [(plugin, text)] = channel_tables.problems(Settings)
        assert (plugin.package, plugin.version) == ("acme-fax", "1.2")
        assert "channel 'fax' of acme-fax 1.2" in text
        with pytest.raises(ConfigError, match=problem):
            raise ConfigError(text)


def test_a_package_that_cannot_be_imported_keeps_its_table(tmp_path: Path, write: Write) -> None:
    broken = Distribution("acme-fax", "1.2", {"fax": "acme_fax:CHANNEL"}, {"acme_fax": "1 / 0"})
    with installed(tmp_path / "packages", broken):
        settings = load(write("[fax]\nhost = 'a'\n"))
        with pytest.raises(ConfigError, match=r"channel 'fax' of acme-fax 1\.2 cannot be loaded"):
            channel_tables.section_of(settings, "fax")


def test_channels_are_found_only_if_a_table_or_an_account_is_of_one(write: Write) -> None:
    assert type(load(write("[worker]\nslots = 4\n[people.anna]\nlogin = 'a'\n"))) is Settings
    assert WebSettings.of(load(write(""))).listen == "127.0.0.1:8421"
    assert WebSettings.of(load(write("[web]\nlisten = '127.0.0.1:1'\n"))).listen == "127.0.0.1:1"


@cases(
    "channel, text, account",
    [
        ("forge", "github:Anna", "github:anna"),
        ("mail", "Anna@Example.org", "anna@example.org"),
        ("mail", "no address", "no address"),
        ("slack", "U012ABCDEF", "U012ABCDEF"),
        ("web", "Anna", "Anna"),
        ("not_here", "Anna", "Anna"),
    ],
)
def test_a_typed_account_is_read_as_its_channel_stores_it(
    channel: str, text: str, account: str
) -> None:
    assert channel_tables.account_id(channel, text) == account
