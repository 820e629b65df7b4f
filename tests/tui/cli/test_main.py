"""The entry point: help, command names, and errors on a line."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from draftsman.formats.shown_zone import SHOWN_ZONE
from draftsman_testing.factories import Factory
from draftsman_tui.cli import main
from draftsman_tui.cli.command_index import FILE
from tests.support.cases import cases
from tests.support.distributions import Distribution, installed
from tests.tui.cli.cli_runner import COMMAND, DEADLINE, Cli, Terminal, process
from tests.tui.cli.write_index import declared


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command, including subcommands, with its full name."""
    context = click.Context(main.cli)
    for name in main.COMMANDS:
        command = main.cli.get_command(context, name)
        assert command is not None, name
        yield from _with_its_own(name, command)


def _with_its_own(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    for sub, nested in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _with_its_own(f"{name} {sub}", nested)


def test_help_names_every_command_in_its_section() -> None:
    done = process("--help")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    for name, (_, section, summary) in main.COMMANDS.items():
        assert f"{section}:".split() in lines
        assert [name, *summary.split()] in lines
    assert process().stdout == done.stdout
    assert process("-h").stdout == done.stdout


def test_help_and_ls_are_other_names() -> None:
    assert process("help").stdout == process("--help").stdout
    assert "List jobs, newest first." in process("ls", "--help").stdout
    assert "Show the details of a job." in process("job", "--help").stdout
    assert "Show the details of a job." in process("D-142", "--help").stdout
    done = process("help", "shw")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean show" in done.stderr


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\nfrom draftsman_tui.cli.main import run\ncode = run(['--help'])\n"
        "print('LOADED', *sys.modules)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split("LOADED ")[1].split())
    heavy = {"psycopg", "pydantic", "rich", "textual", "slack_bolt", "trello", "asyncio"}
    assert heavy & loaded == set()


def test_every_command_has_a_description_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    commands = dict(_commands())
    assert len(commands) > len(main.COMMANDS)
    for name, command in commands.items():
        assert main.run([*name.split(), "--help"]) == 0, name
        text = capsys.readouterr().out
        assert "Usage:" in text, name
        assert not re.search(r"^  [a-z-]+ .*\.\.\.$", text.partition("Commands:")[2], re.M), name
        assert command.help, name
        if not isinstance(command, click.Group) and name not in WITHOUT_EXAMPLES:
            assert f"draftsman {name}" in text.split("Examples:")[1], name


WITHOUT_EXAMPLES = {"db start", "db stop", "db status"}
"""Commands without arguments; their group has the example."""


def test_the_index_has_every_command_as_its_module_declares_it() -> None:
    rows = FILE.read_text(encoding="utf-8").splitlines()
    assert sorted(rows) == declared(), "write it: python -m tests.tui.cli.write_index"


def test_commands_are_completed_without_their_modules() -> None:
    script = (
        "import sys\nfrom draftsman_tui.cli.main import run\nrun([])\n"
        "print(*(name for name in sys.modules if name.startswith('draftsman_tui.cli.')))"
    )
    env = {
        **os.environ,
        "_DRAFTSMAN_COMPLETE": "bash_complete",
        "COMP_WORDS": "draftsman s",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    *completed, loaded = done.stdout.splitlines()
    names = [name for name in main.COMMANDS if name.startswith("s")]
    assert completed == [f"plain,{name}" for name in names]
    assert set(loaded.split()) == {
        f"draftsman_tui.cli.{name}" for name in ("app", "command_index", "main")
    }


def test_every_command_takes_json_and_the_global_options() -> None:
    for name, command in _commands():
        if not isinstance(command, click.Group):
            options = {option for param in command.params for option in param.opts}
            assert {"--json", "--config", "--verbose", "--no-color"} <= options, name


async def test_a_group_lists_without_a_subcommand(cli: Cli) -> None:
    for name in ("boards", "repos", "people", "archives", "schedules", "templates"):
        bare = await cli(name)
        listed = await cli(name, "list")
        assert (bare.code, bare.out, bare.err) == (listed.code, listed.out, listed.err)
        assert "Usage:" not in bare.out
        assert (await cli(name, "--json")).json == (await cli(name, "list", "--json")).json


def test_the_version_is_printed() -> None:
    done = process("--version")
    assert done.stdout.startswith("draftsman 0.")


@cases(
    ("arguments", "message"),
    [
        (["jbos"], "unknown command 'jbos'; did you mean jobs"),
        (["zzz"], "unknown command 'zzz'; see: draftsman --help"),
        (["db", "strt"], "unknown command 'strt'; did you mean start"),
        (["--color"], "--color"),
        (["show"], "missing argument 'JOB[/QUESTION]'; see: draftsman show --help"),
        (["--config", "/no/such.toml", "jobs"], "/no/such.toml: No such file"),
        (["jobs", "--config", "/no/such.toml"], "/no/such.toml: No such file"),
    ],
)
def test_an_unknown_command_is_one_line_and_2(arguments: list[str], message: str) -> None:
    done = process(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("draftsman: ")
    assert message in done.stderr


def test_a_broken_configuration_names_key_and_value(tmp_path: Path) -> None:
    file = tmp_path / "draftsman.toml"
    for text, message in (
        ("[worker]\nslotz = 1", "unknown key 'worker.slotz'; did you mean slots?\n"),
        ("[databse]\npool = 1", "unknown key 'databse'; did you mean database?\n"),
        ("[database]\nurl = 'x'", "unknown key 'database.url'; did you mean database_url, above"),
        ("[worker]\nxyz = 1", "unknown key 'worker.xyz'; allowed here: abort"),
        ("worker.slots = 'many'", "worker.slots"),
        ("[worker", "not valid TOML"),
    ):
        file.write_text(text, encoding="utf-8")
        done = process("--config", file, "jobs")
        assert done.returncode == 2
        assert done.stderr.startswith(f"draftsman: {file}: ")
        assert message in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_broken_configuration_names_all_its_wrong_keys(tmp_path: Path) -> None:
    file = tmp_path / "draftsman.toml"
    file.write_text("[databse]\n[worker]\nslotz = 1\nslots = 'many'\n", encoding="utf-8")
    error = process("--config", file, "jobs").stderr
    assert error.startswith(f"draftsman: {file}: worker.slots is 'many': ")
    assert error.endswith(" unknown key 'databse'; did you mean database?\n"), error
    assert "unknown key 'worker.slotz'; did you mean slots?" in error
    assert (error.count(str(file)), error.count("\n")) == (1, 1)


async def test_a_database_that_is_down_or_empty_is_6(
    cli: Cli, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", "postgresql://me:hush@127.0.0.1:1/x")
    for arguments in (["jobs"], ["submit", "x"], ["answer", "D-1/1", "x"], ["events"], ["migrate"]):
        assert "hush" not in (await cli(*arguments)).refused(6, "cannot be reached")
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", empty_url)
    (await cli("jobs")).refused(6, "run: draftsman migrate")


async def test_a_problem_with_the_url_of_another_program_names_its_variable(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DRAFTSMAN_DATABASE_URL", raising=False)
    for url, code in (("postgresql://127.0.0.1:1/x", 6), ("postgresql://h/x?no_such=1", 2)):
        monkeypatch.setenv("DATABASE_URL", url)
        for arguments in (["jobs"], ["worker"], ["migrate"], ["up", "--headless"]):
            (await cli(*arguments)).refused(code, "that of DATABASE_URL, which you can unset")


def test_an_unexpected_error_is_one_line_and_a_traceback_only_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A broken installation: the module of a command is gone.
    why = main.COMMANDS["why"]._replace(module="no_such_module")
    monkeypatch.setitem(main.COMMANDS, "why", why)
    assert main.run(["why", "D-1"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("draftsman: unexpected ModuleNotFoundError: ")
    assert error.endswith("run with -v for details\n")
    assert main.run(["-v", "why", "D-1"]) == 1
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert error.count("no_such_module'") == 1
    assert "run with -v" not in error


async def test_quoted_input_in_an_error_is_escaped(cli: Cli) -> None:
    done = await cli("why", "x\x1b[2J\ny\x07")
    assert not set(done.refused(2, "is not a job")[:-1]) & set("\x1b\x07\n")
    assert "hush" not in (await cli("why", "postgresql://me:hush@db/x")).refused(2, "is not a job")


async def test_a_full_disk_at_stdout_is_reported_without_data_loss(cli: Cli, make: Factory) -> None:
    work = await make.asked()
    full = os.open("/dev/full", os.O_WRONLY)
    for arguments in (["jobs"], ["show", work.name, "--json"], ["jobs", "--help"], ["--version"]):
        done = process("--config", cli.config, *arguments, stdout=full)
        assert done.returncode == 1, arguments
        assert done.stderr.count("\n") == 1, done.stderr
        assert "No space left on device" in done.stderr
    request = ["submit", "--type", "noop", "--key", "k"]
    completed = process("--config", cli.config, *request, stdout=full)
    assert completed.returncode == 1
    assert "lost output: D-2 created" in completed.stderr
    answered = process("--config", cli.config, "answer", f"{work.name}/1", "red", stdout=full)
    assert "answered: red" in answered.stderr
    os.close(full)
    assert (await cli("show", work.name, "--json")).json["status"] == "resumed"
    assert (await cli(*request)).out == "D-2 deduplicated\n"


async def test_a_closed_pipe_ends_the_command_quietly(cli: Cli, make: Factory) -> None:
    await make.queued()
    for arguments in (["events"], ["jobs", "--json"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = process("--config", cli.config, *arguments, stdout=writer)
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, ""), arguments


async def test_closed_streams_cause_no_error(cli: Cli, make: Factory) -> None:
    request = ["submit", "--type", "noop", "--key", "k"]
    done = process("--config", cli.config, *request, shell='exec "$@" <&- >&- 2>&-')
    assert done.returncode == 0
    assert (await cli(*request)).out == "D-1 deduplicated\n"


async def test_an_interrupt_ends_with_one_line_and_130(cli: Cli, make: Factory) -> None:
    await make.queued()
    waiting = await asyncio.create_subprocess_exec(
        *COMMAND, "--config", str(cli.config), "wait", "D-1", stdout=PIPE, stderr=PIPE
    )
    assert waiting.stderr is not None
    assert b"no live worker" in await asyncio.wait_for(waiting.stderr.readline(), DEADLINE)
    waiting.send_signal(signal.SIGINT)
    out, error = await asyncio.wait_for(waiting.communicate(), DEADLINE)
    continues, last = error.decode().splitlines()
    assert (waiting.returncode, out, last) == (130, b"", "draftsman: interrupted")
    assert continues.startswith("D-1 continues; to follow it: ")


async def test_ctrl_c_ends_a_following_command(
    make: Factory, terminal: Callable[..., Terminal]
) -> None:
    number = await make.queued()
    screen = terminal("events", "-f", number)
    screen.expect("submitted the job")
    screen.type("\x03")
    assert screen.end() == 130
    assert "Traceback" not in screen.screen


POST = """
import click
from draftsman.channels.plugin import ChannelCommand, ChannelPlugin

def command(name, target):
    return ChannelCommand(name=name, summary="Manage mailboxes.", target=f"acme_post:{target}")

@click.command("mailboxes")
@click.pass_obj
def mailboxes(app):
    click.echo(f"for {type(app).__name__}")

CHANNEL = ChannelPlugin(
    name="post", label="Post",
    commands=(command("mailboxes", "mailboxes"), command("broken", "CHANNEL"),
              command("jobs", "mailboxes")),
)
"""


async def test_a_channel_adds_commands(cli: Cli, tmp_path: Path) -> None:
    post = Distribution("acme-post", "1.2", {"post": "acme_post:CHANNEL"}, {"acme_post": POST})
    with installed(tmp_path / "packages", post):
        assert "  mailboxes   Manage mailboxes." in (await cli("--help")).out
        assert (await cli("mailboxes")).out == "for App\n"
        broken = await cli("broken")
        broken.refused(2, "channel 'post' of acme-post 1.2 cannot be used", "no click.Command")
        assert "List jobs" in (await cli("jobs", "--help")).out
    (await cli("mailboxes")).refused(2, "unknown command 'mailboxes'")


@pytest.mark.parametrize(
    ("zone", "says"),
    [
        ("Europe/Berln", "unknown time zone 'Europe/Berln' in TZ, so times are in UTC"),
        ("Europe/Berlin", ""),
        ("CET-1CEST", ""),
        (":Asia/Tokyo", ""),
    ],
)
def test_an_unknown_time_zone_is_named(
    zone: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TZ", zone)
    assert main.run(["--version"]) == 0
    assert (SHOWN_ZONE.get() is None) is not bool(says)
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == bool(says)
    assert not says or "did you mean Europe/Berlin" in err


def test_all_errors_of_a_configuration_are_named_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also those of whole tables, and of names that refer to others, which pydantic checks last."""
    file = tmp_path / "draftsman.toml"
    file.write_text(
        'default_agent = "nobody"\nnope = 1\n[worker]\nslots = "many"\nheartbeat = 200\n'
        "[notifications]\nlease = 1\n"
    )
    assert main.run(["--config", str(file), "config"]) == 2
    said = capsys.readouterr().err
    for problem in (
        "worker.slots is 'many'",
        "heartbeat must be less than half of lease",
        "lease must be at least four times timeout",
        "unknown key 'nope'",
        "nobody",
    ):
        assert said.count(problem) == 1, (problem, said)
