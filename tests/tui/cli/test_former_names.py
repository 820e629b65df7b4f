"""Former names of command-line options and configuration keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from draftsman.settings.former_names import (
    JSON_KEYS,
    JSON_VARIABLE,
    OPTIONS,
    VALUES,
    add_former_keys,
)
from draftsman_tui.cli.main import cli as draftsman
from tests.factories import Factory
from tests.support.cases import cases
from tests.tui.cli.cli_runner import Cli


def command_of(path: str) -> tuple[click.Command, click.Context]:
    """Return a command of the command line and its context."""
    command: click.Command = draftsman
    context = click.Context(draftsman, info_name="draftsman")
    for name in path.split():
        assert isinstance(command, click.Group)
        subcommand = command.get_command(context, name)
        assert subcommand is not None
        command = subcommand
        context = click.Context(command, info_name=name, parent=context)
    return command, context


@pytest.mark.parametrize(
    ("path", "former"), [(path, former) for path, names in OPTIONS.items() for former in names]
)
def test_a_former_option_is_replaced_with_a_warning(
    capsys: pytest.CaptureFixture[str], path: str, former: str
) -> None:
    command, context = command_of(path)
    current = OPTIONS[path][former]
    options = {name: param for param in command.params for name in param.opts}
    options |= {name: param for param in command.params for name in param.secondary_opts}
    assert former not in options
    flag = getattr(options[current], "is_flag", False)
    arguments = ["x"] if command.params and command.params[0].required else []
    for given_arguments in ([former], [former, "v"]) if not flag else ([former],):
        command.parse_args(
            context,
            [*arguments, *given_arguments, *([] if flag or "v" in given_arguments else ["v"])],
        )
        assert context.params[str(options[current].name)] is not None
        text = f"draftsman: {former} is deprecated; use {current}\n"
        assert capsys.readouterr().err == text
    with pytest.raises(click.UsageError, match=f"use {current}, which is also given"):
        command.parse_args(context, [*arguments, former, "v", current, "w"])


@pytest.mark.parametrize(
    ("option", "former"), [(option, former) for option, names in VALUES.items() for former in names]
)
async def test_a_former_value_is_replaced_with_a_warning(
    cli: Cli, option: str, former: str
) -> None:
    *arguments, name = option.split()
    output = await cli(*arguments, name, former, "--json")
    assert output.code == 0
    assert output.err == f"draftsman: {name} {former} is deprecated; use {VALUES[option][former]}\n"


@cases(
    ("command", "former"),
    [(command, former) for command, keys in JSON_KEYS.items() for former in keys],
)
def test_a_former_key_is_added_to_a_json_document(command: str, former: str) -> None:
    *above, name = former.split(".")
    current = JSON_KEYS[command][former]
    document: Any = [{current: 5}, {"other": 1}]
    for key in reversed(above):
        document = {key: document}
    warnings = add_former_keys(document, command)
    assert f"{JSON_VARIABLE}: {name} is deprecated; use {current}" in warnings
    for key in above:
        document = document[key]
    assert document == [{current: 5, name: 5}, {"other": 1}]


@pytest.mark.parametrize(
    "command", ["submit --type noop", "why D-1", "show D-1", "stats", "doctor"]
)
async def test_former_json_keys_are_printed_on_request(
    cli: Cli, make: Factory, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    await make.queued()
    current = json.loads((await cli(*command.split(), "--json")).out)
    monkeypatch.setenv(JSON_VARIABLE, "1")
    output = await cli(*command.split(), "--json")
    warnings = [line for line in output.err.splitlines() if JSON_VARIABLE in line]
    name = command.split()[0]
    assert len(warnings) == len(JSON_KEYS[name]) - (name == "doctor")
    assert json.loads(output.out) != current
    assert not [former for former in JSON_KEYS[name] if former in current]


async def test_a_former_option_works(cli: Cli) -> None:
    output = await cli("redeliver", "--dead", "--json")
    assert (output.code, output.json) == (0, [])
    assert output.err == "draftsman: --dead is deprecated; use --dead-letters\n"


async def test_both_names_of_an_option_are_one_error(cli: Cli) -> None:
    (await cli("redeliver", "--dead", "--dead-letters")).refused(2, "which is also given")


async def test_a_command_warns_of_a_former_key_once(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "draftsman.toml"
    file.write_text("[sandbox]\nuids = 7\n", encoding="utf-8")
    text = f"{file}: sandbox.uids is deprecated; use sandbox.uid_count"
    output = await cli("--config", str(file), "jobs", "--json")
    assert (output.code, output.err) == (0, f"draftsman: {text}\n")
    findings = json.loads((await cli("--config", str(file), "doctor", "--json")).out)["checks"]
    assert text in [finding["text"] for finding in findings if finding["status"] == "warn"]
