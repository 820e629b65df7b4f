"""Errors of validation, in draftsman's words instead of pydantic's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from pydantic import AfterValidator, ValidationError
from pydantic_core import ErrorDetails

from draftsman.errors import FieldError
from draftsman.formats import value_problems
from draftsman.formats.truncation import truncate
from draftsman.formats.value_problems import must_be, size_problem, unknown_key

_TYPES: Final = {name: must_be(words) for name, words in value_problems.TYPES.items()}
_OBJECT: Final = _TYPES["object"]
_LIST: Final = _TYPES["array"]
_TIME: Final = "must be a time, such as 2030-12-31T18:00:00Z"
_DATE: Final = "must be a date, such as 2030-12-31"
_TEXTS: Final = {
    "missing": value_problems.IS_REQUIRED,
    "extra_forbidden": "is not a known key",
    "none_required": "must be left out",
    "greater_than": value_problems.MORE_THAN.format("{gt}"),
    "greater_than_equal": value_problems.AT_LEAST.format("{ge}"),
    "less_than": value_problems.LESS_THAN.format("{lt}"),
    "less_than_equal": value_problems.AT_MOST.format("{le}"),
    "finite_number": "must be a finite number",
    "string_type": _TYPES["string"],
    "string_unicode": "must be text in UTF-8",
    "string_sub_type": _TYPES["string"],
    "string_pattern_mismatch": value_problems.PATTERN.format("{pattern}"),
    "bytes_type": "must be bytes",
    "bool_type": _TYPES["boolean"],
    "bool_parsing": _TYPES["boolean"],
    "int_type": _TYPES["integer"],
    "int_parsing": _TYPES["integer"],
    "int_parsing_size": "must be a smaller whole number",
    "int_from_float": _TYPES["integer"],
    "float_type": _TYPES["number"],
    "float_parsing": _TYPES["number"],
    "decimal_type": _TYPES["number"],
    "decimal_parsing": _TYPES["number"],
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
    "dict_type": _OBJECT,
    "mapping_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "dataclass_type": _OBJECT,
    "invalid_key": "must have keys that are text",
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "frozen_set_type": _LIST,
    "iterable_type": _LIST,
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "datetime_from_date_parsing": _TIME,
    "date_type": _DATE,
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_from_datetime_inexact": _DATE,
    "timezone_aware": "must have a time zone, such as 2030-12-31T18:00:00Z",
    "uuid_type": "must be a UUID",
    "uuid_parsing": "must be a UUID",
    "json_invalid": "invalid JSON: {error}",
    "value_error": "{error}",
    "assertion_error": "{error}",
}
"""By pydantic's error type."""
HIDDEN_VALUE: Final = "hidden_value"
"""Error type of a value that is not shown: it may be a secret."""
_SIZES: Final = {
    "string_too_short": ("least", "min_length", "character"),
    "string_too_long": ("most", "max_length", "character"),
    "bytes_too_short": ("least", "min_length", "byte"),
    "bytes_too_long": ("most", "max_length", "byte"),
    "too_short": ("least", "min_length", "entry"),
    "too_long": ("most", "max_length", "entry"),
}
_SUBJECT: Final = re.compile(r"^[\w ]+? should (?=be|have|match|contain)")


def matching(pattern: str, allowed: str) -> AfterValidator:
    """Return a validator of a whole text; `allowed` is its error message."""
    expression = re.compile(pattern)

    def check(value: str) -> str:
        if expression.fullmatch(value) is None:
            raise ValueError(allowed)
        return value

    return AfterValidator(check)


def describe_error(error: ErrorDetails) -> str:
    """Return the problem of a value without its name: `must be at most 5`."""
    kind = error["type"]
    context = error.get("ctx") or {}
    if kind in _SIZES:
        bound, key, unit = _SIZES[kind]
        return size_problem(bound, unit, int(str(context.get(key, 0))))
    if kind in _TEXTS:
        return _TEXTS[kind].format_map({key: _text(value) for key, value in context.items()})
    text = _SUBJECT.sub("must ", error["msg"])
    return text[:1].lower() + text[1:]


def _text(value: object) -> str:
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def first_error(error: ValidationError) -> tuple[str, str]:
    """Return the first invalid field (`choices.0.value`, or "") and its problem."""
    details = error.errors(include_url=False)[0]
    # a field may be a key of the input
    field = ".".join(truncate(str(part), 60) for part in details["loc"])
    return field, describe_error(details)


def error_line(error: ValidationError) -> str:
    """Return the first problem in one line: `Choice: value: must be text`."""
    field, text = first_error(error)
    return ": ".join(part for part in (error.title, field, text) if part)


def field_error(
    error: ValidationError,
    subject: str = "",
    *,
    default: str = "",
    parent: str = "",
    allowed: Iterable[str] = (),
    shows: Callable[[str], bool] = lambda field: False,
) -> FieldError:
    """Return the error for the first problem: `payload of noop: url 'x': must be a URL`.

    `default` names an error that has no field, `parent` the field whose value was validated, and
    `allowed` the known keys. `shows` tells whether the message shows the value of a field, if it is
    text.
    """
    details = error.errors(include_url=False)[0]
    field, problem = first_error(error)
    value = details["input"]
    rule = details["type"]
    if allowed and rule == "extra_forbidden":
        problem = unknown_key(list(allowed))
    is_shown = rule != HIDDEN_VALUE and shows(field)
    quoted_value = f" {value[:60]!r}" if isinstance(value, str) and is_shown else ""
    name = f"{field or default}{quoted_value}" if field or default else ""
    text = ": ".join(filter(None, (subject, name, problem)))
    path = ".".join(filter(None, (parent, field)))
    return FieldError(text, field=path, problem=problem, rule=rule)
