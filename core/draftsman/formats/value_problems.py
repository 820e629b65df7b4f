"""What a value must be, in words: those of JSON Schema's keywords and of pydantic's rules. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

IS_REQUIRED: Final = "is required"
TYPES: Final = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object of keys and values",
    "null": "null",
}
"""By the name of a type of JSON."""
AT_LEAST: Final = "must be at least {}"
AT_MOST: Final = "must be at most {}"
MORE_THAN: Final = "must be more than {}"
LESS_THAN: Final = "must be less than {}"
PATTERN: Final = "must match the pattern {}"
NOT_A_VALUE: Final = "must be the name of a secret of the workers ([secrets]), not its value"
FORMAT_OF_NAMES: Final = "secret-name"
"""Format of JSON Schema whose refused values are not shown."""
FORMATS: Final[Mapping[str, str]] = {"date": "must be a date, such as 2026-11-30"}
"""Formats of JSON Schema that are checked, each with its problem."""
NO_ALTERNATIVE: Final = "matches no alternative of the schema"
_SHOWN: Final = 60
"""Characters of a value in a problem."""


def keyword_problem(keyword: str, expected: Any, value: Any) -> str:
    """Return the problem of a value that a keyword of JSON Schema refuses.

    `must be a whole number, not 'x'`; `expected` is what the keyword has in the schema.
    """
    if keyword in _SIZES:
        return size_problem(*_SIZES[keyword], int(expected))
    if keyword in _VALUES:
        return alternatives_problem([(keyword, expected)], value)
    return _WHOLE.get(keyword, f"does not match {keyword} of the schema")


def alternatives_problem(refused: Iterable[tuple[str, Any]], value: Any) -> str:
    """Return the problem of a value that the keywords of all alternatives refuse."""
    first, *others = dict.fromkeys(
        _VALUES[keyword](expected) if keyword in _VALUES else NO_ALTERNATIVE
        for keyword, expected in refused
    )
    if NO_ALTERNATIVE in (first, *others):
        return NO_ALTERNATIVE
    needs = " or ".join([first, *(text.removeprefix("must be ") for text in others)])
    return f"{needs}, not {_shown(value)}"


def size_problem(bound: str, unit: str, count: int) -> str:
    """Return the problem of a value with too few or too many units."""
    if (bound, count) == ("least", 1):
        return "must not be empty"
    if count != 1:
        unit = "entries" if unit == "entry" else f"{unit}s"
    return f"must have at {bound} {count} {unit}"


def unknown_key(allowed: Sequence[str]) -> str:
    """Return the problem of a key that is not allowed."""
    return f"unknown key; allowed: {', '.join(allowed) or 'none'}"


def must_be(*choices: str) -> str:
    """Return that a value must be one of these: `must be a number or text`."""
    return f"must be {_one_of(choices)}"


def _one_of(choices: Sequence[str]) -> str:
    *others, last = dict.fromkeys(choices)
    return f"{', '.join(others)} or {last}" if others else last


def _type(expected: Any) -> str:
    names = [expected] if isinstance(expected, str) else expected
    wanted = [name for name in names if name != "null"] or names  # people leave out a value
    return must_be(*(TYPES[name] for name in wanted))


def _enum(expected: Any) -> str:
    return must_be(*map(_choice, expected)) if expected else "must be left out"


def _choice(value: Any) -> str:
    return value if isinstance(value, str) and value else _shown(value)


def _number(expected: Any) -> str:
    is_whole = isinstance(expected, float) and expected.is_integer()
    return str(int(expected) if is_whole else expected)


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


_VALUES: Final[Mapping[str, Callable[[Any], str]]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda expected: must_be(_choice(expected)),
    "minimum": lambda expected: AT_LEAST.format(_number(expected)),
    "maximum": lambda expected: AT_MOST.format(_number(expected)),
    "exclusiveMinimum": lambda expected: MORE_THAN.format(_number(expected)),
    "exclusiveMaximum": lambda expected: LESS_THAN.format(_number(expected)),
    "multipleOf": lambda expected: f"must be a multiple of {_number(expected)}",
    "pattern": PATTERN.format,
    "format": lambda expected: FORMATS[expected],
}
"""Keywords whose problem shows the value."""
_SIZES: Final = {
    "minLength": ("least", "character"),
    "maxLength": ("most", "character"),
    "minItems": ("least", "entry"),
    "maxItems": ("most", "entry"),
    "minProperties": ("least", "key"),
    "maxProperties": ("most", "key"),
    "minContains": ("least", "matching entry"),
    "maxContains": ("most", "matching entry"),
}
_WHOLE: Final = {
    "required": IS_REQUIRED,
    "uniqueItems": "must not have an entry twice",
    "contains": "has no entry that matches",
    "items": "has too many entries",
    "unevaluatedItems": "has too many entries",
    "unevaluatedProperties": "has unknown keys",
    "not": "has a value that is not allowed",
    "oneOf": "matches more than one alternative",
}
