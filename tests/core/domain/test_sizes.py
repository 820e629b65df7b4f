"""Each text of a request, and of other input, has a limit, which its error names in one line."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from draftsman import field_errors
from draftsman.errors import UsageError
from draftsman.jobs.requests.invocation import (
    FileRef,
    GroupRef,
    Invocation,
    RepoResolution,
    TemplateRef,
)
from draftsman.questions.question_spec import Choice, QuestionSpec
from draftsman.questions.response import Response
from draftsman.repos.repo_profile import (
    CoverageProfile,
    EvidenceProfile,
    RepoProfile,
    profile,
)
from draftsman.schedules.template import TemplateDefinition
from draftsman.settings.profiles import CommandSettings, FixSettings, SetupSettings
from draftsman_bots.trello.records.board import BoardConfig
from tests.support.cases import cases

HUGE: Final = "x" * 1_100_000
MANY: Final = ["x" * 20] * 60_000
VALID: Final[dict[type[BaseModel], dict[str, Any]]] = {
    Invocation: {},
    FileRef: {"reference": {}, "name": "a.txt"},
    TemplateRef: {"name": "bump", "version": 1},
    GroupRef: {"name": "g"},
    RepoResolution: {},
    QuestionSpec: {"key": "k", "text": "Which?", "freeform": True},
    Choice: {"value": "red"},
    Response: {"source_event_id": "e", "text": "red"},
    TemplateDefinition: {},
    BoardConfig: {"board_id": "5" * 24, "name": "Board"},
    RepoProfile: {},
}
"""Models of input, each with the fields that it needs; a new field is attacked by itself."""
NESTED: Final[dict[type[BaseModel], dict[str, Any]]] = {
    CommandSettings: {"name": "test", "command": ["true"]},
    FixSettings: {"name": "test", "command": ["true"]},
    SetupSettings: {"name": "test", "command": ["true"]},
    CoverageProfile: {"command": ["true"]},
    EvidenceProfile: {"test": ["pytest", "{files}"]},
}
"""The same of parts of a profile."""
PARSERS: Final[dict[type[BaseModel], Callable[[Any], object]]] = {RepoProfile: profile}
"""Functions that parse the input of a model."""

KNOWN_WORDS: Final = ("at most", "must be", "allowed", "unknown", "not a", "is too long")
"""Words of messages that name the limit, or the allowed values."""


def _huge(annotation: Any) -> Iterator[Any]:
    """Yield values of a type, each with a huge text or list in one place."""
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is Annotated:
        yield from _huge(arguments[0])
    elif origin in (Union, types.UnionType):
        for argument in arguments:
            yield from _huge(argument)
    elif annotation is str:
        yield HUGE
    elif annotation is Any:
        yield HUGE
        yield {"x": HUGE}
    elif origin in (tuple, list, set, frozenset):
        yield from _huge_lists([item for item in arguments if item is not Ellipsis], arguments)
    elif origin in (dict, Mapping):
        yield {"x": HUGE}
        yield {HUGE: "x"}
        yield {"x": MANY}
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for data in _fields(annotation):
            yield data[1]


def _huge_lists(places: list[Any], arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yield lists with a huge text, and a list of many texts; a pair has its length."""
    is_pair = Ellipsis not in arguments and len(places) > 1
    for place, item in enumerate(places):
        for value in _huge(item):
            others: list[Any] = ["x"] * len(places)
            yield [*others[:place], value, *others[place + 1 :]] if is_pair else [value]
    if not is_pair:
        yield MANY


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each field of a model, and valid input but for this field."""
    model.model_rebuild()
    valid = VALID.get(model) or NESTED.get(model) or {}
    for name, field in model.model_fields.items():
        for value in _huge(field.annotation):
            yield name, valid | {name: value}


def _error(parse: Callable[[Any], object], data: dict[str, Any]) -> str:
    """Return the message of the error; "" without one."""
    try:
        parse(data)
    except ValidationError as error:
        return str(field_errors.field_error(error))
    except UsageError as error:
        return str(error)
    return ""


@cases("model", VALID)
def test_a_value_over_its_limit_gets_one_line_with_the_limit(model: type[BaseModel]) -> None:
    parse = PARSERS.get(model, model.model_validate)
    parse(VALID[model])
    for name, data in _fields(model):
        line = _error(parse, data)
        assert line, f"{name} takes {str(data[name])[:80]}"
        assert "\n" not in line, name
        assert len(line) < 400, name
        assert any(word in line for word in KNOWN_WORDS), line
