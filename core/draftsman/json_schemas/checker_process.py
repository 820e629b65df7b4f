"""Child process that checks JSON Schemas, with limits of CPU and memory.

    request   {"schema": …, "value": …, "probe": false, "cpu": 2}       a line of JSON
    reply     {"why": "at ['a']: 1 is not of type 'string'"}            a line; null: valid

A chain of forty doubled references, `{"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}`,
would take years to evaluate for any value. The kernel kills this process at its CPU limit.
"""

from __future__ import annotations

import json
import math
import resource
import sys
from typing import Any, Final

WIDTH: Final = 300
"""Maximum characters of an explanation."""
PROBES: Final[tuple[Any, ...]] = (None, True, 0, "", [], {})
"""A value of each type, to measure the cost of a schema."""


def main(arguments: list[str]) -> int:
    """Handle requests until the end of the input.

    `arguments` are the import path as JSON and the maximum address space in bytes.
    """
    sys.path[:] = json.loads(arguments[0])
    memory = int(arguments[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from jsonschema import Draft202012Validator  # noqa: F401 - imported before the CPU limit is set

    for line in sys.stdin.buffer:
        try:
            reply = _answer(line)
            last = False
        except MemoryError:
            reply = "the check exceeds its memory limit"
            last = True
        sys.stdout.write(json.dumps({"why": reply}) + "\n")
        sys.stdout.flush()
        if last:
            break  # its memory is not returned to the system
    return 0


def limit_cpu(seconds: float) -> None:
    """Limit the CPU time of this process to the used time plus `seconds`."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(usage.ru_utime + usage.ru_stime + seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _answer(line: bytes) -> str | None:
    request = json.loads(line)
    limit_cpu(request["cpu"])
    try:
        problem = _problem(request["schema"], request["value"], probe=request["probe"])
    except RecursionError:
        problem = "the schema cannot be evaluated: it is recursive, or nested too deeply"
    return None if problem is None else _line(problem)


def _problem(schema: Any, value: Any, *, probe: bool) -> str | None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError, best_match
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"not a valid JSON Schema: {error.message}"
    empty: Registry[Any] = Registry()  # external schemas are neither known nor fetched
    validator = Draft202012Validator(schema, registry=empty)
    try:
        if probe:
            for probe_value in PROBES:
                validator.is_valid(probe_value)
            return None
        mismatch = best_match(validator.iter_errors(value))
    except Unresolvable as error:
        return f"the schema cannot be resolved: {error}"
    if mismatch is None:
        return None
    path = "".join(f"[{part!r}]" for part in mismatch.absolute_path)
    return f"at {path}: {mismatch.message}" if path else str(mismatch.message)


def _line(text: str) -> str:
    plain = " ".join(text[: 20 * WIDTH].split())
    return plain if len(plain) <= WIDTH else plain[: WIDTH - 1] + "…"
