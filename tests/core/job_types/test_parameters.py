"""The parameters of declared job types: checked, stored and described by the signature."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from draftsman import Failure, RunContext, Snooze
from draftsman.errors import ConfigError, UsageError
from draftsman.job_types.parameters import Parameters
from tests.support.cases import cases


class Order(BaseModel):
    number: int
    note: str = "none"


@dataclasses.dataclass
class Box:
    width: float


class Address(TypedDict, total=False):
    city: str


def weekly(
    ctx: RunContext,
    week: int,
    region: Literal["eu", "us"] = "eu",
    *,
    day: date | None = None,
    names: tuple[str, ...] = (),
) -> None: ...


def paid(ctx: RunContext, order: Order) -> None: ...


def packed(ctx: RunContext, box: Box) -> None: ...


def moved(ctx: RunContext, to: Address) -> None: ...


def untyped(ctx, a, b=1): ...  # type: ignore[no-untyped-def]


@cases(
    ("function", "call", "payload", "arguments"),
    [
        (weekly, ((31,), {}), {"week": 31}, {"week": 31}),
        (
            weekly,
            ((), {"week": 31, "day": date(2030, 1, 2), "names": ("a",)}),
            {"week": 31, "day": "2030-01-02", "names": ["a"]},
            {"week": 31, "day": date(2030, 1, 2), "names": ("a",)},
        ),
        (paid, ((Order(number=1),), {}), {"number": 1}, {"order": Order(number=1)}),
        (packed, ((Box(1.5),), {}), {"width": 1.5}, {"box": Box(1.5)}),
        (moved, (({"city": "Ulm"},), {}), {"city": "Ulm"}, {"to": {"city": "Ulm"}}),
        (
            untyped,
            ((1,), {"b": {"c": None}}),
            {"a": 1, "b": {"c": None}},
            {"a": 1, "b": {"c": None}},
        ),
    ],
)
def test_a_call_becomes_a_payload_and_a_payload_a_call(
    function: Callable[..., Any],
    call: tuple[tuple[Any, ...], dict[str, Any]],
    payload: dict[str, Any],
    arguments: dict[str, Any],
) -> None:
    parameters = Parameters("test", function)
    assert parameters.payload(*call) == payload
    assert parameters.arguments(payload) == arguments


@cases(
    ("payload", "problem"),
    [
        ({}, "payload of test: week: is required"),
        ({"week": "x"}, "payload of test: week 'x': must be a whole number"),
        (
            {"week": 1, "region": "de"},
            "payload of test: region 'de': must be 'eu' or 'us'",
        ),
        (
            {"week": 1, "wek": 1},
            "payload of test: wek: unknown key; allowed: week, region, day, names",
        ),
    ],
)
def test_an_invalid_payload_is_named(payload: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        Parameters("test", weekly).arguments(payload)
    assert str(raised.value) == problem


@cases(
    ("args", "kwargs", "problem"),
    [
        ((), {}, "test: missing a required argument: 'week'"),
        ((1, "eu", 3), {}, "test: too many positional arguments"),
        ((1,), {"wek": 2}, "test: got an unexpected keyword argument 'wek'"),
    ],
)
def test_an_invalid_call_is_named(
    args: tuple[Any, ...], kwargs: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError) as raised:
        Parameters("test", weekly).payload(args, kwargs)
    assert str(raised.value) == problem


def test_the_schema_describes_parameters_and_defaults() -> None:
    schema = Parameters("test", weekly).schema
    assert schema["required"] == ["week"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["region"] == {
        "enum": ["eu", "us"],
        "title": "Region",
        "type": "string",
        "default": "eu",
    }
    assert properties["day"]["default"] is None
    assert properties["names"]["default"] == []
    assert Parameters("test", paid).schema["properties"]["note"]["default"] == "none"


def hinted(
    ctx: RunContext,
    amount: Annotated[Decimal, Field(gt=0, description="In euros")],
    copy: bool = False,
    json: str = "",
) -> None: ...


def test_constraints_and_names_of_any_kind_are_kept() -> None:
    parameters = Parameters("test", hinted)
    assert parameters.schema["properties"]["amount"]["description"] == "In euros"
    assert parameters.payload((Decimal("1.50"),), {"copy": True}) == {
        "amount": "1.50",
        "copy": True,
    }
    with pytest.raises(UsageError, match=r"amount '-1': must be more than 0"):
        parameters.arguments({"amount": "-1"})


def nothing() -> None: ...


def some(ctx: RunContext, *names: str) -> None: ...


def more(ctx: RunContext, **names: str) -> None: ...


def unknown(ctx: RunContext, thing: object()) -> None: ...  # type: ignore[valid-type]


def missing(ctx: RunContext, thing: Missing) -> None: ...  # type: ignore[name-defined] # noqa: F821


@cases(
    ("function", "problem"),
    [
        (nothing, "test: nothing needs a first parameter, the context"),
        (some, "test: *names: str of some has no name of its own"),
        (more, "test: **names: str of more has no name of its own"),
        (unknown, "test: Unable to generate pydantic-core schema for <object object"),
        (missing, "test: name 'Missing' is not defined in the annotations of missing"),
    ],
)
def test_a_function_that_cannot_be_a_job_is_refused_where_it_is_declared(
    function: Callable[..., Any], problem: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        Parameters("test", function)
    assert str(raised.value).startswith(problem)


def total(ctx: RunContext) -> int:
    raise NotImplementedError


def order(ctx: RunContext) -> Order | Snooze:
    raise NotImplementedError


def listed(ctx: RunContext) -> list[date]:
    raise NotImplementedError


@cases(
    ("function", "value", "stored"),
    [
        (total, 3, {"value": 3}),
        (order, Order(number=2), {"number": 2, "note": "none"}),
        (listed, [date(2030, 1, 2)], {"value": ["2030-01-02"]}),
        (weekly, None, {}),
        (untyped, None, {}),
        (untyped, {"a": 1}, {"a": 1}),
        (untyped, "text", {"value": "text"}),
        (untyped, {"value": 1}, {"value": {"value": 1}}),
    ],
)
def test_results_are_stored_as_json_and_loaded_as_their_type(
    function: Callable[..., Any], value: object, stored: dict[str, Any]
) -> None:
    results = Parameters("test", function).results
    assert results.dump(value) == stored
    assert results.load(stored) == value


def test_a_result_without_json_is_invalid_output() -> None:
    with pytest.raises(Failure, match="the result is no JSON") as raised:
        Parameters("test", untyped).results.dump({"a": object()})
    assert raised.value.declared == "INVALID_OUTPUT"
