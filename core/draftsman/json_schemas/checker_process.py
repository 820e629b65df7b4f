"""Child process that checks JSON Schemas, with limits of CPU and memory.

    request   {"schema": …, "value": …, "probe": false, "cpu": 2}       a line of JSON
    reply     {"mismatches": [[["a"], "must be text, not 1"]]}          each with its path

A chain of forty doubled references, `{"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}`,
would take years to evaluate for any value. The kernel kills this process at its CPU limit.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import resource
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from draftsman.formats import value_problems

if TYPE_CHECKING:
    from jsonschema import ValidationError

Mismatch = tuple[list[str], str]
"""The path of a value, and its problem."""

WIDTH: Final = 300
"""Maximum characters of an explanation."""
MAX_MISMATCHES: Final = 50
_KEYS: Final = ("required", "dependentRequired", "additionalProperties")
"""Keywords that refuse single keys of an object."""
_KINDS: Final = ("type", "enum", "const")
"""Keywords that decide whether an alternative is for a value at all."""
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
            reply = [([], "the check exceeds its memory limit")]
            last = True
        sys.stdout.write(json.dumps({"mismatches": reply}) + "\n")
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


def _answer(line: bytes) -> list[Mismatch]:
    request = json.loads(line)
    limit_cpu(request["cpu"])
    try:
        found = _mismatches(request["schema"], request["value"], probe=request["probe"])
    except RecursionError:
        return [([], "the schema cannot be evaluated: it is recursive, or nested too deeply")]
    return [(path, _line(problem)) for path, problem in found]


def _mismatches(schema: Any, value: Any, *, probe: bool) -> list[Mismatch]:
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return [([], f"not a valid JSON Schema: {error.message}")]
    empty: Registry[Any] = Registry()  # external schemas are neither known nor fetched
    formats = FormatChecker(value_problems.FORMATS)
    validator = Draft202012Validator(schema, registry=empty, format_checker=formats)
    try:
        if probe:
            for probe_value in PROBES:
                validator.is_valid(probe_value)
            return []
        errors = itertools.islice(validator.iter_errors(value), MAX_MISMATCHES)
        found = [mismatch for error in errors for mismatch in _of_error(error)]
    except Unresolvable as error:
        return [([], f"the schema cannot be resolved: {error}")]
    each = {(*path, problem): (path, problem) for path, problem in found}
    return sorted(each.values(), key=lambda mismatch: len(mismatch[0]))[:MAX_MISMATCHES]


def _of_error(error: ValidationError) -> Iterator[Mismatch]:
    """Yield what a keyword refuses; a key that is missing or unknown has a path of its own."""
    path = [str(part) for part in error.absolute_path]
    if error.validator is None:
        yield path, "has a value that is not allowed"  # the schema is false
    elif error.schema.get("format") == value_problems.FORMAT_OF_NAMES:
        yield path, value_problems.NOT_A_VALUE
    elif error.validator in _KEYS:
        yield from (([*path, key], problem) for key, problem in _of_keys(error))
    elif error.validator in ("anyOf", "oneOf") and error.context:
        yield from _of_alternatives(error, path)
    else:
        keyword = str(error.validator)
        yield path, value_problems.keyword_problem(keyword, error.validator_value, error.instance)


def _of_keys(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yield the keys of an object that are missing or unknown, each with its problem."""
    match error.validator:
        case "required":
            required = dict.fromkeys(error.validator_value, value_problems.IS_REQUIRED)
        case "dependentRequired":
            required = {
                name: f"{value_problems.IS_REQUIRED} with {given}"
                for given, names in error.validator_value.items()
                if given in error.instance
                for name in names
            }
        case _:
            required = {}
            allowed = list(error.schema.get("properties", {}))
            patterns = error.schema.get("patternProperties", {})
            for name in error.instance:
                if name not in allowed and not any(re.search(each, name) for each in patterns):
                    yield name, value_problems.unknown_key(allowed)
    yield from ((name, text) for name, text in required.items() if name not in error.instance)


def _of_alternatives(error: ValidationError, path: list[str]) -> Iterator[Mismatch]:
    """Yield what the only alternative of the value's type refuses, else what the value may be."""
    alternatives: dict[Any, list[ValidationError]] = {}
    for inner in error.context:
        alternatives.setdefault(inner.schema_path[0], []).append(inner)
    near = [
        errors
        for errors in alternatives.values()
        if not any(inner.validator in _KINDS and not inner.path for inner in errors)
    ]
    chosen = near if near else list(alternatives.values())
    chosen = [errors for errors in chosen if errors[0].validator_value != "null"] or chosen
    if len(chosen) == 1:
        for inner in chosen[0]:
            yield from _of_error(inner)
        return
    refused = [(str(errors[0].validator), errors[0].validator_value) for errors in chosen]
    yield path, value_problems.alternatives_problem(refused, error.instance)


def _line(text: str) -> str:
    plain = " ".join(text[: 20 * WIDTH].split())
    return plain if len(plain) <= WIDTH else plain[: WIDTH - 1] + "…"
