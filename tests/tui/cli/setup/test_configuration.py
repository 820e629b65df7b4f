"""`config` and `completion`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.settings import load
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli, process


async def test_printed_configuration_can_be_loaded(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cli.config.open("a", encoding="utf-8") as config:
        config.write('\n[types."report:weekly"]\nmax_attempts = 7\n[handlers]\n"a b" = "m:f"\n')
        config.write('[agents.x]\ncommand = ["x", "say \\"hi\\""]\n[questions]\nexpires_in = 0\n')
    monkeypatch.delenv("DRAFTSMAN_DATABASE_URL")
    before = load(cli.config)
    output = (await cli("config")).out
    (tmp_path / "again.toml").write_text(output, encoding="utf-8")
    assert load(tmp_path / "again.toml") == before
    assert before.questions.expires_in is None
    assert "# database_url is unset" in output
    assert (await cli("config", "--json")).json["worker"]["slots"] == 10


async def test_no_secret_is_printed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with cli.config.open("a", encoding="utf-8") as config:
        config.write('\n[agents.x]\ncommand = ["x"]\nenv = { API_KEY = "hush1", PLAIN = "shown" }')
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", "postgresql://me:hush2@db.example.org/x")
    monkeypatch.setenv("DRAFTSMAN_LISTEN_URL", "host=db user=me password=hush3")
    for arguments in (["config"], ["config", "--json"]):
        output = (await cli(*arguments)).out
        assert "hush" not in output
        assert "db.example.org" in output
        assert "shown" in output


async def test_the_path_of_the_loaded_file_is_printed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await cli("config", "--path")).out == f"{cli.config}\n"
    assert (await cli("config", "--path", "--json")).json == {"path": str(cli.config)}
    done = process("config", "--path", DRAFTSMAN_CONFIG=str(cli.config))
    assert done.stdout == f"{cli.config}\n"


async def test_variables_override_the_file(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with cli.config.open("a", encoding="utf-8") as config:
        config.write("\n[worker]\nslots = 3")
    assert tomllib.loads((await cli("config")).out)["worker"]["slots"] == 3
    monkeypatch.setenv("DRAFTSMAN_WORKER__SLOTS", "4")
    assert tomllib.loads((await cli("config")).out)["worker"]["slots"] == 4


async def test_a_shell_completes_commands_and_options(cli: Cli) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = (await cli("completion", shell)).out
        assert "_DRAFTSMAN_COMPLETE" in script
    (await cli("completion", "tcsh")).refused(2, "'bash', 'zsh', 'fish'")
    for typed, offered in (("", "submit"), ("ev", "events"), ("jobs --st", "--status")):
        arguments = f"draftsman {typed}".split(" ")
        done = process(
            _DRAFTSMAN_COMPLETE="bash_complete",
            COMP_WORDS=" ".join(arguments),
            COMP_CWORD=str(len(arguments) - 1),
        )
        assert done.returncode == 0
        assert f"plain,{offered}" in done.stdout.splitlines()


async def test_a_shell_completes_jobs_questions_agents_repositories_and_statuses(
    cli: Cli, make: Factory, rt: Runtime, owner: Actor
) -> None:
    first = await make.asked(title="Tidy\x1b up")
    for _ in range(9):
        await make.queued()
    await rt.repos.add(Repo.at(parse("https://git.example/acme/pay")), RepoProfile(), owner)
    with cli.config.open("a", encoding="utf-8") as config:
        config.write('\nagents.coder.command = ["true"]\n')
    for typed, offered in (
        ("show D-", "D-1"),
        ("show d-1", "D-10"),
        ("show 1", "10"),
        ("answer ", f"{first.name}/1"),
        ("submit --agent c", "coder"),
        ("jobs --repo ac", "acme/pay"),
        ("jobs --status failed,dead", "failed,dead_letter"),
    ):
        arguments = f"draftsman --config {cli.config} {typed}".split(" ")
        line: Any = {"COMP_WORDS": " ".join(arguments), "COMP_CWORD": str(len(arguments) - 1)}
        done = process(_DRAFTSMAN_COMPLETE="bash_complete", **line)
        assert f"plain,{offered}" in done.stdout.splitlines(), (typed, done)
    away: Any = {"DRAFTSMAN_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    line = {"COMP_WORDS": "draftsman show D-", "COMP_CWORD": "2"}
    done = process(_DRAFTSMAN_COMPLETE="bash_complete", **line, **away)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
