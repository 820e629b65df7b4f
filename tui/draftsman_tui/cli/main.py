"""The process root: finds the command, runs it, and turns every end into an exit code.

Nothing heavy is imported here: a command's module is loaded when it is named, and the driver, the
configuration and the rest when it runs. Exit codes:

    0    done, or deduplicated          4    lost a race, or a key conflict
    1    refused, or did not complete   5    nobody answered
    2    usage or configuration         6    the database cannot be reached
    3    not found                      130  interrupted      141  the reader of stdout left
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Final

import click

from draftsman import early_signals
from draftsman.hardening import deny_inspection
from draftsman_tui.cli.app import App, Group, example_lines, shared_options
from draftsman_tui.common import stdio
from draftsman_tui.common.output import CommandOutput, one_line

INTERRUPTED: Final = 130
READER_GONE: Final = 141
SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Jobs": {
        "dashboard": ("process.dashboard", "Look at everything live, and do it from there."),
        "submit": ("job.submit", "Make a job of a request."),
        "jobs": ("job.jobs", "List jobs, newest first."),
        "show": ("job.show", "Show everything about a job."),
        "events": ("job.events", "Show the trail of a job, or of all."),
        "logs": ("job.events", "Print what the runs of a job logged."),
        "diff": ("job.artifacts", "Print the changes of a job, or of a gate."),
        "artifacts": ("job.artifacts", "List or get the files that a job left."),
        "wait": ("job.job_wait", "Wait until a job ends."),
        "why": ("job.jobs", "Say what a job waits for."),
        "cancel": ("job.cancel", "End a job."),
        "retry": ("job.retry", "Run finished jobs anew."),
        "deliveries": ("job.deliveries", "List what people were told."),
        "redeliver": ("job.deliveries", "Send dead deliveries again."),
    },
    "Questions": {
        "questions": ("question.questions", "List what waits for a person."),
        "answer": ("question.answers", "Answer a question."),
        "approve": ("question.answers", "Approve what a job wants to do."),
        "deny": ("question.answers", "Deny what a job wants to do."),
        "extend": ("question.questions", "Give a question more time."),
    },
    "Processes": {
        "demo": ("process.demo", "Run one real job on a real repository, with no credentials."),
        "up": ("process.serve", "Start all that is needed, and keep it running."),
        "worker": ("process.serve", "Run jobs, and lead where nobody does."),
        "bots": ("process.serve", "Listen and speak in chat: Slack and Trello."),
        "workers": ("process.workers", "List the workers and how they are."),
        "sweep": ("process.workers", "Run one sweep of the leader now."),
        "stats": ("process.workers", "Count everything."),
        "soak": (
            "process.soak",
            "Load draftsman, break everything around it, and count what it lost.",
        ),
    },
    "Setup": {
        "doctor": ("setup.doctor", "Check everything, and say what to do."),
        "people": ("setup.people", "Show and change people, their roles and identities."),
        "boards": ("board.boards", "Watch Trello boards, and see what their labels do."),
        "repos": ("repo.repos", "Make repositories known, and say how they are validated."),
        "config": ("setup.configuration", "Print the configuration in effect, without secrets."),
        "migrate": ("setup.database", "Bring the database to this version."),
        "db": ("setup.database", "Control the embedded PostgreSQL."),
        "archives": (
            "setup.archives",
            "List, check or restore months of the trail that were pruned.",
        ),
        "completion": ("setup.configuration", "Print a completion script for your shell."),
    },
}
"""Every command: the module that has it, and what the list of commands says of it."""
COMMANDS: Final = {name: found for section in SECTIONS.values() for name, found in section.items()}


class Commands(Group):
    """The group whose commands are loaded when they are named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take no argument as any other group takes options alone: `cli` knows what to do."""
        return click.Group.parse_args(self, ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every name, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command from its module, which calls it by the same name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"draftsman_tui.cli.{COMMANDS[cmd_name][0]}")
        found: click.Command = getattr(module, cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in sections, without loading one."""
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, help) for name, (_, help) in commands.items()])


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
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
            "draftsman submit --agent tidy --repo . 'Tidy up'",
            "draftsman questions",
            "draftsman answer D-1/1 'safe fixes'",
        )
    ),
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Durable jobs that stop to ask people, and carry on when anyone answers."""
    if ctx.invoked_subcommand is not None:
        return
    from draftsman_tui.cli.process.dashboard import dashboard, is_available

    if is_available():
        with dashboard.make_context("dashboard", [], parent=ctx) as shown:
            dashboard.invoke(shown)
    else:
        CommandOutput().write(ctx.get_help() + "\n")
        from draftsman_tui.common import extras

        if stdio.is_screen() and extras.missing("tui"):
            CommandOutput().info(f"draftsman: {extras.advice('tui')}")


def main() -> None:
    """Run the command line of this process, and exit."""
    early_signals.hold()
    deny_inspection()
    stdio.prepare()
    code = run(sys.argv[1:])
    early_signals.hold()  # what ends by itself is not interrupted on its last lines
    try:
        sys.stdout.flush()
    except OSError:
        stdio.abandon_stdout()
    sys.exit(code)


def run(args: Sequence[str]) -> int:
    """Run one command; return the exit code. Nothing is raised."""
    app = App()
    try:
        return _invoke(args, app)
    except (stdio.BrokenStdout, BrokenPipeError):
        return READER_GONE
    except (KeyboardInterrupt, click.Abort, EOFError):
        CommandOutput().info("" if stdio.is_terminal(sys.stderr) else "draftsman: interrupted")
        return INTERRUPTED
    except BaseException as error:
        return _explain(error, app)


def _invoke(args: Sequence[str], app: App) -> int:
    if _completes():
        return 0
    try:
        with cli.make_context("draftsman", list(args), obj=app) as ctx:
            cli.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0


def _completes() -> bool:
    """Answer the shell's question what may follow, if this is one."""
    instruction = os.environ.get("_DRAFTSMAN_COMPLETE")
    if not instruction:
        return False
    from click.shell_completion import shell_complete

    try:
        shell_complete(cli, {}, "draftsman", "_DRAFTSMAN_COMPLETE", instruction)
    except (KeyError, ValueError):
        text = "a completion needs COMP_WORDS and COMP_CWORD as a shell sets them"
        raise click.UsageError(text) from None
    return True


def _explain(error: BaseException, app: App) -> int:
    """Say in one line what went wrong; return the exit code."""
    from draftsman.errors import DraftsmanError
    from draftsman.log import redact

    error = next(_single(error))
    code = 1
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, DraftsmanError):
        message, code = str(error), error.exit_code
    elif isinstance(error, OSError) and error.strerror:
        message = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
    elif isinstance(error, click.ClickException):
        message, code = _usage(error), error.exit_code
    elif app.verbose:
        CommandOutput().info(redact("".join(traceback.format_exception(error)).rstrip()))
        message = "this is an unexpected error"  # which the traceback ends with
    else:
        text = f"{type(error).__name__}: {_text(error)}".rstrip(": ")
        message = f"unexpected {text}; run with -v for the details"
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
    """Yield what a group of one holds, the error itself otherwise."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    yield error


def _usage(error: click.ClickException) -> str:
    message = error.format_message().strip().rstrip(".").replace(". ", "; ")
    message = message[:1].lower() + message[1:]
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is None or ctx.parent is None:
        return message
    return f"{message}{'' if message.endswith('?') else ';'} see: {ctx.command_path} --help"


if __name__ == "__main__":
    main()
