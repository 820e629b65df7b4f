"""Absurd values of all options that take numbers and times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import annotated_types
import click

from draftsman.jobs.requests.invocation import Invocation
from draftsman.schedules.schedule import MAX_MISFIRES
from draftsman_testing.factories import GATE, Factory
from draftsman_tui.terminal import params
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.commands import Words, commands

VALUES: Final = ("0", "-1", str(10**12), str(10**30), "x", "1.5", "")
NUMBERS: Final = (click.types.IntParamType, click.types.FloatParamType)
RANGES: Final = (click.IntRange, click.FloatRange)
TIMES: Final = (
    params.DURATION,
    params.REMINDER_DELAY,
    params.EXTENSION,
    params.INSTANT,
    params.SINCE,
)


def _params() -> Iterator[tuple[Words, click.Parameter]]:
    """Yield each parameter with the words before its value."""
    for path, command in commands():
        before: Words = ()
        for param in command.params:
            if not isinstance(param, click.Argument):
                if not getattr(param, "hidden", False):
                    yield path, param
                continue
            yield (*path, "--", *before), param
            number = "1" if isinstance(param.type, RANGES) else "D-1"
            before += ("D-1/1" if param.type is params.QUESTION else number,)


def _words(param: click.Parameter, value: str) -> Words:
    return (value,) if isinstance(param, click.Argument) else (f"{param.opts[0]}={value}",)


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def test_each_number_has_a_range_and_that_of_a_request_is_its_models() -> None:
    numbers = [(path, param) for path, param in _params() if isinstance(param.type, NUMBERS)]
    assert len(numbers) > 30
    assert [item for item in numbers if not isinstance(item[1].type, RANGES)] == []
    for _, param in numbers:
        assert isinstance(param.type, RANGES)
        bounds = (param.type.min, param.type.max)
        assert None not in bounds, param.name
        if field := Invocation.model_fields.get(param.name or ""):
            low = next(item.ge for item in field.metadata if isinstance(item, annotated_types.Ge))
            high = next(item.le for item in field.metadata if isinstance(item, annotated_types.Le))
            assert bounds == (low, high), param.name
        if param.name == "misfire_limit":
            assert bounds == (1, MAX_MISFIRES)


async def test_a_number_out_of_range_is_refused_with_what_is_allowed(cli: Cli) -> None:
    for path, param in _params():
        kind = param.type
        if not isinstance(kind, RANGES):
            continue
        for value in VALUES:
            number = _number(value)
            is_whole = isinstance(kind, click.FloatRange) or value.lstrip("-").isdigit()
            if number is None or not is_whole:
                expected = "is not a number" if is_whole else "is not a whole number"
            elif (kind.min or 0) <= number <= (kind.max or 0):
                continue
            else:
                expected = f"is not in the range {kind.min} to {kind.max}"
            done = await cli(*path, *_words(param, value))
            assert expected in done.refused(2), (path, value, done)


async def test_a_time_that_is_none_is_refused_with_examples(cli: Cli) -> None:
    for path, param in _params():
        if param.type not in TIMES:
            continue
        for value in "x", str(10**30):
            line = (await cli(*path, *_words(param, value))).refused(2)
            assert "examples: " in line or "allowed: " in line, (path, line)


async def test_the_words_of_narrow_columns_are_statuses_in_filters(cli: Cli, make: Factory) -> None:
    asked = (await make.asked()).number
    gate = (await make.asked(GATE)).number
    dead = await make.dead()
    for word, numbers in {
        "question": [asked],
        "approval": [gate],
        "waiting": [asked, gate],
        "dead,question": [dead, asked],
        "cancelled": [],
    }.items():
        assert [job["number"] for job in (await cli("jobs", "--status", word, "--json")).json] == (
            numbers
        ), word
    unknown = (await cli("jobs", "--status", "faild")).refused(2)
    assert unknown == "draftsman: unknown status 'faild'; did you mean failed?\n"


async def test_options_that_are_suggested_are_near_or_other_words(cli: Cli) -> None:
    for words, message in (
        (("jobs", "--user", "bob"), "no such option --user; did you mean --by?"),
        (("jobs", "--columns", "x"), "no such option --columns; tables have fixed columns"),
        (("questions", "--by", "bob"), "no such option --by; see: draftsman questions"),
        (("answer", "D-1/1", "--reason", "ok"), "the text: draftsman answer D-142/1 TEXT; see"),
        (("submit", "--delay", "5m", "x"), "no such option --delay; did you mean --in?"),
        (("cancel", "D-1", "--commnet", "x"), "no such option --commnet"),
    ):
        (await cli(*words)).refused(2, message)


async def test_a_hidden_option_is_no_suggestion(cli: Cli) -> None:
    (await cli("bots", "--paren")).refused(2, "no such option --paren; see: draftsman bots")
    (await cli("web", "--prot", "1")).refused(2, "no such option --prot; did you mean --port?")
    (await cli("jobs", "--jsn")).refused(2, "no such option --jsn; did you mean --json")
    (await cli("web", "--port", "99999")).refused(2, "99999 is not in the range 0 to 65535")
