"""Options for the parameters of a job type that workers have described."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from draftsman.errors import AmbiguousName, DraftsmanError, UndescribedType, UsageError
from draftsman.json_schemas.parameter_schema import ParameterSchema, placeholder, text_choices
from draftsman_tui.cli.app import App
from draftsman_tui.common.synonyms import near_options
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from draftsman.job_types.published.description import PublishedType
    from draftsman.runtime import Runtime

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(?::[A-Za-z0-9_.-]+)+")
"""A first word that may be a type: it has a colon, and none at its end."""
TIMEOUT: Final = 3.0
"""Seconds after which nothing is completed, and a help has no parameters."""
_WORDS: Final = "draftsman.words"
"""Key of the words of the command line in the context."""


class Words(NamedTuple):
    """The words of a command line that may have options for the parameters of a type."""

    type: str | None
    """The type that they may name; it may not be described."""
    all: tuple[str, ...]
    verbatim: int
    """Number of words after `--`, which are no options."""


class TypedCommand(click.Command):
    """A command with options for the parameters of the type that its words name."""

    ignore_unknown_options = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words for the parameters; unknown options are words of the text at first."""
        options, _, verbatim = _split(args)
        ctx.meta[_WORDS] = Words(_named_type(self, options), tuple(args), len(verbatim))
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the parameters of the type before the other options."""
        type = _read_type(ctx)
        if type is not None:
            with formatter.section(f"Parameters of {type.name}"):
                formatter.write_dl([*_option_rows(type.inputs)] or [("none", "")])
        super().format_options(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete options, those of parameters first."""
        from click.shell_completion import CompletionItem

        own = [
            CompletionItem(option, help=help)
            for option, help in _completed_options(_read_type(ctx))
            if option.startswith(incomplete)
        ]
        return own + super().shell_complete(ctx, incomplete)


def _complete_text(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete a value of a parameter, or a type as the first word."""
    from click.shell_completion import CompletionItem

    words = _words(ctx)
    if words.all and words.all[-1].startswith("--"):
        type = _read_type(ctx)
        schema = {} if type is None else type.inputs.properties.get(_parameter(words.all[-1]), {})
        return [
            CompletionItem(choice)
            for choice in text_choices(schema)
            if choice.startswith(incomplete)
        ]
    if words.type is not None:
        return []
    types = params.JOB_TYPE.shell_complete(ctx, click.Argument(["text"]), incomplete)
    return [item for item in types if NAME.fullmatch(item.value)]


TEXT: Final = params.Parsed("text", params.TEXT.convert, _complete_text)
"""The words of a request."""


async def typed_fields(
    rt: Runtime, ctx: click.Context, text: Sequence[str], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a request whose words may have parameters of a described type.

    `fields` are those of the options. A first word that is no described type remains a part of the
    text. Raises UsageError.
    """
    words = _words(ctx)
    is_option = fields.get("type") is not None
    type = (await rt.published_types.of([words.type])).get(words.type) if words.type else None
    given = dict(fields.get("parameters", ()))
    rest = {name: value for name, value in fields.items() if name not in ("parameters", "text")}
    if type is None or words.type is None:
        option = next(_options(ctx, text), None)
        if words.type is not None and (option or given):
            named = f"{option or f'--param {next(iter(given))}'}:"
            if option and not is_option:
                named = f"no such option {option}, and"
            await _refuse_unpublished(rt, words.type, named)
        refuse_options(ctx, text, fields)
        return {**rest, **({"text": fields["text"]} if "text" in fields else {})}
    if not is_option:
        await _refuse_template(rt, words.type)
    remaining = list(text if is_option else text[1:])
    end = len(remaining) - words.verbatim
    values, plain = _take(ctx, type.inputs, remaining[:end])
    plain += remaining[end:]
    if plain:
        raise UsageError(
            f"{type.name} takes no text, only options: {plain[0][:60]!r} belongs to none; quote a"
            " value with spaces"
        )
    for name in given:
        if name in values:
            raise UsageError(f"the parameter {name} is given twice")
    type.inputs.check_names(given)
    payload = {**fields.get("payload", {}), **type.inputs.parsed({**values, **given})}
    if missing := [name for name in type.inputs.required if name not in payload]:
        options = ", ".join(map(_option, missing))
        raise UsageError(f"{type.name} requires {options}; see: draftsman types {type.name}")
    rest |= {"type": words.type, "payload": payload}
    return rest


async def _refuse_unpublished(rt: Runtime, type: str, named: str) -> None:
    """Raise UsageError if no worker has published the type; the message begins with `named`."""
    try:
        await rt.published_types.get(type)
    except UndescribedType as error:
        start = "to start one that declares it: draftsman worker --app MODULE"
        tail = "" if error.near else f"; {start}; without its parameters: --payload JSON"
        raise UsageError(f"{named} {error.reason}{tail}") from None


async def _refuse_template(rt: Runtime, name: str) -> None:
    """Raise UsageError for a type whose name a template has, too."""
    try:
        await rt.job_forms.find(name)
    except AmbiguousName:
        raise UsageError(
            f"{name} is a template and a job type: write --type {name}, or draftsman templates run"
            f" {name}"
        ) from None


def may_name_type(ctx: click.Context) -> bool:
    """Return whether the words may name a described type."""
    return _words(ctx).type is not None


def refuse_options(ctx: click.Context, text: Sequence[str], fields: Mapping[str, Any]) -> None:
    """Raise click.NoSuchOption for an option that the command does not have.

    Raises UsageError for a parameter among the fields, and for a type that is not the first word.
    """
    if fields.get("parameters"):
        raise UsageError("--param requires a described type; see: draftsman types")
    for option in _options(ctx, text):
        if type := next(filter(NAME.fullmatch, text), None):
            command = f"{ctx.command_path} {type} {option} ..."
            raise UsageError(f"no such option {option}; name a type before its options: {command}")
        raise click.NoSuchOption(option, ctx=ctx)


def _options(ctx: click.Context, text: Sequence[str]) -> Iterator[str]:
    """Yield the options among the words of the text."""
    end = len(text) - _words(ctx).verbatim
    for word in text[:end]:
        if word.startswith("-") and word != "-":
            yield word.partition("=")[0]


def _own_options(ctx: click.Context) -> list[str]:
    """Return the options of a command that its help lists."""
    listed = (param for param in ctx.command.params if not getattr(param, "hidden", False))
    return [name for param in listed for name in param.opts]


def _take(
    ctx: click.Context, inputs: ParameterSchema, words: Iterable[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of the options of parameters, and the other words; raises UsageError."""
    properties = inputs.properties
    values: dict[str, Any] = {}
    plain = []
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("--"):
            if word.startswith("-") and word != "-":
                raise UsageError(f"no such option: {word}")
            plain.append(word)
            continue
        option, equals, text = word.partition("=")
        name = _parameter(option)
        kind = properties.get(name, {}).get("type")
        negated = name.removeprefix("no_")
        value: Any = text
        if name not in properties and properties.get(negated, {}).get("type") == "boolean":
            name, value = negated, False
        elif name not in properties:
            known = [_option(each) for each in properties]
            near = near_options(option, [*known, *_own_options(ctx)], 1)
            tail = (
                f"did you mean {near[0]}?" if near else f"parameters: {', '.join(known) or 'none'}"
            )
            raise UsageError(f"no such option: {option}; {tail}")
        elif not equals and kind == "boolean":
            value = True
        elif not equals and (value := next(remaining, None)) is None:
            raise UsageError(f"{option} requires a value: {placeholder(properties[name])}")
        if kind == "array" and name in values:
            value = [*inputs.parsed(values)[name], *inputs.parsed({name: value})[name]]
        elif name in values:
            raise UsageError(f"the parameter {name} is given twice")
        values[name] = value
    return values, plain


def _option_rows(inputs: ParameterSchema) -> Iterator[tuple[str, str]]:
    for name, line in zip(inputs.properties, inputs.lines(), strict=True):
        yield _option(name), line.removeprefix(f"{name}: ")


def _completed_options(type: PublishedType | None) -> Iterator[tuple[str, str]]:
    if type is not None:
        yield from _option_rows(type.inputs)


def _read_type(ctx: click.Context) -> PublishedType | None:
    """Return the described type that the words name; None where it cannot be read."""
    name = _words(ctx).type
    app = ctx.find_object(App) or App()
    if name is None:
        return None

    async def read() -> PublishedType | None:
        async with asyncio.timeout(TIMEOUT), app.runtime(read_only=True) as rt:
            return (await rt.published_types.of([name])).get(name)

    with suppress(DraftsmanError, OSError, TimeoutError):
        return asyncio.run(read())
    return None


def _words(ctx: click.Context) -> Words:
    words: Words = ctx.meta.get(_WORDS, Words(None, (), 0))
    return words


def _named_type(command: click.Command, options: Sequence[str]) -> str | None:
    """Return the type of `--type`, else the first word after the command's options if it may be."""
    for index, word in enumerate(options):
        if word == "--type":
            return options[index + 1] if index + 1 < len(options) else None
        if word.startswith("--type="):
            return word.partition("=")[2]
    takes_value = {
        name: isinstance(param, click.Option) and not (param.is_flag or param.count)
        for param in command.params
        for name in (*param.opts, *param.secondary_opts)
    }
    words = iter(options)
    for word in words:
        option, equals, _ = word.partition("=")
        if not word.startswith("-"):
            return word if NAME.fullmatch(word) else None
        if option not in takes_value:
            return None
        if takes_value[option] and not equals:
            next(words, None)
    return None


def _split(args: list[str]) -> tuple[list[str], str, list[str]]:
    """Return the words before and after `--`."""
    if "--" not in args:
        return args, "", []
    index = args.index("--")
    return args[:index], "--", args[index + 1 :]


def _parameter(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _option(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"
