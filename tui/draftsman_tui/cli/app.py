"""Shared options, configuration, runtime and output of commands."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

import click

from draftsman.formats.shown_zone import SHOWN_ZONE
from draftsman.processes import early_signals
from draftsman.processes.process_name import PROCESS_NAME
from draftsman.tracing.tracer import TRACEPARENT_VARIABLE, called_by
from draftsman_tui.terminal.output import CommandOutput

if TYPE_CHECKING:
    from draftsman.actions.action import Action
    from draftsman.entities.entity import Entity
    from draftsman.ids import JobRef
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings
    from draftsman_tui.terminal.params import Completed

Function = Callable[..., Any]
OptionCallback = Callable[[click.Context, click.Parameter, Any], None]


Section = Literal[
    "Jobs",
    "Control of jobs",
    "Changes",
    "Recurring",
    "Questions",
    "Programs",
    "Queues and costs",
    "Processes",
    "Setup",
]
"""Section of the help."""
SECTIONS: Final[tuple[Section, ...]] = get_args(Section)
"""Sections in the order of the help."""
REGISTRY: Final[dict[Section, dict[str, click.Command]]] = {section: {} for section in SECTIONS}
"""Commands of the modules that are imported; `command_index` knows those of all modules."""
ACTIONS_OF: Final[dict[click.Command, tuple[Action[Any, ..., Any], ...]]] = {}
"""The actions of each command."""


@dataclass(slots=True)
class App:
    """State of a command invocation: its shared options, configuration and output."""

    config: Path | None = None
    verbose: bool = False
    json: bool = False
    utc: bool = False
    """Whether times are shown and read in UTC, and not in the local zone."""
    color: bool | None = None
    pager: bool | None = None
    """Whether long output is shown in a pager; None: it is."""
    sort: str = ""
    """The column by which a list is sorted, with `-` for the descending order."""
    where: tuple[str, ...] = ()
    """Conditions on the columns of a list."""
    counts: bool = False
    """Whether a list prints how many rows it has."""
    uses_fallback_url: bool = field(default=False, init=False)
    """Whether the database is that of the variable `DATABASE_URL`."""
    _settings: Settings | None = field(default=None, init=False)
    _digest: str | None = field(default=None, init=False)

    @property
    def selects(self) -> bool:
        """Whether a list has conditions or an order, which apply before its limit."""
        return bool(self.sort or self.where)

    @property
    def out(self) -> CommandOutput:
        """Output of the command."""
        return CommandOutput(json=self.json, color=self.color, pager=self.pager is not False)

    @property
    def settings(self) -> Settings:
        """The configuration; raises ConfigError."""
        if self._settings is None:
            from draftsman import basic_settings, settings

            self._digest = basic_settings.digest(self.config)
            self._settings = settings.load(self.config)
            self.uses_fallback_url = self._settings.uses_fallback_url
        return self._settings

    def complete(self, kind: Completed) -> Sequence[tuple[str, str]]:
        """Return the values of a kind that the shell completes, with a description."""
        from draftsman_tui.cli import completions

        return completions.values(
            kind, lambda: self.settings.agent_names, lambda: self.runtime(read_only=True)
        )

    @asynccontextmanager
    async def runtime(
        self, *, read_only: bool = False, pooled: bool = False
    ) -> AsyncIterator[Runtime]:
        """Connect; raises ConfigError, DatabaseUnreachable, SchemaOutdated.

        Its services show what the user may see. `pooled` is for a command that runs until it is
        stopped.
        """
        settings = self.settings if pooled or self._settings else self._basic_settings()
        self.uses_fallback_url = settings.uses_fallback_url
        from draftsman.runtime import open_runtime

        with called_by(os.environ.get(TRACEPARENT_VARIABLE)):
            async with open_runtime(settings, read_only=read_only, pooled=pooled) as runtime:
                self._remember_validation()
                yield runtime.seen_by(await runtime.actor())

    def _basic_settings(self) -> Settings:
        """Return the settings, without their models if the configuration is known to be valid."""
        from draftsman import basic_settings

        settings = basic_settings.read(self.config, lambda: self.settings)
        return self.settings if settings is None else cast("Settings", settings)

    def _remember_validation(self) -> None:
        """Skip the validation of this configuration in later commands."""
        digest = self._digest
        self._digest = None
        if digest is not None and self._settings is not None:
            from draftsman import basic_settings

            people = self._settings.people.items()
            accounts = {name: person.accounts for name, person in people}
            basic_settings.remember(digest, self.config, accounts)


async def number_of(rt: Runtime, ref: JobRef) -> int:
    """Resolve a job reference to its number; raises NotFound, UsageError (ambiguous)."""
    return await rt.read_model.resolve(ref)


class Group(click.Group):
    """A command with subcommands: prints its help without arguments, suggests on a typo."""

    def subcommand(self, name: str, **options: Any) -> Callable[[Function], click.Command]:
        """Turn a function into a command of this group; `options` are those of `command`."""

        def decorate(function: Function) -> click.Command:
            subcommand = command(name, **options)(function)
            self.add_command(subcommand)
            return subcommand

        return decorate

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help if there are no arguments."""
        if not args and not ctx.resilient_parsing:
            CommandOutput().write(ctx.get_help() + "\n")
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands with the whole first sentence of each."""
        listed = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, item.get_short_help_str(1000)) for name, item in listed if item is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; a job is that of `list`, and another name raises an error."""
        names = self.list_commands(ctx)
        if args[0] in names or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from draftsman.ids import job_number
        from draftsman_tui.common.synonyms import near_names

        listing = self.get_command(ctx, "list")
        takes = [] if listing is None else listing.get_params(ctx)
        takes_job = any(isinstance(param, click.Argument) for param in takes)
        if takes_job and job_number(args[0].partition("/")[0]) is not None:
            return super().resolve_command(ctx, ["list", *args])
        if near := near_names(args[0], names, 2):
            hint = f"did you mean {' or '.join(near)}?"
        else:
            hint = f"see: {ctx.command_path} --help"
        raise click.UsageError(f"unknown command {args[0]!r}; {hint}")


class ListGroup(Group):
    """A command with subcommands that runs `list` without a subcommand."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the arguments of the usage line: the subcommand is optional."""
        return ["[OPTIONS]", "[COMMAND] [ARGS]..."]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write which subcommand is the default, after the list of subcommands."""
        formatter.write_paragraph()
        formatter.write_text("Without a command: list.")
        super().format_epilog(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `list` before options."""
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def list_options(entity: Entity[Any]) -> list[click.Parameter]:
    """Return the options of each list: order, conditions on columns, number of rows, schema."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value and not ctx.resilient_parsing:
            entity.select((), datetime.now(UTC), **{str(param.name): value})  # checks it
            _keep(ctx, str(param.name), value)

    def print_schema(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.ensure_object(App).out.document(entity.schema())
            ctx.exit()

    example = entity.columns[0].head.lower()
    options: dict[str, Any] = {"expose_value": False, "callback": keep}
    return [
        click.Option(
            ["--sort"],
            metavar="COLUMN",
            help=f"Sort by a column, such as {example}; -COLUMN: descending.",
            **options,
        ),
        click.Option(
            ["--where"],
            metavar="CONDITION",
            multiple=True,
            help="Only rows with a value in a column: title:refund, or cost>1, age<2h.",
            **options,
        ),
        _flag(
            "--count",
            _sets("counts", True),
            "Print only how many rows match, also beyond a --limit; 10000+ are not counted.",
        ),
        _flag("--json-schema", print_schema, "Print the JSON Schema of the list.", is_eager=True),
    ]


class ListCommand(click.Command):
    """A command that lists an entity; its help says what the columns mean."""

    def __init__(self, *args: Any, entity: Entity[Any], **options: Any) -> None:
        super().__init__(*args, **options)
        self._entity = entity

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the columns before the examples."""
        with formatter.section("Columns"):
            formatter.write_dl([*self._entity.help_lines()])
        super().format_epilog(ctx, formatter)


def command(
    name: str,
    *,
    section: Section | None = None,
    cls: type[click.Command] = click.Command,
    examples: tuple[str, ...] = (),
    long_running: bool = False,
    lists: Entity[Any] | None = None,
    does: tuple[Action[Any, ..., Any], ...] = (),
) -> Callable[[Function], click.Command]:
    """Turn a function that takes the App and its own parameters into a command.

    The help lists it in its section, with the first line of the docstring; a command without a
    section belongs to a group. The help of a command that `lists` an entity has its columns; `does`
    are the actions that it takes, and gives it `--yes` if one is confirmed. The function may be a
    coroutine. Every command accepts `--json` and, in any position, the global options. A
    `long_running` command handles shutdown signals with `shutdown_signals`; other commands keep
    Python's default handling.
    """

    def decorate(function: Function) -> click.Command:
        @functools.wraps(function)
        def run(**params: Any) -> None:
            if long_running:
                SHOWN_ZONE.set(UTC)
            else:
                early_signals.release()
            ctx = click.get_current_context()
            PROCESS_NAME.set(_process_name(ctx.command_path, long_running=long_running))
            result = function(ctx.ensure_object(App), **params)
            if inspect.iscoroutine(result):
                import asyncio

                asyncio.run(result)

        epilog = example_lines(examples)
        if lists is None:
            command = click.command(name, cls, epilog=epilog)(run)
        else:
            command = click.command(name, ListCommand, entity=lists, epilog=epilog)(run)
        ACTIONS_OF[command] = does
        if any(action.is_confirmed for action in does):
            command.params.append(yes_option())
        command.params += shared_options(hidden=True)
        command.params.append(_flag("--json", _sets("json", True), "Output JSON."))
        if lists is not None:
            command.params += list_options(lists)
        _register(command, section)
        return command

    return decorate


def _process_name(command: str, *, long_running: bool) -> str:
    """Return `draftsman worker` for a process, and `draftsman cli questions list` for a command."""
    return command if long_running else command.replace("draftsman", "draftsman cli", 1)


def command_group(
    name: str,
    *,
    section: Section | None = None,
    cls: type[Group] = Group,
    examples: tuple[str, ...] = (),
) -> Callable[[Function], Group]:
    """Turn a function into a group of commands, which `Group.subcommand` adds."""

    def decorate(function: Function) -> Group:
        group = click.group(name, cls=cls, epilog=example_lines(examples))(function)
        _register(group, section)
        return group

    return decorate


def yes_option() -> click.Option:
    """Return the option of a command whose action is confirmed."""
    return click.Option(["-y", "--yes"], is_flag=True, help="Do not ask for confirmation.")


def _register(command: click.Command, section: Section | None) -> None:
    if section is not None:
        REGISTRY[section][str(command.name)] = command


def example_lines(examples: tuple[str, ...]) -> str | None:
    """Format the examples as the epilog of a help page, without rewrapping."""
    if not examples:
        return None
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


def shared_options(*, hidden: bool) -> list[click.Parameter]:
    """Return the global options; `hidden` leaves them out of a command's own help."""
    return [
        click.Option(
            ["--config"],
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Configuration file.",
            hidden=hidden,
            expose_value=False,
            callback=lambda ctx, _, path: _keep(ctx, "config", path) if path else None,
        ),
        _flag("-v/--verbose", _sets("verbose", True), "Show details of unexpected errors.", hidden),
        _flag(
            "--no-color",
            _sets("color", False),
            "Disable colored output (like NO_COLOR=1).",
            hidden,
        ),
        _flag("--utc", _use_utc, "Show times in UTC, and read them in UTC.", hidden),
        _flag("--no-pager", _sets("pager", False), "Print long output without a pager.", hidden),
    ]


def _flag(
    names: str, callback: OptionCallback, help: str, hidden: bool = False, **options: Any
) -> click.Option:
    return click.Option(
        names.split("/"),
        is_flag=True,
        help=help,
        hidden=hidden,
        expose_value=False,
        callback=callback,
        **options,
    )


def _sets(key: str, value: bool) -> OptionCallback:
    """Return the callback of a flag that sets a field; without it, an earlier value is kept."""
    return lambda ctx, _, is_set: _keep(ctx, key, value) if is_set else None


def _use_utc(ctx: click.Context, _: click.Parameter, is_set: bool) -> None:
    if is_set:
        _keep(ctx, "utc", True)
        SHOWN_ZONE.set(UTC)


def _keep(ctx: click.Context, key: str, value: Any) -> None:
    """Store the value of a shared option."""
    setattr(ctx.ensure_object(App), key, value)
