"""The modal of a template or a job type, made from the schema of its parameters. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from draftsman.errors import Refused
from draftsman.formats.truncation import utf16_length
from draftsman.json_schemas.form_fields import (
    NOT_SET,
    FormField,
    Input,
    choice_label,
    form_fields,
    number_of,
    option_value,
)
from draftsman.schedules.job_form import JobForm
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

MAX_VIEW_BLOCKS: Final = 100
MAX_PARAMETERS: Final = MAX_VIEW_BLOCKS - 2
"""Parameters of a form: two blocks are the description and a note."""
MAX_VIEW: Final = 240_000
"""Bytes of a view as JSON; Slack refuses a view above 250,000."""
MAX_CHECKBOXES: Final = 10
_MAX_LABEL: Final = 150
_MAX_HINT: Final = 300


def parameter_form(
    form: JobForm,
    target: str,
    *,
    job: int | None = None,
    values: Mapping[str, Any] | None = None,
) -> View:
    """Return the modal; raises Refused if Slack cannot show all required parameters.

    Parameters beyond the limit have their defaults. A view that is too large has plain inputs.
    `values` are entered instead of the defaults; `job` is the job that had them.
    """
    parameters = [_filled(each, values or {}) for each in form_fields(form.inputs, can_list)]
    blocks: list[Block] = []
    if form.description:
        blocks.append(context(escape_truncated(form.description, 600)))
    if sum(parameter.required for parameter in parameters) > MAX_PARAMETERS:
        raise Refused(
            f"{form.label} has more than {MAX_PARAMETERS} required parameters, too many for a"
            f" form; in a terminal: {form.command}"
        )
    visible = parameters[:MAX_PARAMETERS]
    note = (
        [context(f"{count} more parameters keep their defaults.")]
        if (count := len(parameters) - len(visible))
        else []
    )
    metadata = ids.form_metadata(form.version, target, job)
    for build in (_block, _plain_block, _empty_block, _bare_block):
        inputs = [build(parameter) for parameter in visible]
        view = modal(
            [*blocks, *inputs, *note],
            callback=ids.TEMPLATE_VIEW,
            title=f"Run {form.label}",
            submit="Run",
            metadata=metadata,
        )
        if len(json.dumps(view).encode()) <= MAX_VIEW:
            break
    return view


def _filled(parameter: FormField, values: Mapping[str, Any]) -> FormField:
    if parameter.name not in values:
        return parameter
    return replace(parameter, schema={**parameter.schema, "default": values[parameter.name]})


def _block(parameter: FormField) -> Block:
    return _input_block(parameter, _ELEMENTS[parameter.input](parameter))


def _plain_block(parameter: FormField) -> Block:
    """Return an input without options, which takes a fraction of the space."""
    if parameter.input in (Input.CHOICE, Input.CHOICES):
        return _input_block(parameter, _text_input(parameter, parameter.schema.get("default", "")))
    return _block(parameter)


def _empty_block(parameter: FormField) -> Block:
    """Return an input without options and default."""
    schema = {key: value for key, value in parameter.schema.items() if key != "default"}
    return _plain_block(replace(parameter, schema=schema))


def _bare_block(parameter: FormField) -> Block:
    """Return an input with the name of its parameter, without title and description."""
    block = _empty_block(parameter)
    block["label"] = plain_text(parameter.name, _MAX_LABEL)
    block.pop("hint", None)
    return block


def _input_block(parameter: FormField, element: Block) -> Block:
    block: Block = {
        "type": "input",
        "block_id": parameter.id,
        "label": plain_text(parameter.label, _MAX_LABEL),
        "element": {"action_id": parameter.id, **element},
        "optional": not parameter.required,
    }
    hints = [parameter.hint] if parameter.hint else []
    if parameter.input is Input.JSON:
        hints.append("Value as JSON.")
    if parameter.has_default and not _shows_default(element):
        hints.append("If empty, the default is used.")
    if text := " ".join(hints).strip():
        block["hint"] = plain_text(text, _MAX_HINT)
    return block


def _shows_default(element: Block) -> bool:
    return any(name.startswith("initial_") for name in element)


def _text_input(parameter: FormField, default: Any = None) -> Block:
    schema = parameter.schema
    text = default if isinstance(default, str) else _json_text(default)
    longest = _length(schema, "maxLength")
    shortest = _length(schema, "minLength")
    limit = max(min(MAX_INPUT if longest is None else longest, MAX_INPUT), 1)
    element: Block = {
        "type": "plain_text_input",
        "multiline": parameter.is_long or "\n" in text or parameter.input is Input.JSON,
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
    value = number_of(schema, name)
    return int(value) if value is not None and value >= 0 else None


def _text(parameter: FormField) -> Block:
    return _text_input(parameter, parameter.schema.get("default"))


def _json(parameter: FormField) -> Block:
    default = _json_text(parameter.schema.get("default"))
    schema = {key: value for key, value in parameter.schema.items() if key != "maxLength"}
    return _text_input(replace(parameter, schema=schema), default)


def _number(parameter: FormField) -> Block:
    schema = parameter.schema
    is_decimal = parameter.type != "integer"
    limits = {
        "min_value": number_of(schema, "minimum"),
        "initial_value": number_of(schema, "default"),
        "max_value": number_of(schema, "maximum"),
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
    limit = number_of(schema, name)
    outside = number_of(schema, exclusive)
    if limit is not None:
        return math.ceil(limit) if step > 0 else math.floor(limit)
    if outside is None:
        return None
    return (math.floor(outside) if step > 0 else math.ceil(outside)) + step


def _boolean(parameter: FormField) -> Block:
    yes, no = options = [option("Yes", "true"), option("No", "false")]
    default = parameter.schema.get("default")
    initial = None
    if isinstance(default, bool):
        initial = yes if default else no
    elif not parameter.required and not parameter.has_default:
        options.append(initial := option("Not set", NOT_SET))
    element: Block = {"type": "radio_buttons", "options": options}
    return element if initial is None else element | {"initial_option": initial}


def _choice(parameter: FormField) -> Block:
    options = _options(parameter)
    element: Block = {"type": "static_select", "options": options}
    index = _index_of(parameter.choices, parameter.schema.get("default"))
    if parameter.has_default and index is not None:
        element["initial_option"] = options[index]
    return element


def _choices(parameter: FormField) -> Block:
    options = _options(parameter)
    kind = "checkboxes" if len(options) <= MAX_CHECKBOXES else "multi_static_select"
    element: Block = {"type": kind, "options": options}
    default = parameter.schema.get("default")
    initial_choices = default if isinstance(default, list) else []
    indexes = [_index_of(parameter.choices, choice) for choice in initial_choices]
    if initial := [options[index] for index in indexes if index is not None]:
        element["initial_options"] = initial
    return element


def _options(parameter: FormField) -> list[Block]:
    return [
        option(choice_label(choice), option_value(at))
        for at, choice in enumerate(parameter.choices)
    ]


def _index_of(choices: list[Any], choice: Any) -> int | None:
    """Return the index of a choice of the same type."""
    labels = list(map(choice_label, choices))
    return labels.index(choice_label(choice)) if choice_label(choice) in labels else None


def can_list(labels: list[str]) -> bool:
    """Return whether Slack can offer choices with these labels."""
    return len(labels) <= MAX_OPTIONS and all(
        utf16_length(label) <= OPTION_TEXT for label in labels
    )


_ELEMENTS: Final[Mapping[Input, Callable[[FormField], Block]]] = {
    Input.TEXT: _text,
    Input.NUMBER: _number,
    Input.BOOLEAN: _boolean,
    Input.CHOICE: _choice,
    Input.CHOICES: _choices,
    Input.JSON: _json,
}
