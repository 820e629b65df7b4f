"""Validation of blocks and views, with Slack's error messages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from draftsman_testing.slack.api_errors import ApiError, invalid_arguments
from draftsman_testing.slack.block_rules import (
    BLOCKS,
    BLOCKS_MOST,
    BLOCKS_SIZE,
    CELLS,
    DATA_ROWS,
    ELEMENTS,
    MARKDOWN_MOST,
    PARTS,
    SURFACES,
    TABLE_COLUMNS,
    TABLE_ROWS,
    TABLE_SIZE,
    VIEW_BYTES,
    VIEWS,
)
from draftsman_testing.slack.rule_types import Shape, Spec

FIELD = Spec("text", 2000, of=("plain_text", "mrkdwn"))
"""A field of a section."""
WORDS = Spec("text", 3000, of=("plain_text", "mrkdwn"))
"""A text in a context block."""
Problems = Iterator[str]


def message_blocks(blocks: object) -> list[dict[str, Any]]:
    """Return the blocks of a message; raises ApiError like Slack."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise ApiError("invalid_blocks_format")
    if problems := list(surface("message", blocks)):
        raise invalid_arguments("invalid_blocks", problems)
    limited = [block for block in blocks if block.get("type") != "markdown"]
    if len(json.dumps(limited, ensure_ascii=False, separators=(",", ":"))) > BLOCKS_SIZE:
        raise ApiError("msg_blocks_too_long")
    return blocks


def whole_view(view: object, kinds: tuple[str, ...]) -> dict[str, Any]:
    """Return a view; raises ApiError like Slack."""
    if not isinstance(view, dict):
        raise invalid_arguments(
            "invalid_arguments", ["must provide an object [json-pointer:/view]"]
        )
    if len(json.dumps(view).encode()) > VIEW_BYTES:
        raise ApiError("view_too_large")
    if problems := list(_view(view, kinds)):
        raise invalid_arguments("invalid_arguments", problems)
    return view


def _view(view: dict[str, Any], kinds: tuple[str, ...]) -> Problems:
    kind = view.get("type")
    if kind not in kinds:
        yield _at("must be one of: " + ", ".join(kinds), "/view/type")
        return
    other_fields = {name: value for name, value in view.items() if name != "blocks"}
    yield from _shape(other_fields, VIEWS[str(kind)], "/view")
    blocks = view.get("blocks")
    if not isinstance(blocks, list):
        yield _at("missing required field: blocks", "/view")
        return
    yield from surface(str(kind), blocks, "/view/blocks")
    inputs = any(isinstance(block, dict) and block.get("type") == "input" for block in blocks)
    if kind == "modal" and inputs and "submit" not in view:
        yield _at("`submit` is required when an `input` block is present", "/view")


def surface(kind: str, blocks: list[Any], path: str = "/blocks") -> Problems:
    """Yield the errors of these blocks on this surface."""
    if len(blocks) > BLOCKS_MOST[kind]:
        yield _at(f"no more than {BLOCKS_MOST[kind]} items allowed", path)
    for place, block in enumerate(blocks):
        yield from _typed(block, SURFACES[kind], BLOCKS, f"{path}/{place}")
    yield from _twice(blocks, "block_id", path)
    for place, block in enumerate(blocks):
        if isinstance(block, dict) and isinstance(block.get("elements"), list):
            yield from _twice(block["elements"], "action_id", f"{path}/{place}/elements")
    if sum(isinstance(block, dict) and _is(block, "table") for block in blocks) > 1:
        yield _at("only_one_table_allowed", path)
    markdown = [str(b.get("text")) for b in blocks if isinstance(b, dict) and _is(b, "markdown")]
    if sum(map(len, markdown)) > MARKDOWN_MOST:
        yield _at(f"must be less than {MARKDOWN_MOST + 1} characters", path)


def options(body: object) -> Problems:
    """Yield the errors of a response to `block_suggestion`."""
    body = body if isinstance(body, dict) else {}
    names = [name for name in ("options", "option_groups") if name in body]
    if len(names) != 1:
        yield _at("must define one of `options`, `option_groups`", "/")
        return
    part = "option" if names == ["options"] else "group"
    yield from _value(body[names[0]], Spec("many", 100, least=0, of=(part,)), f"/{names[0]}")


def _is(block: Mapping[str, Any], kind: str) -> bool:
    return block.get("type") == kind


def _typed(
    value: object, allowed: tuple[str, ...], shapes: dict[str, Shape], path: str
) -> Problems:
    if not isinstance(value, dict):
        yield _at("must provide an object", path)
        return
    kind = value.get("type")
    if kind is None:
        yield _at("missing required field: type", path)
    elif kind not in allowed or kind not in shapes:
        yield _at(f"unsupported type: {kind}", f"{path}/type")
    else:
        yield from _shape(value, shapes[str(kind)], path)


def _shape(value: dict[str, Any], shape: Shape, path: str) -> Problems:
    known = shape.fields.keys() | ({"type"} if shape.typed else set())
    for name in sorted(value.keys() - known):
        yield _at(f"invalid additional property: {name}", path)
    for name, spec in shape.fields.items():
        if value.get(name) is not None:
            yield from _value(value[name], spec, f"{path}/{name}")
        elif spec.need:
            yield _at(f"missing required field: {name}", path)
    if shape.any_of and not any(value.get(name) for name in shape.any_of):
        yield _at("must define either " + _either(shape.any_of), path)
    if shape.one_of and sum(value.get(name) is not None for name in shape.one_of) != 1:
        yield _at("must define exactly one of " + _either(shape.one_of), path)
    yield from _initial(value, path)
    kind = value.get("type")
    if shape.typed and kind in CHECKS:
        yield from CHECKS[str(kind)](value, path)


def _number_limits(value: dict[str, Any], path: str) -> Problems:
    numbers = {}
    for name in ("min_value", "initial_value", "max_value"):
        text = value.get(name)
        if text is None:
            continue
        decimals = r"(\.[0-9]+)?" if value.get("is_decimal_allowed") else ""
        if not re.fullmatch(rf"-?[0-9]+{decimals}", str(text)):
            yield _at("must be a valid number", f"{path}/{name}")
        else:
            numbers[name] = float(text)
    if list(numbers.values()) != sorted(numbers.values()):
        yield _at("must be within min_value and max_value", path)


def _text_limits(value: dict[str, Any], path: str) -> Problems:
    least = value.get("min_length") or 0
    most = value.get("max_length") or 3000
    if least > most:
        yield _at("must be less than max_length", f"{path}/min_length")
    if len(str(value.get("initial_value") or "")) > most:
        yield _at(f"must be less than {most + 1} characters", f"{path}/initial_value")


def _table(value: dict[str, Any], path: str) -> Problems:
    is_data = _is(value, "data_table")
    rows = value.get("rows")
    least, most = DATA_ROWS if is_data else TABLE_ROWS
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        yield _at("must be an array of arrays", f"{path}/rows")
        return
    yield from _count(rows, least, most, f"{path}/rows")
    for number, row in enumerate(rows):
        place = f"{path}/rows/{number}"
        yield from _count(row, 1, TABLE_COLUMNS, place)
        if is_data and len(row) != len(rows[0]):
            yield _at("must have as many cells as the first row", place)
        kinds = tuple(kind for kind in CELLS if kind != "rich_text" or number or not is_data)
        for column, cell in enumerate(row):
            yield from _typed(cell, kinds, CELLS, f"{place}/{column}")
    if is_data and _length(rows) > TABLE_SIZE:
        yield _at(f"must be less than {TABLE_SIZE + 1} characters", f"{path}/rows")


def _length(cell: object) -> int:
    """Return the characters of all texts within a cell."""
    if isinstance(cell, list):
        return sum(map(_length, cell))
    if isinstance(cell, dict):
        text = cell.get("text")
        return len(text) if isinstance(text, str) else _length(cell.get("elements"))
    return 0


def _container(value: dict[str, Any], path: str) -> Problems:
    if value.get("is_collapsible") is True and value.get("has_header_divider") is True:
        yield _at("cannot be set when is_collapsible is true", f"{path}/has_header_divider")
    if value.get("default_collapsed") is True and value.get("is_collapsible") is not True:
        yield _at("requires is_collapsible to be true", f"{path}/default_collapsed")


CHECKS: Final[Mapping[str, Callable[[dict[str, Any], str], Problems]]] = {
    "number_input": _number_limits,
    "plain_text_input": _text_limits,
    "table": _table,
    "data_table": _table,
    "container": _container,
}
"""Rules of several fields, by the type of their object."""


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _initial(value: dict[str, Any], path: str) -> Problems:
    offered = list(value.get("options") or [])
    for group in value.get("option_groups") or []:
        offered += group.get("options") or [] if isinstance(group, dict) else []
    options = value.get("initial_options") or [value.get("initial_option")]
    if offered and any(item is not None and item not in offered for item in options):
        yield _at("initial option must exactly match one of the provided options", path)


def _value(value: object, spec: Spec, path: str) -> Problems:
    match spec.kind:
        case "text":
            yield from _text(value, spec, path)
        case "string" | "choice" | "url":
            yield from _string(value, spec, path)
        case "flag" if not isinstance(value, bool):
            yield _at("must be a boolean", path)
        case "number":
            yield from _number(value, spec, path)
        case "strings" if not isinstance(value, list) or {type(v) for v in value} - {str}:
            yield _at("must be an array of strings", path)
        case "strings" if isinstance(value, list):
            yield from _count(value, 0, spec.most, path)
        case "one":
            yield from _part(value, spec.of, path)
        case "block":
            yield from _typed(value, spec.of, BLOCKS, path)
        case "many" | "blocks":
            yield from _many(value, spec, path)
        case _:
            return


def _text(value: object, spec: Spec, path: str) -> Problems:
    if not isinstance(value, dict):
        yield _at("must provide an object", path)
        return
    kind = value.get("type")
    if kind not in spec.of:
        yield _at("must be one of: " + ", ".join(spec.of), f"{path}/type")
        return
    extra = value.keys() - {"type", "text", "emoji" if kind == "plain_text" else "verbatim"}
    for name in sorted(extra):
        yield _at(f"invalid additional property: {name}", path)
    if value.get("text") is None:
        yield _at("missing required field: text", path)
    else:
        yield from _string(value["text"], Spec("string", spec.most, least=1), f"{path}/text")


def _string(value: object, spec: Spec, path: str) -> Problems:
    if not isinstance(value, str):
        yield _at("must be a string", path)
        return
    if len(value) < spec.least and spec.kind != "choice":
        yield _at(f"must be more than {spec.least - 1} characters", path)
    if spec.most is not None and len(value) > spec.most:
        yield _at(f"must be less than {spec.most + 1} characters", path)
    if spec.kind == "choice" and value not in spec.of:
        yield _at("must be one of: " + ", ".join(spec.of), path)
    if spec.kind == "url" and not value.startswith(("http://", "https://", "slack://", "mailto:")):
        yield _at("must be a valid URL", path)


def _number(value: object, spec: Spec, path: str) -> Problems:
    if isinstance(value, bool) or not isinstance(value, int):
        yield _at("must be an integer", path)
    elif value < spec.least or (spec.most is not None and value > spec.most):
        yield _at(f"must be between {spec.least} and {spec.most}", path)


def _many(value: object, spec: Spec, path: str) -> Problems:
    if not isinstance(value, list):
        yield _at("must be an array", path)
        return
    yield from _count(value, spec.least, spec.most, path)
    for place, item in enumerate(value):
        if spec.kind == "blocks":
            yield from _typed(item, spec.of, BLOCKS, f"{path}/{place}")
        else:
            yield from _part(item, spec.of, f"{path}/{place}")


def _count(items: list[Any], least: int, most: int | None, path: str) -> Problems:
    if len(items) < least:
        yield _at(f"no less than {least} items allowed", path)
    if most is not None and len(items) > most:
        yield _at(f"no more than {most} items allowed", path)


def _part(value: object, of: tuple[str, ...], path: str) -> Problems:
    if of == ("field",):
        yield from _text(value, FIELD, path)
    elif "words" in of and isinstance(value, dict) and value.get("type") in WORDS.of:
        yield from _text(value, WORDS, path)
    elif of[0] in PARTS:
        if isinstance(value, dict):
            yield from _shape(value, PARTS[of[0]], path)
        else:
            yield _at("must provide an object", path)
    else:
        yield from _typed(value, of, ELEMENTS, path)


def _twice(items: list[Any], name: str, path: str) -> Problems:
    seen: set[str] = set()
    for place, item in enumerate(items):
        result = item.get(name) if isinstance(item, dict) else None
        if isinstance(result, str) and result in seen:
            yield _at(f"`{name}` already exists", f"{path}/{place}/{name}")
        elif isinstance(result, str):
            seen.add(result)


def _at(problem: str, path: str) -> str:
    return f"{problem} [json-pointer:{path}]"
