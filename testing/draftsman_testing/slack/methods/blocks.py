"""blocks.validate, as docs.slack.dev/reference/methods/blocks.validate describes it.

It takes exactly one of `blocks`, `message` and `view`, needs no scope, and names each problem with
a JSON pointer into that argument. Slack has more codes of problems than the fake, and describes the
constraint of each; the fake does so for types and choices.
"""

from __future__ import annotations

import re
from typing import Any, Final

from draftsman_testing.slack.api_errors import ApiError, invalid_arguments
from draftsman_testing.slack.block_validation import surface, whole_view
from draftsman_testing.slack.methods.registry import Args, method
from draftsman_testing.slack.world import Json, World

KINDS = ("blocks", "message", "view")
POINTERS: Final = {"blocks": "/blocks", "message": "", "view": "/view"}
"""The beginning of a pointer that the argument itself stands for."""
_PROBLEM = re.compile(r"(?:\[ERROR\] )?(.*?)(?: \[json-pointer:(.*)\])?")


@method("blocks.validate")
def validate(world: World, args: Args) -> Json:
    given = [name for name in KINDS if args.get(name) is not None]
    if len(given) != 1:
        raise invalid_arguments("invalid_arguments", [f"exactly one of {', '.join(KINDS)}"])
    (name,) = given
    value = args.json(name, "invalid_arguments")
    if problems := _problems(name, value):
        errors = [_error(problem, POINTERS[name], value) for problem in problems]
        raise ApiError(f"invalid_{name}", errors=errors)
    return {}


def _problems(name: str, value: Any) -> list[str]:
    if name == "view":
        try:
            whole_view(value, ("modal", "home"))
        except ApiError as error:
            return list(error.more.get("response_metadata", {}).get("messages", [error.error]))
        return []
    if name == "message" and isinstance(value, dict) and value.get("text"):
        value = {"blocks": []} | value
    blocks = value.get("blocks") if name == "message" and isinstance(value, dict) else value
    if not isinstance(blocks, list):
        return ["must provide an array [json-pointer:/blocks]"]
    return list(surface("message", blocks))


def _error(problem: str, prefix: str, value: Any) -> Json:
    match = _PROBLEM.fullmatch(problem)
    message, pointer = match.groups() if match else (problem, None)
    pointer = (pointer or "").removeprefix(prefix)
    error: Json = {"pointer": pointer, "code": "failed_constraint", "message": message}
    _, is_choice, expected = message.partition("must be one of: ")
    if is_choice:
        got = _at(value, pointer)
        error["constraint"] = {"type": "enum", "expected": expected.split(", "), "got": got}
    return error


def _at(value: Any, pointer: str) -> Any:
    """Return what a pointer names; None if there is nothing."""
    for name in pointer.split("/")[1:]:
        value = value[int(name)] if isinstance(value, list) else value.get(name)
    return value
