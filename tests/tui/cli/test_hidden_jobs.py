"""A job that a person may not see is unknown to each command that names one."""

from __future__ import annotations

from typing import Final

import click
import pytest

from draftsman_testing.factories import Factory
from draftsman_tui.terminal import params
from tests.support.commands import leaves
from tests.support.visibility import SECRET, hide
from tests.tui.cli.cli_runner import Cli

JOBS: Final = (params.JOB, params.JOB_OF, params.JOBS, params.PARENTS)
QUESTIONS: Final = (params.QUESTION, params.JOB_OR_QUESTION)
OTHERS: Final = {
    "delegate": ("bob",),
    "move": ("--top",),
    "pause": ("--reason", "noon"),
    "run": ("--type", "noop"),
    "submit": ("--type", "noop"),
    "tell": ("use v2",),
}
"""What a command requires besides its parameters."""
VALUES: Final = {"duration": "1h"}
"""Values of required parameters by name; others take `1`."""
EXCEPT: Final = {("jobs", "before"): "a place in a list, where no job has to be"}
"""Parameters that need not name a job, with the reason."""


def _arguments(command: click.Command, named: click.Parameter, job: int) -> list[str]:
    """Return arguments of a command in which a parameter names the job."""
    arguments = []
    for param in command.params:
        if param is named or (isinstance(param, click.Argument) and param.required):
            name = f"D-{job}/1" if param.type in QUESTIONS else f"D-{job}"
            value = name if param.type in (*JOBS, *QUESTIONS) else VALUES.get(str(param.name), "1")
            is_option = isinstance(param, click.Option)
            arguments += [param.opts[0], value] if is_option else [value]
    return arguments


async def test_a_hidden_job_is_found_by_no_command(
    cli: Cli, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "root")
    job = (await make.asked(repo=SECRET)).number
    named = [
        (name, command, param)
        for name, command in leaves()
        for param in command.params
        if param.type in (*JOBS, *QUESTIONS) and (name, param.name) not in EXCEPT
    ]
    assert len(named) > 40
    for name, command, param in named:
        others = () if name == "move" and param.name != "job" else OTHERS.get(name, ())
        yes = ["--yes"] if any(item.name == "yes" for item in command.params) else []
        arguments = [*name.split(), *_arguments(command, param, job), *others, *yes]
        result = await cli(*arguments)
        assert (result.code, result.err.count("\n")) == (3, 1), (arguments, result)
        assert f"there is no job D-{job}" in result.err, arguments
