"""`draftsman init`: its questions, its file, and what the file never has."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.errors import ConfigError, DatabaseUnreachable
from draftsman.runtime import Runtime
from draftsman.settings import settings_model
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App
from draftsman_tui.cli.setup import init
from draftsman_tui.cli.setup.init import (
    NOTHING,
    Asker,
    ask_database,
    collect,
    default_repository,
    secret_place,
    write,
)
from draftsman_tui.cli.setup.init_answers import ROLES, Answers, NewPerson, as_file, asked_channels
from tests.core.worker.agent_jobs import git
from tests.support.cases import cases
from tests.support.distributions import Distribution, installed
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import cli as cli
from tests.tui.cli.conftest import config as config
from tests.tui.cli.conftest import me as me

FAX = """
from draftsman.channels.plugin import ChannelPlugin, ChannelQuestions

CHANNEL = ChannelPlugin(
    name="fax",
    label="Fax",
    table="machine",
    questions=ChannelQuestions(
        comment="A fax machine.",
        secrets={"token": "FAX_TOKEN"},
        account="fax number",
        account_form="[0-9]+",
    ),
)
"""
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide a machine with two agents, of the user anna, without variables."""
    monkeypatch.setattr(init, "installed_agents", lambda: ("codex", "claude"))
    monkeypatch.setattr("getpass.getuser", lambda: "anna")
    asked = asked_channels().values()
    secrets = [name for _, questions in asked for name in questions.secrets.values()]
    for name in ("DRAFTSMAN_DATABASE_URL", *secrets):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Provide a function that sets the answers; `?` takes the default."""

    def set_answers(*texts: str | bool) -> Iterator[str | bool]:
        answers = iter(texts)

        def prompt(question: str, *, default: str) -> str:
            text = next(answers)
            assert isinstance(text, str), question
            return default if text == "?" else text

        def is_confirmed(question: str, *, default: bool) -> bool:
            text = next(answers)
            assert isinstance(text, bool), question
            return text

        monkeypatch.setattr(prompts, "prompt", prompt)
        monkeypatch.setattr(prompts, "is_confirmed", is_confirmed)
        return answers

    return set_answers


def settings_of(answers: Answers) -> Any:
    return settings_model().model_validate(tomllib.loads(as_file(answers)))


@pytest.mark.usefixtures("machine")
def test_the_answers_make_a_configuration_that_has_no_secret(
    answer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    left = answer(
        *(False, True, "gpt", "claude"),
        *(True, "xoxb-123-456-abcdefabcdefabcdef", "SLACK_BOT_TOKEN", "/etc/app_token"),
        *(True, "?", "-"),
        *("/nonexistent", "?", "U1"),
        *("a b", "anna", "ben", "not an id", "U012ABCDEF", "aprover", "?"),
        *("eve", "-", "operator,invoker", "max", "-", "-", "-"),
    )
    answers = collect(Asker(App(), asks=True), "postgresql://anna:hunter2@db/x")
    assert list(left) == []
    text = as_file(answers)
    assert "hunter2" not in text
    assert "xoxb" not in text
    settings = settings_of(answers)
    assert settings.database_url is None
    assert "claude" in settings.agents
    assert "codex" not in settings.agents
    assert settings.default_agent == "claude"
    assert tomllib.loads(text)["slack"] == {
        "bot_token": {"env": "SLACK_BOT_TOKEN"},
        "app_token": {"file": "/etc/app_token"},
    }
    assert "trello" not in tomllib.loads(text), "a skipped secret skips the service"
    assert settings.people["anna"].login == "anna"
    assert settings.people["anna"].accounts["slack"] == ("U1",)
    assert settings.people["ben"].accounts["slack"] == ("U012ABCDEF",)
    assert {name: list(person.roles) for name, person in settings.people.items()} == {
        "anna": list(ROLES),
        "ben": ["invoker", "responder"],
        "eve": ["invoker", "operator"],
        "max": [],
    }
    refused = capsys.readouterr().err
    assert "'/nonexistent' is no name: it has letters, digits, '.', '_' and '-'" in refused
    assert "'a b' is no name" in refused
    assert "anna is there already" in refused
    assert "'aprover' is no role; did you mean approver?" in refused


async def test_a_database_that_cannot_be_reached_is_asked_for_again(
    answer: Any, rt: Runtime, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rt.settings.database_url is not None
    works = rt.settings.database_url.get_secret_value()
    refused = "postgresql://anna@127.0.0.1:1/x"
    left = answer("mysql://x", refused, works)
    assert await ask_database(Asker(App(), asks=True)) == works
    assert list(left) == []
    said = capsys.readouterr().err
    assert "mysql:// is no PostgreSQL database" in said
    assert "127.0.0.1" in said
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", refused)
    with pytest.raises(DatabaseUnreachable):
        await ask_database(Asker(App(), asks=False))
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", works)
    assert await ask_database(Asker(App(), asks=False)) is None


@pytest.mark.usefixtures("machine")
def test_yes_takes_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLO_KEY", "set")
    monkeypatch.setenv("TRELLO_TOKEN", "set")
    answers = collect(Asker(App(), asks=False), None)
    assert answers.agents == ("codex", "claude")
    assert answers.default_agent == "codex"
    assert list(answers.channels) == ["trello"]
    assert answers.people == [NewPerson("anna", {"login": "anna"}, ROLES)]
    assert settings_of(answers).database_url is None


@pytest.mark.usefixtures("machine")
def test_a_channel_of_another_package_is_asked_for(answer: Any, tmp_path: Path) -> None:
    fax = Distribution("draftsman-fax", "1.0", {"fax": "fax_channel:CHANNEL"}, {"fax_channel": FAX})
    with installed(tmp_path / "site", fax):
        left = answer(*(False, False, True, "FAX_TOKEN", False, False), *("?", "x", "12", NOTHING))
        text = as_file(collect(Asker(App(), asks=True), None))
    assert list(left) == []
    assert '# A fax machine.\n[machine]\ntoken = { env = "FAX_TOKEN" }\n' in text
    assert tomllib.loads(text)["people"]["anna"]["fax"] == "12"


@cases(
    "text",
    [
        "xoxb-1", "xapp-1-A0", "ATTAfa4efa4efa4efa4efa4efa4efa4efa4efa4efa4efa4efa4e",
        "0123456789abcdef0123456789abcdef", "a b", "",
    ],
)  # fmt: skip
def test_a_secret_is_not_taken_as_the_name_of_its_place(text: str) -> None:
    with pytest.raises(ValueError, match="the file gets no secret"):
        secret_place(text)


@given(TEXT, TEXT, TEXT)
def test_any_name_makes_a_file_that_can_be_read(name: str, login: str, secret: str) -> None:
    sources = {"bot_token": {"env": secret}}
    people = [NewPerson(name, {"login": login}, ROLES)]
    read = tomllib.loads(as_file(Answers(people=people, channels={"slack": sources})))
    assert read["people"][name]["login"] == login
    assert read["slack"] == sources


def test_the_file_is_private_and_an_invalid_one_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "draftsman.toml"
    write(path, Answers())
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_text()
    with pytest.raises(ConfigError, match="make no configuration"):
        write(path, Answers(default_agent="nothing"))
    assert path.read_text() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["draftsman.toml"]


def test_a_repository_without_a_commit_is_left_out_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = App()
    app.config = Path("team.toml")
    monkeypatch.chdir(tmp_path)
    assert default_repository(app) == NOTHING
    git("init", "-q", ".", cwd=tmp_path)
    assert default_repository(app) == NOTHING
    assert capsys.readouterr().err == (
        f"{tmp_path} has no commit yet, and was not added; after its first:"
        f" draftsman --config team.toml repos add {tmp_path}\n"
    )
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=tmp_path)
    assert default_repository(app) == str(tmp_path)
    assert capsys.readouterr().err == ""


async def test_an_existing_file_and_a_pipe_are_refused(cli: Cli) -> None:
    before = cli.config.read_text()
    refused = await cli("init", "--yes")
    assert (refused.code, refused.err.count("\n")) == (1, 1), refused
    assert "exists; move it away" in refused.err
    piped = await cli("init")
    assert piped.code == 2
    assert "use --yes" in piped.err
    assert cli.config.read_text() == before
