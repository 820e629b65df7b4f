"""blocks.validate, as docs.slack.dev/reference/methods/blocks.validate describes it.

It takes exactly one of `blocks`, `message` and `view`, needs no scope, and names each problem with
a JSON pointer. Slack has more codes of problems than the fake.
"""

from __future__ import annotations

import re
from typing import Any

from draftsman_testing.slack.api_errors import ApiError, invalid_arguments
from draftsman_testing.slack.block_validation import surface, whole_view
from draftsman_testing.slack.methods.registry import Args, method
from draftsman_testing.slack.world import Json, World

KINDS = ("blocks", "message", "view")
_PROBLEM = re.compile(r"(?:\[ERROR\] )?(.*?)(?: \[json-pointer:(.*)\])?")


@method("blocks.validate")
def validate(world: World, args: Args) -> Json:
    given = [name for name in KINDS if args.get(name) is not None]
    if len(given) != 1:
        raise invalid_arguments("invalid_arguments", [f"exactly one of {', '.join(KINDS)}"])
    (name,) = given
    if problems := _problems(name, args.json(name, "invalid_arguments")):
        raise ApiError(f"invalid_{name}", errors=[_error(problem) for problem in problems])
    return {}


def _problems(name: str, value: Any) -> list[str]:
    if name == "view":
        try:
            whole_view(value, ("modal", "home"))
        except ApiError as error:
            return list(error.more.get("response_metadata", {}).get("messages", [error.error]))
        return []
    blocks = value.get("blocks") if name == "message" and isinstance(value, dict) else value
    if not isinstance(blocks, list):
        return ["must provide an array [json-pointer:/blocks]"]
    return list(surface("message", blocks))


def _error(problem: str) -> Json:
    match = _PROBLEM.fullmatch(problem)
    message, pointer = match.groups() if match else (problem, None)
    return {"pointer": pointer or "", "code": "failed_constraint", "message": message}
