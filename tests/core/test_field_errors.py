"""Messages about invalid values, in plain words instead of those of pydantic."""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, BaseModel, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_core._pydantic_core import list_all_errors

from draftsman.errors import ConfigError, UsageError
from draftsman.field_errors import describe_error, error_line, field_error, first_error
from draftsman.jobs.retries import as_failure
from draftsman.questions.question_spec import Choice
from draftsman.questions.response import build_response
from draftsman.settings import load
from tests.support.cases import cases

RAW = re.compile(
    r"\b(?:Input|String|Value|Tuple|List|Data) should|valid (?:string|integer|dictionary|boolean)"
    r"|Field required|Extra inputs|Value error|unable to parse|\{\w+\}"
)


class Order(BaseModel):
    """A model with fields of many types."""

    name: Annotated[str, Field(min_length=1, max_length=3)] = "a"
    count: Annotated[int, Field(ge=1, lt=9)] = 1
    share: Annotated[float, Field(gt=0.0, le=0.5)] = 0.5
    day: date = date(2030, 12, 31)
    kind: Literal["small", "large"] = "small"
    tags: Annotated[tuple[str, ...], Field(max_length=1)] = ()
    at: AwareDatetime = datetime.fromisoformat("2030-12-31T18:00Z")
    about: dict[str, int] = {}
    sure: bool = True

    @field_validator("name")
    @classmethod
    def _is_free(cls, value: str) -> str:
        if value == "x":
            raise ValueError("x is taken; choose another")
        return value


@cases(
    ("fields", "texts"),
    [
        ({"name": 1}, ("name", "must be text")),
        ({"name": ""}, ("name", "must not be empty")),
        ({"name": "abcd"}, ("name", "must have at most 3 characters")),
        ({"name": "x"}, ("name", "x is taken; choose another")),
        ({"count": 0}, ("count", "must be at least 1")),
        ({"share": 0}, ("share", "must be more than 0")),
        ({"share": 0.7}, ("share", "must be at most 0.5")),
        ({"day": "2026-13-40"}, ("day", "must be a date, such as 2030-12-31")),
        ({"count": 9}, ("count", "must be less than 9")),
        ({"count": "many"}, ("count", "must be a whole number")),
        ({"kind": "huge"}, ("kind", "must be 'small' or 'large'")),
        ({"tags": ["a", "b"]}, ("tags", "must have at most 1 entry")),
        ({"tags": [1]}, ("tags.0", "must be text")),
        ({"at": "2030-12-31T18:00"}, ("at", "must have a time zone, such as 2030-12-31T18:00:00Z")),
        ({"at": "soon"}, ("at", "must be a time, such as 2030-12-31T18:00:00Z")),
        ({"about": []}, ("about", "must be an object of keys and values")),
        ({"sure": "perhaps"}, ("sure", "must be true or false")),
    ],
    ids=str,
)
def test_a_problem_is_described_in_words(fields: dict[str, Any], texts: tuple[str, str]) -> None:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(fields)
    assert first_error(caught.value) == texts
    assert error_line(caught.value) == f"Order: {texts[0]}: {texts[1]}"


@cases(
    ("options", "fields", "message", "field"),
    [
        ({}, {"count": 9}, "count: must be less than 9", "count"),
        ({"subject": "order 7"}, {"count": 9}, "order 7: count: must be less than 9", "count"),
        ({"parent": "order"}, {"tags": [1]}, "tags.0: must be text", "order.tags.0"),
        ({"allowed": ("name",)}, {"nome": "x"}, "nome: unknown key; allowed: name", "nome"),
        ({"shows": bool}, {"name": "x"}, "name 'x': x is taken; choose another", "name"),
        ({"default": "order"}, [], "order: must be an object of keys and values", ""),
        ({"subject": "order 7"}, [], "order 7: must be an object of keys and values", ""),
    ],
    ids=["field", "subject", "parent", "unknown key", "value", "no field", "subject, no field"],
)
def test_an_error_names_its_field_in_the_text_and_as_data(
    options: dict[str, Any], fields: Any, message: str, field: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(fields, extra="forbid")
    error = field_error(caught.value, **options)
    assert (str(error), error.field) == (message, field)
    assert message.endswith(error.problem)


@cases("kind", list_all_errors(), ids=lambda kind: str(kind["type"]))
def test_no_type_of_error_has_the_text_of_the_library(kind: dict[str, Any]) -> None:
    context = kind["example_context"] or {}
    message = re.sub(r"\{\w+\}", "7", kind["message_template_python"])
    details: ErrorDetails = {"type": kind["type"], "loc": (), "msg": message, "input": None}
    text = describe_error(details | {"ctx": context})
    assert RAW.search(text) is None, text


def test_an_answer_that_is_too_long_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match=r"D-1/1: the text must have at most [\d]+ characters"):
        build_response("key", "D-1/1", text="x" * 1_000_000)


def test_an_invalid_model_of_a_handler_is_described_in_words() -> None:
    with pytest.raises(ValidationError) as caught:
        Choice(value="")
    assert str(as_failure(caught.value)) == "ValidationError: Choice: value: must not be empty"


@cases(
    ("text", "problem"),
    [
        (
            "[questions]\nexpires_in = '2h'",
            "is '2h': must be a number of seconds, here 7200",
        ),
        ("[worker]\nlease = '1.5 min'", "is '1.5 min': must be a number of seconds, here 90"),
        ("[worker]\nlease = 'soon'", "worker.lease is 'soon': must be a number"),
        ("[worker]\nslots = 'many'", "worker.slots is 'many': must be a whole number"),
    ],
)
def test_a_duration_with_a_unit_is_shown_in_seconds(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "draftsman.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert str(caught.value).endswith(problem)
