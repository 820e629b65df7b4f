"""Entry point of the command line: finds the command, runs it and returns an exit code.

A command's module is imported when the command runs, so that help and completion stay fast. Exit
codes:

    0    completed or deduplicated      4    lost a race, or idempotency conflict
    1    refused or not completed       5    no answer in time
    2    usage or configuration error   6    database unreachable
    3    not found                      130  interrupted      141  stdout closed by the reader
"""

from __future__ import annotations

import gc
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from draftsman.errors import ConfigError, DatabaseUnreachable, DraftsmanError, InvalidDatabaseUrl
from draftsman.formats.invisible import one_line
from draftsman.formats.shown_zone import SHOWN_ZONE, local_zone, unknown_zone
from draftsman.ids import job_number
from draftsman.processes import early_signals
from draftsman.processes.hardening import deny_inspection
from draftsman_tui.cli import command_index
from draftsman_tui.cli.app import REGISTRY, SECTIONS, App, Group, example_lines, shared_options
from draftsman_tui.terminal import stdio
from draftsman_tui.terminal.output import CommandOutput

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from draftsman.channels.plugin import ChannelCommand

INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
COMMANDS: Final = command_index.read()
ALIASES: Final = {"ls": "jobs", "job": "show"}
"""Other names of commands, which help and completion leave out."""


class Commands(Group):
    """Group that imports a command's module only when the command is used."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Skip the help that `Group` prints without arguments: `cli` decides."""
        return click.Group.parse_args(self, ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; `ls` is `jobs`, and `D-142` is `show D-142`."""
        args = [ALIASES.get(args[0], args[0]), *args[1:]]
        if job_number(args[0].partition("/")[0]) is not None:
            args = ["show", *args]
        if args[0] in COMMANDS:  # channels are not looked for
            return click.Group.resolve_command(self, ctx, args)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all command names in the order of the help."""
        return [*COMMANDS, *channel_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command, which registers it."""
        if cmd_name not in COMMANDS:
            return _channel_command(cmd_name)
        module, section, _ = COMMANDS[cmd_name]
        import_module(module)
        return REGISTRY[section][cmd_name]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section, without importing them."""
        for section in SECTIONS:
            rows = [
                (name, command.summary)
                for name, command in COMMANDS.items()
                if command.section == section
            ]
            if section == "Setup":
                rows += [
                    (name, command.summary) for name, (_, command) in channel_commands().items()
                ]
            with formatter.section(section):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands, without importing them."""
        from click.shell_completion import CompletionItem

        added = {name: command.summary for name, (_, command) in channel_commands().items()}
        summaries = {name: command.summary for name, command in COMMANDS.items()} | added
        commands = [
            CompletionItem(name, help=summary)
            for name, summary in summaries.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


def channel_commands() -> dict[str, tuple[str, ChannelCommand]]:
    """Return the commands that channels add by name, each with the name of its channel."""
    from draftsman.channels import registry

    return {
        command.name: (channel.name, command)
        for channel in registry.channels()
        for command in channel.commands
        if command.name not in COMMANDS
    }


def _channel_command(name: str) -> click.Command | None:
    """Import the command of a channel; raises ConfigError, which names its package."""
    if name not in (commands := channel_commands()):
        return None
    from draftsman import plugins

    channel, declared = commands[name]
    plugin = plugins.find(plugins.CHANNELS, channel)
    command = plugins.load_part(plugin, declared.target)
    if not isinstance(command, click.Command):
        raise ConfigError(f"{plugin} cannot be used: {declared.target} is no click.Command")
    return command


def _version(ctx: click.Context, _: click.Parameter, enabled: bool) -> None:
    if enabled and not ctx.resilient_parsing:
        from draftsman import __version__

        CommandOutput().print(f"draftsman {__version__}")
        ctx.exit()


@click.group(
    "draftsman",
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        *shared_options(hidden=False),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            help="Print the version.",
            callback=_version,
        ),
    ],
    epilog=example_lines(
        (
            "draftsman demo",
            "draftsman init",
            "draftsman submit --agent tidy --repo . 'Tidy up'",
            "draftsman questions",
            "draftsman answer D-1/1 'safe fixes'",
        )
    ),
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Durable jobs that pause to ask people questions and resume with the answers."""
    if ctx.invoked_subcommand is not None:
        return
    from draftsman_tui.cli.processes.dashboard import dashboard, is_available

    if is_available():
        with dashboard.make_context("dashboard", [], parent=ctx) as dashboard_ctx:
            dashboard.invoke(dashboard_ctx)
    else:
        CommandOutput().write(ctx.get_help() + "\n")
        from draftsman_tui.terminal import extras

        if stdio.is_screen() and extras.missing(extras.DASHBOARD):
            CommandOutput().info(f"draftsman: {extras.advice(extras.DASHBOARD)}")


def main() -> None:
    """Run the command line and exit."""
    early_signals.hold()
    deny_inspection()
    stdio.prepare()
    code = run(sys.argv[1:])
    early_signals.hold()  # a signal must not interrupt the last lines of output
    try:
        sys.stdout.flush()
    except OSError:
        stdio.abandon_stdout()
    gc.freeze()  # else the interpreter's shutdown searches all modules for cycles, several times
    sys.exit(code)


def run(args: Sequence[str]) -> int:
    """Run a command and return the exit code; never raises."""
    app = App()
    try:
        return _invoke(args, app)
    except (stdio.BrokenStdout, BrokenPipeError):
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort, EOFError):
        CommandOutput().info("" if stdio.is_terminal(sys.stderr) else "draftsman: interrupted")
        return INTERRUPTED
    except BaseException as error:
        return _explain(error, app)


def _invoke(args: Sequence[str], app: App) -> int:
    if _completes():
        return 0
    _set_zone()
    try:
        with cli.make_context("draftsman", list(args), obj=app) as ctx:
            cli.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0


def _set_zone() -> None:
    """Show times in the zone of this machine, and say when no zone has the name in `TZ`."""
    SHOWN_ZONE.set(local_zone())
    if name := unknown_zone():
        from zoneinfo import available_timezones

        from draftsman.formats.near_names import did_you_mean

        tail = did_you_mean(name, available_timezones())
        CommandOutput().info(f"unknown time zone {name[:60]!r} in TZ, so times are in UTC{tail}")


def _completes() -> bool:
    """Answer a completion request if the shell makes it."""
    instruction = os.environ.get("_DRAFTSMAN_COMPLETE")
    if not instruction:
        return False
    from click.shell_completion import shell_complete

    try:
        shell_complete(cli, {"obj": App()}, "draftsman", "_DRAFTSMAN_COMPLETE", instruction)
    except (KeyError, ValueError):
        text = "shell completion requires COMP_WORDS and COMP_CWORD"
        raise click.UsageError(text) from None
    return True


def _explain(error: BaseException, app: App) -> int:
    """Print the error on one line and return the exit code."""
    from draftsman.log import redact

    error = next(_single(error))
    code = 1
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, DraftsmanError):
        message = str(error)
        code = error.exit_code
        if app.uses_fallback_url and isinstance(error, DatabaseUnreachable | InvalidDatabaseUrl):
            message += "; the database is that of DATABASE_URL, which you can unset"
    elif isinstance(error, OSError) and error.strerror:
        message = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
    elif isinstance(error, click.ClickException):
        message = _usage(error)
        code = error.exit_code
    elif app.verbose:
        CommandOutput().info(redact("".join(traceback.format_exception(error)).rstrip()))
        message = "unexpected error"  # the traceback already shows the message
    else:
        text = f"{type(error).__name__}: {_text(error)}".rstrip(": ")
        message = f"unexpected {text}; run with -v for details"
    CommandOutput().info(f"draftsman: {redact(one_line(message))}")
    return code


def _text(error: BaseException) -> str:
    if type(error).__name__ == "ValidationError":
        from pydantic import ValidationError

        from draftsman import field_errors

        if isinstance(error, ValidationError):
            return field_errors.error_line(error)
    return str(error)


def _single(error: BaseException) -> Iterator[BaseException]:
    """Yield the only exception of a group, or the error itself."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    yield error


_RANGE: Final = re.compile(r"(-?[\d.]+)<=x<=(-?[\d.]+)")
"""A range of numbers as click writes it."""


_OPTION_NOTES: Final[Mapping[tuple[str | None, str], str]] = {
    (None, "--columns"): "tables have fixed columns, and --json has all fields",
    ("answer", "--reason"): "the answer itself is the text: draftsman answer D-142/1 TEXT",
}
"""What to do instead of an option that a command does not have, by the names of both; a
command None is any."""


def _no_such_option(error: click.NoSuchOption) -> str:
    """Return the error of an unknown option, with the near ones that are listed in a help."""
    context = error.ctx
    listed: set[str] = set()
    while context is not None:
        listed |= {
            name
            for param in context.command.params
            if not getattr(param, "hidden", False)
            for name in (*param.opts, *param.secondary_opts)
        }
        context = context.parent
    from draftsman_tui.common.synonyms import near_options

    name = error.option_name
    command = error.ctx.info_name if error.ctx else ""
    if note := _OPTION_NOTES.get((command, name)) or _OPTION_NOTES.get((None, name)):
        return f"no such option {name}; {note}"
    near = near_options(name, listed)
    tail = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"no such option {name}{tail}"


def _usage(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        message = _no_such_option(error)
    else:
        message = error.format_message().strip().rstrip(".").replace(". ", "; ")
    message = message.replace("is not a valid integer range", "is not a whole number")
    message = message.replace("is not a valid integer", "is not a whole number")
    message = message.replace("is not a valid float range", "is not a number")
    message = _RANGE.sub(r"\1 to \2", message)
    message = message[:1].lower() + message[1:]
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is None or ctx.parent is None:
        return message
    return f"{message}{'' if message.endswith('?') else ';'} see: {ctx.command_path} --help"


if __name__ == "__main__":
    main()
