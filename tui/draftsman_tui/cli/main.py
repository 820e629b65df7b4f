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
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Final

import click

from draftsman.processes import early_signals
from draftsman.processes.hardening import deny_inspection
from draftsman_tui.cli.app import App, Group, example_lines, shared_options
from draftsman_tui.terminal import stdio
from draftsman_tui.terminal.output import CommandOutput, one_line

INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Jobs": {
        "submit": ("requests.submit", "Submit a job."),
        "run": ("requests.run", "Submit a job and follow it to its end."),
        "jobs": ("jobs.jobs", "List jobs, newest first."),
        "show": ("jobs.show", "Show the details of a job."),
        "events": ("events.events", "Show the event history, oldest first."),
        "logs": ("jobs.logs", "Print the output of a job's runs and the activity of its agent."),
        "diff": ("changes.diff", "Print the changes of a job or of a question."),
        "checkout": (
            "changes.own_repository",
            "Check out the branch of a job in your own repository.",
        ),
        "apply": ("changes.own_repository", "Apply the changes of a job to your working tree."),
        "verify": ("changes.verify", "Check the signed evidence of a job."),
        "merge": ("changes.pull_request", "Merge the pull request of a job, after an approval."),
        "open": ("changes.pull_request", "Open the pull request, ticket or thread of a job."),
        "artifacts": ("jobs.artifacts", "List or download the artifacts of a job."),
        "wait": ("jobs.job_wait", "Wait for a job to finish."),
        "why": ("jobs.jobs", "Explain why a job is waiting."),
        "move": ("queues.order", "Move a queued job in its queue."),
        "priority": ("queues.order", "Change the priority of a job that has not started."),
        "tell": ("jobs.control", "Send a message to the agent of a job."),
        "pause": ("jobs.control", "Pause a job."),
        "resume": ("jobs.control", "Continue a paused job."),
        "cancel": ("jobs.control", "Cancel jobs."),
        "retry": ("jobs.retry", "Retry finished jobs."),
        "groups": ("workflows", "List, show and cancel groups of jobs."),
        "deliveries": ("deliveries", "List deliveries, newest first."),
        "redeliver": ("deliveries", "Retry dead-letter deliveries."),
    },
    "Recurring": {
        "templates": ("schedules.templates", "Manage and run templates of jobs."),
        "schedules": ("schedules.schedules", "Manage schedules, which submit jobs at set times."),
    },
    "Questions": {
        "questions": ("questions.questions", "List open questions and approvals."),
        "answer": ("questions.answers", "Answer a question."),
        "approve": ("questions.answers", "Approve a question that asks for approval."),
        "deny": ("questions.answers", "Deny a question that asks for approval."),
        "extend": ("questions.questions", "Extend the time to answer a question."),
        "ack": ("attention.attention", "Acknowledge a question: you work on the answer."),
        "snooze": ("attention.attention", "Pause your own reminders of a question."),
        "delegate": ("attention.attention", "Ask another person to answer a question."),
        "oncall": ("attention.oncall", "Show the people on duty now and next."),
        "digest": ("attention.attention", "Get your questions in a digest at hours of your own."),
        "rules": ("permission_rules", "List, test, ratify and revoke permission rules."),
    },
    "Programs": {
        "ask": ("questions.ask", "Ask a question, and print the answer."),
        "approve-action": ("questions.ask", "Ask for the approval of an action."),
        "note": ("jobs.progress", "Add a note to the history of the current job."),
        "progress": ("jobs.progress", "Report the progress of the run: 12/40 or 30%."),
        "hook": ("mcp.hook", "Let the team decide the tool calls of coding agents."),
        "mcp": ("mcp.mcp", "Run an MCP server for a coding agent."),
    },
    "Queues and costs": {
        "queues": ("queues.queues", "List, pause, resume, drain and release queues."),
        "limits": ("queues.limits", "Show limits of concurrency and rates, and their use."),
        "budgets": ("costs", "List each budget with its use."),
        "costs": ("costs", "Show tokens and costs by repository, person or day."),
        "stats": ("processes.workers", "Show counts of jobs, questions, deliveries and workers."),
    },
    "Processes": {
        "dashboard": ("processes.dashboard", "Open the live dashboard."),
        "demo": (
            "demo.demo",
            "Run an example job on a sample repository, no credentials needed.",
        ),
        "up": ("processes.serve", "Start a worker and the configured bots, and supervise them."),
        "worker": ("processes.serve", "Run a worker."),
        "bots": (
            "processes.serve",
            "Run the bots, and receive the events of forges and pagers.",
        ),
        "web": ("processes.web", "Serve the web inbox: questions and jobs in a browser."),
        "workers": ("processes.workers", "List workers and their health."),
        "sweep": ("processes.workers", "Run a maintenance sweep now."),
        "soak": (
            "processes.soak",
            "Run a soak test: inject faults under load and check the jobs.",
        ),
    },
    "Setup": {
        "doctor": ("setup.doctor", "Check the installation and suggest fixes."),
        "agents": ("setup.agents", "List the configured agents, and check them."),
        "people": ("people.people", "Manage people, their roles and chat accounts."),
        "link": ("people.link", "Sign in to the web inbox, or link a chat account to you."),
        "boards": ("trello.boards", "Manage Trello boards and their label rules."),
        "repos": ("repos.repos", "Manage repositories and their profiles."),
        "policy": ("policies", "Show and test the policy of a repository."),
        "config": ("setup.configuration", "Print the effective configuration, without secrets."),
        "migrate": ("database", "Migrate the database schema to this version."),
        "db": ("database", "Manage the embedded PostgreSQL server."),
        "archives": (
            "events.events",
            "List, check or restore archived events.",
        ),
        "completion": ("setup.configuration", "Print a shell completion script."),
    },
}
"""Module and summary of each command, by section of the help."""
COMMANDS: Final = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


ALIASES: Final = {"ls": "jobs"}
"""Other names of commands, which help and completion leave out."""


class Commands(Group):
    """Group that imports a command's module only when the command is used."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Skip the help that `Group` prints without arguments: `cli` decides."""
        return click.Group.parse_args(self, ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; `help COMMAND` is `COMMAND --help`, and `ls` is `jobs`."""
        if args[0] == "help" and not ctx.resilient_parsing:
            if not args[1:]:
                CommandOutput().write(ctx.get_help() + "\n")
                ctx.exit()
            args = [*args[1:], "--help"]
        return super().resolve_command(ctx, [ALIASES.get(args[0], args[0]), *args[1:]])

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all command names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command from its module, where it is an attribute of the same name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"draftsman_tui.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section, without importing them."""
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, help) for name, (_, help) in commands.items()])


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

        if stdio.is_screen() and extras.missing("tui"):
            CommandOutput().info(f"draftsman: {extras.advice('tui')}")


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
    try:
        with cli.make_context("draftsman", list(args), obj=app) as ctx:
            cli.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0


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
    from draftsman.errors import DatabaseUnreachable, DraftsmanError, InvalidDatabaseUrl
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


def _usage(error: click.ClickException) -> str:
    message = error.format_message().strip().rstrip(".").replace(". ", "; ")
    message = message.replace("is not a valid integer range", "is not a whole number")
    message = message[:1].lower() + message[1:]
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is None or ctx.parent is None:
        return message
    return f"{message}{'' if message.endswith('?') else ';'} see: {ctx.command_path} --help"


if __name__ == "__main__":
    main()
