"""The child process that checks one JSON Schema after another, under limits of CPU and memory.

    request   {"schema": …, "value": …, "probe": false, "cpu": 2}       one line of JSON
    reply     {"why": "at ['a']: 1 is not of type 'string'"}            one line; null: it fits

References that double each other, `{"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}` in a
chain of forty, take years, whatever the value is. The kernel ends this process then.
"""

from __future__ import annotations

import json
import math
import resource
import sys
from typing import Any, Final

WIDTH: Final = 300
"""Characters of an explanation at most."""
PROBES: Final[tuple[Any, ...]] = (None, True, 0, "", [], {})
"""One value of each type: what a schema costs that applies to all of them shows here."""


def main(arguments: list[str]) -> int:
    """Answer requests until the input ends.

    `arguments` are the import path, as JSON, and the bytes of address space at most.
    """
    sys.path[:] = json.loads(arguments[0])
    memory = int(arguments[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from jsonschema import Draft202012Validator  # noqa: F401 - imported before the clock runs

    for line in sys.stdin.buffer:
        try:
            reply, last = _answer(line), False
        except MemoryError:
            reply, last = "the check needs more memory than it may have", True
        sys.stdout.write(json.dumps({"why": reply}) + "\n")
        sys.stdout.flush()
        if last:
            break  # what it holds is not given back to the system
    return 0


def limit_cpu(seconds: float) -> None:
    """Let this process use so many more seconds of CPU."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(used.ru_utime + used.ru_stime + seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _answer(line: bytes) -> str | None:
    request = json.loads(line)
    limit_cpu(request["cpu"])
    try:
        why = _problem(request["schema"], request["value"], probe=request["probe"])
    except RecursionError:
        why = "the schema cannot be followed: it refers to itself, or is nested too deeply"
    return None if why is None else _line(why)


def _problem(schema: Any, value: Any, *, probe: bool) -> str | None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError, best_match
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"it is no JSON Schema: {error.message}"
    nothing_else: Registry[Any] = Registry()  # knows no other schema, and fetches none
    validator = Draft202012Validator(schema, registry=nothing_else)
    try:
        if probe:
            for each in PROBES:
                validator.is_valid(each)
            return None
        found = best_match(validator.iter_errors(value))
    except Unresolvable as error:
        return f"the schema cannot be followed: {error}"
    if found is None:
        return None
    where = "".join(f"[{part!r}]" for part in found.absolute_path)
    return f"at {where}: {found.message}" if where else str(found.message)


def _line(text: str) -> str:
    plain = " ".join(text[: 20 * WIDTH].split())
    return plain if len(plain) <= WIDTH else plain[: WIDTH - 1] + "…"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
