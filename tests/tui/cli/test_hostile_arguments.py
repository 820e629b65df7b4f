"""Invalid arguments, variables and folders, each rejected with a clear line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from draftsman.database.embedded import EmbeddedServer
from draftsman.errors import ConfigError, EmbeddedServerError
from draftsman.settings import load
from draftsman_testing.factories import Factory
from tests.support.cases import cases
from tests.tui.cli.cli_runner import Cli, Terminal, process

HUGE = "9" * 5000
BIDI = "a\u202eb\u2066c\x7f\x9b31md\u200fe\ufefff 👩‍🔧 é"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["show", "9" * 26], 3, "no job id starts with '99999999999999999999999999'"),
        (["show", HUGE], 2, "is not a job; use D-142"),
        (["show", f"D-{HUGE}"], 2, "is not a job; use D-142"),
        (["answer", f"D-1/{HUGE}", "x"], 2, "is not a question; use a name such as D-142/2"),
        (["submit", "--type", "x", "--payload", f'{{"a": {HUGE}}}'], 2, "has too many digits"),
        (["submit", "--type", "x", "--priority", HUGE], 2, "--priority"),
        (["db", "dump", ""], 2, "FILE must be a file name"),
        (
            ["submit", "--agent", "tidy", "--repo", "https:/u:s3cret@h/a", "x"],
            2,
            "may not contain a password",
        ),
    ],
)
async def test_an_invalid_argument_is_refused_in_one_line(
    cli: Cli, arguments: list[str], code: int, message: str
) -> None:
    error = (await cli(*arguments)).refused(code, message)
    assert "s3cret" not in error
    assert len(error) < 300 or arguments[-2] == "--priority"


@cases("shell", [{"COMP_CWORD": "x", "COMP_WORDS": "draftsman "}, {"COMP_CWORD": "1"}])
def test_an_invalid_completion_is_refused_in_one_line(shell: dict[str, str]) -> None:
    env = {"_DRAFTSMAN_COMPLETE": "bash_complete", **shell}
    completed = process(shell=" ".join(f"{k}='{v}'" for k, v in env.items()) + ' exec "$@"')
    assert completed.returncode == 2
    assert completed.stderr == ("draftsman: shell completion requires COMP_WORDS and COMP_CWORD\n")


async def test_json_on_a_terminal_is_escaped_and_equivalent(
    cli: Cli, make: Factory, terminal: Callable[..., Terminal]
) -> None:
    number = await make.queued(title=BIDI)
    piped = await cli("show", number, "--json")
    assert piped.json["title"] == BIDI
    assert "\u202e" in piped.out
    screen = terminal("show", number, "--json")
    assert screen.end() == 0
    text = screen.screen
    assert not set(text) & set("\u202e\u2066\x7f\x9b\u200f\ufeff")
    assert json.loads(text) == piped.json


async def test_config_shows_no_secret_of_a_tool(cli: Cli) -> None:
    with cli.config.open("a") as file:
        file.write(
            "\n[tools.it]\n"
            'command = ["curl", "--token", "s3cret1", "--password=s3cret2",'
            ' "https://u:s3cret3@h/", "-H", "Authorization: Bearer s3cret4", "plain"]\n'
            'env = { DB_PASS = "s3cret5", API_KEY = "s3cret6", URL = "https://u:s3cret7@h",'
            ' LEVEL = "high" }\n'
            "[agents.other]\n"
            'command = ["x", "--api-key=s3cret8"]\n'
            'env = { MY_CREDENTIALS = "s3cret9" }\n'
        )
    for printed in (await cli("config"), await cli("config", "--json")):
        assert printed.code == 0
        assert "s3cret" not in printed.out
        assert "plain" in printed.out
        assert "high" in printed.out


@pytest.mark.parametrize("name", ["a\nb", "a'b", 'a"b', "a$b", "a`b", "a\\b", "a\x1bb"])
def test_a_data_directory_that_postgresql_cannot_use_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmbeddedServerError, match="PostgreSQL cannot run in a direct") as caught:
        EmbeddedServer(tmp_path / name, 60).ensure()
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_home_of_another_user_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTSMAN_DATA_DIR", "~nobody-here/x")
    with pytest.raises(ConfigError, match=r"DRAFTSMAN_DATA_DIR: .*unknown user"):
        load()


@pytest.mark.parametrize("kind", ["a file", "below a file", "too long"])
def test_an_invalid_data_directory_is_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").touch()
    places = {"a file": "file", "below a file": "file/data", "too long": "x" * 300}
    with pytest.raises(EmbeddedServerError, match="to a writable directory with 100 MB"):
        EmbeddedServer(tmp_path / places[kind], 60).ensure()
