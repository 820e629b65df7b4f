"""The `templates` command group: versioned definitions of jobs."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.actions import schedules as actions
from draftsman.entities.schedules import TEMPLATES, template_data
from draftsman.errors import NotFound, UsageError
from draftsman.formats import times
from draftsman.formats.json_data import as_data
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.cli.lists import list_rows
from draftsman_tui.cli.perform import act, perform
from draftsman_tui.cli.requests.request_options import request_fields, request_options
from draftsman_tui.cli.requests.submit import print_next_step, wait_for
from draftsman_tui.common.requests import options_named
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.schedules.template import Template, TemplateDefinition


TYPES: Final = ("string", "integer", "number", "boolean")


def schema_of(parameters: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of parameters such as `days:integer=7`; raises UsageError."""
    properties: dict[str, Any] = {}
    required = []
    for text in parameters:
        declared, equals, default = text.partition("=")
        name, colon, kind = declared.partition(":")
        schema: dict[str, Any] = {"type": "string"}
        if "|" in kind:
            schema["enum"] = [choice for choice in kind.split("|") if choice]
        elif colon and kind not in TYPES:
            raise UsageError(
                f"--parameter {text[:80]!r}: unknown type {kind!r}; allowed: {', '.join(TYPES)},"
                " or values as a|b"
            )
        elif colon:
            schema["type"] = kind
        if equals:
            schema["default"] = _default(default, schema, text)
        else:
            required.append(name)
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required}


def template_file(path: str) -> dict[str, Any]:
    """Read the fields of a template from a TOML file, or from stdin for `-`; raises UsageError."""
    text = params.read_text(Path(path))
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: invalid TOML: {error}") from None


def _default(text: str, schema: dict[str, Any], option: str) -> Any:
    if schema["type"] == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise UsageError(
            f"--parameter {option[:80]!r}: the default is not a valid {schema['type']}"
        ) from None


@command_group(
    "templates",
    section="Recurring",
    cls=ListGroup,
    examples=(
        "draftsman templates add bump --agent coder --parameter package 'Update {package}'",
        "draftsman templates run bump --param package=httpx",
        "draftsman templates",
    ),
)
def templates() -> None:
    """Manage and run templates of jobs.

    A template has the fields of a request, with parameters in braces. Each change is a new version;
    a job keeps the version that it was made from. NAME@3 is version 3.
    """


definition_options = params.together(
    click.option("--description", type=params.TEXT, help="Purpose of the template."),
    click.option(
        "--parameter",
        type=params.TEXT,
        multiple=True,
        metavar="NAME[:TYPE][=DEFAULT]",
        help="Parameter; TYPE is string, integer, number, boolean or values as a|b.",
    ),
    click.option(
        "--schema",
        type=params.json_param("--schema"),
        help="JSON Schema of the parameters, @FILE, or @- for stdin.",
    ),
    click.option("--file", type=params.TEXT, help="TOML file with the fields; - for stdin."),
)
"""Adds the options of a definition to a command."""


@templates.subcommand(
    "add",
    examples=(
        "draftsman templates add tidy --agent tidy --repo . 'Tidy up'",
        "draftsman templates add bump --parameter package 'Update {package}'",
        "draftsman templates add rate --parameter 'level:low|high=low' 'Rate the {level} risks'",
        "draftsman templates add weekly --file weekly.toml",
    ),
    does=(actions.add_template,),
)
@click.argument("name", type=params.TEXT)
@click.argument("text", nargs=-1, type=params.TEXT)
@definition_options
@request_options
async def add(app: App, name: str, text: tuple[str, ...], **options: Any) -> None:
    """Add a template.

    TEXT is the instructions for the agent; - reads them from stdin. {package} in a text stands for
    the value of the parameter package; {{package}} for these characters themselves.
    """
    definition = _definition({}, text, options)
    await perform(app, actions.add_template, name, definition=definition)
    _print_hint(app, name)


@templates.subcommand(
    "edit",
    examples=(
        "draftsman templates edit bump",
        "draftsman templates edit bump --priority 5",
        "draftsman templates edit bump --file bump.toml",
    ),
    does=(actions.edit_template,),
)
@click.argument("name", type=params.TEXT)
@click.argument("text", nargs=-1, type=params.TEXT)
@definition_options
@request_options
async def edit(app: App, name: str, text: tuple[str, ...], **options: Any) -> None:
    """Store a new version of a template.

    Given fields replace those of the newest version; --file replaces all. Without any, the
    definition is opened in $EDITOR.
    """
    is_given = bool(text) or any(value not in (None, (), "") for value in options.values())
    if not is_given and not app.out.interactive:
        raise UsageError("templates edit needs a terminal, --file, or fields; see --help")
    async with app.runtime() as rt:
        base = await rt.templates.get(name)
        if base.version != (await rt.templates.versions(base.name))[0].version:
            raise UsageError(f"{name}: only the newest version can be edited; leave out the @")
        data = base.definition.as_data() if base.definition else {}
        definition = _definition(data, text, options) if is_given else _edited(data)
        await act(app, rt, actions.edit_template, base.name, base=base, definition=definition)
    _print_hint(app, base.name)


templates.subcommand(
    "list",
    examples=("draftsman templates list", "draftsman templates list --json"),
    lists=TEMPLATES,
)(list_rows(TEMPLATES))


@templates.subcommand(
    "show", examples=("draftsman templates show bump", "draftsman templates show bump@2")
)
@click.argument("name", type=params.TEXT)
async def show(app: App, name: str) -> None:
    """Show a template, its parameters and its versions."""
    async with app.runtime(read_only=True) as rt:
        template = await rt.templates.get(name)
        inputs = await rt.templates.inputs(template)
        versions = await rt.templates.versions(template.name)
    if app.json:
        numbers = [template_data(version) for version in versions]
        app.out.document(template_data(template) | {"versions": numbers})
        return
    definition = template.definition
    assert definition is not None  # noqa: S101 - get() returns no removed version
    app.out.print(
        line(
            styled(f"{template.name}@{template.version}", "bold"),
            f"  {definition.description}",
        ),
        f"by {template.created_by}, {times.ago(template.created_at)}",
    )
    if inputs.properties:
        app.out.print("", styled("Parameters", "bold underline"))
        app.out.print(*(f"  {text}" for text in inputs.lines()))
    app.out.print("", styled("Request", "bold underline"))
    for field, value in definition.request_fields.items():
        text = value if isinstance(value, str) else json.dumps(as_data(value), ensure_ascii=False)
        first, *further = text.splitlines() or [""]
        first_line = line(styled(f"  {field}  ", "dim"), first)
        app.out.print(first_line, *(f"    {text_line}" for text_line in further))
    if len(versions) > 1:
        app.out.print("", styled("Versions", "bold underline"))
        app.out.print(
            *(
                f"  {version.version}  {times.ago(version.created_at)} by {version.created_by}"
                + ("" if version.definition else " (removed)")
                for version in versions
            )
        )


@templates.subcommand(
    "diff", examples=("draftsman templates diff bump", "draftsman templates diff bump 1 3")
)
@click.argument("name", type=params.TEXT)
@click.argument("old", type=params.COUNT, required=False)
@click.argument("new", type=params.COUNT, required=False)
async def diff(app: App, name: str, old: int | None, new: int | None) -> None:
    """Show the changes between two versions of a template.

    Default: the changes of the newest version. Exits with 0 whether or not there are changes.
    """
    async with app.runtime(read_only=True) as rt:
        versions = {version.version: version for version in await rt.templates.versions(name)}
    latest = new or max(versions)
    before = old or max(latest - 1, 1)
    after = latest
    for number in (before, after):
        if number not in versions:
            raise NotFound(f"template {name} has no version {number}; newest: {max(versions)}")
    old_lines = _json_lines(versions[before])
    new_lines = _json_lines(versions[after])
    changes = list(
        difflib.unified_diff(
            old_lines,
            new_lines,
            fromfile=f"{name}@{before}",
            tofile=f"{name}@{after}",
            lineterm="",
        )
    )
    if app.json:
        app.out.document({"name": name, "old": before, "new": after, "diff": changes})
    elif not changes:
        app.out.info(f"no changes between version {before} and {after}")
    else:
        styles = {"+": "green", "-": "red", "@": "cyan"}
        app.out.print(*(styled(text, styles.get(text[:1], "")) for text in changes))


@templates.subcommand(
    "remove", examples=("draftsman templates remove bump",), does=(actions.remove_template,)
)
@click.argument("name", type=params.TEXT)
async def remove(app: App, name: str, yes: bool) -> None:
    """Remove a template.

    Its versions are kept for the jobs that were made from them; a template of the same name
    continues with the next version.
    """
    await perform(app, actions.remove_template, name, yes=yes)


@templates.subcommand(
    "run",
    examples=(
        "draftsman templates run bump --param package=httpx",
        "draftsman templates run bump@2 --params @bump.json --wait",
    ),
    does=(actions.run_template,),
)
@click.argument("name", type=params.TEXT)
@click.option(
    "--param", type=params.TEXT_PAIR, multiple=True, help="Parameter as key=value; repeatable."
)
@click.option("--params", type=params.json_param("--params"), help="Parameters: JSON or @FILE.")
@click.option("--key", type=params.TEXT, help="Idempotency key; the same key creates no new job.")
@click.option("--queue", type=params.TEXT, help="Default: that of the template.")
@click.option("--priority", type=params.PRIORITY, help="Default: that of the template.")
@click.option("--at", type=params.INSTANT, help="Start time, e.g. 2030-12-31T18:00.")
@click.option("--in", "delay", type=params.DURATION, help="Delay before the start, e.g. 10m.")
@click.option("--unchecked", is_flag=True, help="Skip the checks of chats and models.")
@click.option("--wait", is_flag=True, help="Show events until the job finishes.")
@click.option("--timeout", type=params.DURATION, help="Stop waiting after this time.")
async def run(
    app: App,
    name: str,
    param: tuple[tuple[str, str], ...],
    unchecked: bool,
    wait: bool,
    timeout: float | None,
    **options: Any,
) -> None:
    """Submit a job from a template.

    On a terminal, required parameters that are missing are asked for. Exit codes are those of
    draftsman submit.
    """
    if timeout is not None and not wait:
        raise UsageError("--timeout requires --wait")
    if options["at"] is not None and options["delay"] is not None:
        raise UsageError("--at and --in cannot be combined")
    parameters: dict[str, Any] = dict(options.pop("params") or {}) | dict(param)
    fields = {"run_at": options.pop("at"), **options}
    async with app.runtime() as rt:
        if app.out.interactive:
            parameters |= await _ask_missing(rt, name, parameters)
        with options_named():
            given = {key: value for key, value in fields.items() if value is not None}
            result = await act(
                app,
                rt,
                actions.run_template,
                name,
                parameters=parameters,
                fields=given,
                unchecked=unchecked,
                prints=not wait,
            )
        if wait:
            await wait_for(app, rt, result, timeout)
        else:
            await print_next_step(app, rt, result)


async def _ask_missing(rt: Runtime, name: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Ask for the required parameters that were not given."""
    inputs = await rt.templates.inputs(await rt.templates.get(name))
    answers = {}
    for parameter in inputs.required:
        if parameter not in given:
            schema = inputs.properties.get(parameter, {})
            choices = schema.get("enum", ())
            texts = choices if all(isinstance(choice, str) for choice in choices) else ()
            question = f"{parameter} ({schema['description']})" if "description" in schema else ""
            answers[parameter] = prompts.prompt(question or parameter, choices=texts)
    return answers


def _definition(
    base: Mapping[str, Any], text: tuple[str, ...], options: dict[str, Any]
) -> TemplateDefinition:
    """Return the definition: the file or the base, with the given fields."""
    from draftsman.schedules.template import define

    file = options.pop("file")
    schema = options.pop("schema")
    parameters = options.pop("parameter")
    fields = dict(template_file(file) if file else base) | request_fields(text, options)
    if schema is not None and parameters:
        raise UsageError("--schema and --parameter cannot be combined")
    if schema is not None or parameters:
        fields["parameters"] = schema if schema is not None else schema_of(parameters)
    return define(fields)


def _edited(data: dict[str, Any]) -> TemplateDefinition:
    """Return the definition that the person wrote in an editor."""
    from draftsman.schedules.template import define

    text = click.edit(json.dumps(data, indent=2, ensure_ascii=False) + "\n", extension=".json")
    if text is None:
        return define(data)
    return define(params.json_object(text, "the edited template"))


def _print_hint(app: App, name: str) -> None:
    if app.out.on_screen and not app.json:
        app.out.info(f"to submit a job: draftsman templates run {name}")


def _json_lines(template: Template) -> list[str]:
    data = template.definition.as_data() if template.definition else {}
    return [*_lines(data, "")] if data else []


def _lines(value: Any, indent: str) -> Iterator[str]:
    """Yield indented JSON; a text of several lines has a line for each."""
    for key, item in sorted(value.items()):
        if isinstance(item, dict) and item:
            yield f"{indent}{key}:"
            yield from _lines(item, indent + "  ")
        elif isinstance(item, str) and "\n" in item:
            yield f"{indent}{key}:"
            yield from (f"{indent}  {text}" for text in item.splitlines())
        else:
            yield f"{indent}{key}: {json.dumps(item, ensure_ascii=False)}"
