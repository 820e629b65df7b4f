"""The modal of a template or a job type, made from the schema of its parameters. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from draftsman.errors import Refused
from draftsman.formats.truncation import utf16_length
from draftsman.job_types.published.description import PublishedType
from draftsman.json_schemas.parameter_schema import ParameterSchema
from draftsman.schedules.template import Template, TemplateDefinition
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import (
    MAX_OPTIONS,
    OPTION_TEXT,
    Block,
    context,
    option,
    plain_text,
)
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.slack.home.modal_views import MAX_INPUT, View, modal

# The parameters as inputs of a form. Pure.
#
# A value that no input of Slack can express is entered as JSON.


_COMPOSED: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if"})
_OPTION_VALUE: Final = re.compile("#[0-9]+")
NOT_SET: Final = "unset"
"""Option of a flag without a value."""


TYPE: Final = "type/"
"""Before the name of a job type."""
VERSION: Final = 12
"""Characters of the version of a description in a name."""


class Input(StrEnum):
    """How the value of a parameter is entered."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CHOICES = "choices"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with its schema, whose local references are replaced."""

    name: str
    block: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def input(self) -> Input:
        """How its value is entered."""
        if are_options(self.choices):
            return Input.CHOICES if self.type == "array" else Input.CHOICE
        if self.type == "boolean":
            return Input.BOOLEAN
        if self.type in ("integer", "number"):
            return Input.NUMBER
        if self.type is None and not _COMPOSED & self.schema.keys():
            is_text = all(isinstance(choice, str) for choice in self.choices)
            return Input.TEXT if is_text else Input.JSON
        return Input.TEXT if self.type == "string" else Input.JSON

    @property
    def type(self) -> str | None:
        """Its only type besides null, `string` if it may be a text, else None."""
        types = self.schema.get("type", [])
        types = [name for name in (types if isinstance(types, list) else [types]) if name != "null"]
        if len(types) == 1:
            return str(types[0])
        return "string" if "string" in types else ("mixed" if types else None)

    @property
    def choices(self) -> list[Any]:
        """The values that the schema lists, for an array those of its items."""
        schema = self.schema
        if self.type == "array" and isinstance(schema.get("items"), dict):
            schema = schema["items"]
        listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
        return listed if isinstance(listed, list) else []

    @property
    def has_default(self) -> bool:
        """Whether the schema has a default."""
        return "default" in self.schema


@dataclass(frozen=True, slots=True)
class FormSubject:
    """What a form runs: a template, or a job type that workers have described."""

    name: str
    """As commands and buttons name it: `bump@3`, `type/report:weekly@1a2b3c4d5e6f`."""
    label: str
    description: str
    inputs: ParameterSchema
    command: str
    """The command that runs it in a terminal."""

    @classmethod
    def of_template(cls, template: Template, definition: TemplateDefinition) -> FormSubject:
        """Return a version of a template."""
        name = f"{template.name}@{template.version}"
        command = f"draftsman templates run {template.name}"
        return cls(name, template.name, definition.description, definition.inputs, command)

    @classmethod
    def of_type(cls, type: PublishedType) -> FormSubject:
        """Return a description of a type."""
        name = f"{TYPE}{type.name}@{type.version[:VERSION]}"
        command = f"draftsman submit --type {type.name}"
        return cls(name, type.name, type.description, type.inputs, command)


def form_parameters(inputs: ParameterSchema) -> Iterator[Parameter]:
    """Yield the parameters in the order of the form: required parameters come first."""
    required = set(inputs.required)
    properties = inputs.properties
    names = list(properties)
    for name in sorted(names, key=lambda name: name not in required):
        block = f"{ids.PARAMETER}:{names.index(name)}"
        yield Parameter(name, block, properties[name], name in required)


def are_options(choices: list[Any]) -> bool:
    """Return whether Slack can offer these values, and show each by a text of its own."""
    labels = {label(choice) for choice in choices}
    return 0 < len(choices) == len(labels) <= MAX_OPTIONS and all(map(_is_label, labels))


def option_value(index: int) -> str:
    """Return the value of the option of a choice, which is short for any choice."""
    return f"#{index}"


def index_of_option(value: str) -> int | None:
    """Return the index of a choice in a value of an option."""
    return int(value[1:]) if _OPTION_VALUE.fullmatch(value) else None


def _is_label(text: str) -> bool:
    return (
        0 < utf16_length(text) <= OPTION_TEXT
        and bool(text.strip())
        and index_of_option(text) is None
    )


def label(value: Any) -> str:
    """Return the text of a choice."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


MAX_VIEW_BLOCKS: Final = 100
MAX_PARAMETERS: Final = MAX_VIEW_BLOCKS - 2
"""Parameters of a form: two blocks are the description and a note."""
MAX_VIEW: Final = 240_000
"""Bytes of a view as JSON; Slack refuses a view above 250,000."""
MULTILINE: Final = 200
"""Maximum length of a text from which its input has several lines."""
MAX_CHECKBOXES: Final = 10
_MAX_LABEL: Final = 150
_MAX_HINT: Final = 300


def parameter_form(
    subject: FormSubject,
    target: str,
    *,
    job: int | None = None,
    values: Mapping[str, Any] | None = None,
) -> View:
    """Return the modal; raises Refused if Slack cannot show all required parameters.

    Parameters beyond the limit have their defaults. A view that is too large has plain inputs.
    `values` are entered instead of the defaults; `job` is the job that had them.
    """
    parameters = [_filled(parameter, values or {}) for parameter in form_parameters(subject.inputs)]
    blocks: list[Block] = []
    if subject.description:
        blocks.append(context(escape_truncated(subject.description, 600)))
    if sum(parameter.required for parameter in parameters) > MAX_PARAMETERS:
        raise Refused(
            f"{subject.label} has more than {MAX_PARAMETERS} required parameters, too many for a"
            f" form; in a terminal: {subject.command}"
        )
    visible = parameters[:MAX_PARAMETERS]
    note = (
        [context(f"{count} more parameters keep their defaults.")]
        if (count := len(parameters) - len(visible))
        else []
    )
    metadata = ids.form_metadata(subject.name, target, job)
    for build in (_block, _plain_block, _empty_block, _bare_block):
        inputs = [build(parameter) for parameter in visible]
        view = modal(
            [*blocks, *inputs, *note],
            callback=ids.TEMPLATE_VIEW,
            title=f"Run {subject.label}",
            submit="Run",
            metadata=metadata,
        )
        if len(json.dumps(view).encode()) <= MAX_VIEW:
            break
    return view


def _filled(parameter: Parameter, values: Mapping[str, Any]) -> Parameter:
    if parameter.name not in values:
        return parameter
    return replace(parameter, schema={**parameter.schema, "default": values[parameter.name]})


def _block(parameter: Parameter) -> Block:
    return _input_block(parameter, _ELEMENTS[parameter.input](parameter))


def _plain_block(parameter: Parameter) -> Block:
    """Return an input without options, which takes a fraction of the space."""
    if parameter.input in (Input.CHOICE, Input.CHOICES):
        return _input_block(parameter, _text_input(parameter, parameter.schema.get("default", "")))
    return _block(parameter)


def _empty_block(parameter: Parameter) -> Block:
    """Return an input without options and default."""
    schema = {key: value for key, value in parameter.schema.items() if key != "default"}
    return _plain_block(Parameter(parameter.name, parameter.block, schema, parameter.required))


def _bare_block(parameter: Parameter) -> Block:
    """Return an input with the name of its parameter, without title and description."""
    block = _empty_block(parameter)
    block["label"] = plain_text(parameter.name, _MAX_LABEL)
    block.pop("hint", None)
    return block


def _input_block(parameter: Parameter, element: Block) -> Block:
    schema = parameter.schema
    title = schema.get("title")
    description = schema.get("description")
    block: Block = {
        "type": "input",
        "block_id": parameter.block,
        "label": plain_text(title if isinstance(title, str) else parameter.name, _MAX_LABEL),
        "element": {"action_id": parameter.block, **element},
        "optional": not parameter.required,
    }
    hints = [description] if isinstance(description, str) else []
    if parameter.input is Input.JSON:
        hints.append("Value as JSON.")
    if parameter.has_default and not _shows_default(element):
        hints.append("If empty, the default is used.")
    if text := " ".join(hints).strip():
        block["hint"] = plain_text(text, _MAX_HINT)
    return block


def _shows_default(element: Block) -> bool:
    return any(name.startswith("initial_") for name in element)


def _text_input(parameter: Parameter, default: Any = None) -> Block:
    schema = parameter.schema
    text = default if isinstance(default, str) else _json_text(default)
    longest = _length(schema, "maxLength")
    shortest = _length(schema, "minLength")
    is_long = (longest or 0) > MULTILINE or schema.get("format") == "multiline"
    limit = max(min(MAX_INPUT if longest is None else longest, MAX_INPUT), 1)
    element: Block = {
        "type": "plain_text_input",
        "multiline": is_long or "\n" in text or parameter.input is Input.JSON,
        "max_length": limit,
    }
    if parameter.input is Input.TEXT and shortest is not None and shortest <= limit:
        element["min_length"] = shortest
    if text and utf16_length(text) <= limit:
        element["initial_value"] = text
    return element


def _json_text(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _length(schema: Mapping[str, Any], name: str) -> int | None:
    """Return a limit of a text; None if there is none."""
    value = _number_of(schema, name)
    return int(value) if value is not None and value >= 0 else None


def _text(parameter: Parameter) -> Block:
    return _text_input(parameter, parameter.schema.get("default"))


def _json(parameter: Parameter) -> Block:
    default = _json_text(parameter.schema.get("default"))
    schema = {key: value for key, value in parameter.schema.items() if key != "maxLength"}
    return _text_input(
        Parameter(parameter.name, parameter.block, schema, parameter.required), default
    )


def _number(parameter: Parameter) -> Block:
    schema = parameter.schema
    is_decimal = parameter.type != "integer"
    limits = {
        "min_value": _number_of(schema, "minimum"),
        "initial_value": _number_of(schema, "default"),
        "max_value": _number_of(schema, "maximum"),
    }
    if not is_decimal:
        limits["min_value"] = _limit(schema, "minimum", "exclusiveMinimum", 1)
        limits["max_value"] = _limit(schema, "maximum", "exclusiveMaximum", -1)
    numbers = {
        name: value if is_decimal else int(value)
        for name, value in limits.items()
        if value is not None and (is_decimal or value == int(value))
    }
    for name in ("initial_value", "min_value"):
        if list(numbers.values()) != sorted(numbers.values()):  # Slack would refuse the whole form
            numbers.pop(name, None)
    element: Block = {"type": "number_input", "is_decimal_allowed": is_decimal}
    texts = {name: format(Decimal(repr(number)), "f") for name, number in numbers.items()}
    return element | texts


def _limit(schema: Mapping[str, Any], name: str, exclusive: str, step: int) -> int | None:
    """Return the limit of an integer."""
    limit = _number_of(schema, name)
    outside = _number_of(schema, exclusive)
    if limit is not None:
        return math.ceil(limit) if step > 0 else math.floor(limit)
    if outside is None:
        return None
    return (math.floor(outside) if step > 0 else math.ceil(outside)) + step


def _number_of(schema: Mapping[str, Any], name: str) -> int | float | None:
    """Return the number of a keyword; None for all other values."""
    value = schema.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else None  # type: ignore[arg-type]


def _boolean(parameter: Parameter) -> Block:
    yes, no = options = [option("Yes", "true"), option("No", "false")]
    default = parameter.schema.get("default")
    initial = None
    if isinstance(default, bool):
        initial = yes if default else no
    elif not parameter.required and not parameter.has_default:
        options.append(initial := option("Not set", NOT_SET))
    element: Block = {"type": "radio_buttons", "options": options}
    return element if initial is None else element | {"initial_option": initial}


def _choice(parameter: Parameter) -> Block:
    options = _options(parameter)
    element: Block = {"type": "static_select", "options": options}
    index = _index_of(parameter.choices, parameter.schema.get("default"))
    if parameter.has_default and index is not None:
        element["initial_option"] = options[index]
    return element


def _choices(parameter: Parameter) -> Block:
    options = _options(parameter)
    kind = "checkboxes" if len(options) <= MAX_CHECKBOXES else "multi_static_select"
    element: Block = {"type": kind, "options": options}
    default = parameter.schema.get("default")
    initial_choices = default if isinstance(default, list) else []
    indexes = [_index_of(parameter.choices, choice) for choice in initial_choices]
    if initial := [options[index] for index in indexes if index is not None]:
        element["initial_options"] = initial
    return element


def _options(parameter: Parameter) -> list[Block]:
    return [option(label(choice), option_value(at)) for at, choice in enumerate(parameter.choices)]


def _index_of(choices: list[Any], choice: Any) -> int | None:
    """Return the index of a choice of the same type."""
    labels = [label(listed) for listed in choices]
    return labels.index(label(choice)) if label(choice) in labels else None


_ELEMENTS: Final[Mapping[Input, Callable[[Parameter], Block]]] = {
    Input.TEXT: _text,
    Input.NUMBER: _number,
    Input.BOOLEAN: _boolean,
    Input.CHOICE: _choice,
    Input.CHOICES: _choices,
    Input.JSON: _json,
}
