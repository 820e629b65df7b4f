"""Typos in the values of filters are named, on each surface, from one declaration."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import click

from draftsman.entities.filter_values import FILTER_VALUES, NAMES, OTHER_FILTERS, unknown_value
from draftsman.formats.near_names import did_you_mean
from draftsman.jobs.job import Status
from draftsman.jobs.job_summary import JobFilters
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_tui.cli import main
from draftsman_tui.cli.app import ListCommand
from draftsman_tui.dashboard.tables.filter import FIELDS, HEADS, parse
from draftsman_tui.dashboard.tables.resource import Query
from draftsman_tui.dashboard.tables.screen import TableState, title_parts
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.terminal import params

DECLARED: Final = FILTER_VALUES.keys() | OTHER_FILTERS.keys()
NO_VALUES: Final = {
    "statuses",
    "numbers",
    "limit",
    "before",
    "paused",
    "failures",
    "since",
    "until",
}
"""Filters of jobs that are no names: statuses, numbers, times and flags."""
TEXTS: Final = (params.TEXT, params.AGENT, params.REPO)
"""The types of options with free text."""
COMMANDS: Final = ("jobs", "cancel", "dismiss", "retry", "wait")
"""The commands that select jobs by filters; other lists declare theirs as an entity."""
VALUES: Final = {
    "repo": "acme/payments",
    "agent": "reviewer",
    "type": "report",
    "queue": "nightly",
    "source": "trello",
    "tag": "regression",
    "group": "release",
    "by": "draftsman",
    "for": "anybody",
}
"""A known value of each filter."""


def filters_of_commands() -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the words of each command that lists or selects, and its filters of free text."""
    for name, command in _lists():
        for param in command.params:
            if isinstance(param, click.Option) and param.type in TEXTS:
                yield tuple(name.split()), max(param.opts, key=len).removeprefix("--")


def _lists() -> Iterator[tuple[str, click.Command]]:
    for name in main.COMMANDS:
        command = main.cli.get_command(click.Context(main.cli), name)
        if isinstance(command, click.Group):
            found = command.commands.items()
            yield from ((f"{name} {sub}", nested) for sub, nested in found if _is_list(nested))
        elif name in COMMANDS or _is_list(command):
            assert command is not None
            yield name, command


def _is_list(command: click.Command | None) -> bool:
    return isinstance(command, ListCommand)


OTHER_OPTIONS: Final = {"where", "sort", "reason"}
"""Options of lists that filter by columns, sort, or say why."""


def test_each_filter_says_how_its_values_are_known_or_why_not() -> None:
    filters = [name for _, name in filters_of_commands() if name not in OTHER_OPTIONS]
    assert {"queue", "tag", "source"} <= set(filters)
    assert (("rules", "list"), "repo") in filters_of_commands()
    names = {*filters, *FIELDS, *(JobFilters.__annotations__.keys() - NO_VALUES)}
    assert {NAMES.get(name, name) for name in names} - DECLARED == set()
    assert FILTER_VALUES.keys() & OTHER_FILTERS.keys() == set()
    assert FILTER_VALUES.keys() == VALUES.keys()


def test_near_names_ignore_case() -> None:
    assert did_you_mean("Defalt", ["default", "nightly"]) == "; did you mean default?"
    assert did_you_mean("pay", ["PAY", "Pya"]) == "; did you mean PAY?"
    assert did_you_mean("jbos", ["browse", "boards", "jobs"]) == "; did you mean jobs?"
    assert did_you_mean("x", ["default"]) == ""


async def test_a_typo_is_named_in_each_empty_list(rt: Runtime, make: Factory) -> None:
    repo = f"https://github.com/{VALUES['repo']}"
    await make.queued(
        type="report",
        repo=repo,
        agent="reviewer",
        queue="nightly",
        tags=("regression=2",),
        group={"name": "release", "kind": "parallel"},
    )
    for name, spec in FILTER_VALUES.items():
        typo = VALUES[name][:-2] + VALUES[name][-1]
        sentence = await unknown_value(rt, {name: typo})
        assert sentence.startswith(f"no {spec.noun} {typo!r}"), sentence
        if name != "by":
            assert f"did you mean {VALUES[name]}" in sentence
            assert await unknown_value(rt, {name: VALUES[name]}) == ""
    assert await unknown_value(rt, {"tags": ("regression", "regresion")}) == (
        "no tag 'regresion'; did you mean regression or regression=2?"
    )
    assert await unknown_value(rt, {"repo": "GitHub.com/acme/PAYMENTS"}) == ""
    assert "known: " in await unknown_value(rt, {"type": "report", "by": "zzz"})

    now = datetime.now(UTC)
    for view in VIEWS.values():
        heads = {column.head.casefold() for column in view.columns} & HEADS.keys()
        for name in FILTER_VALUES.keys() & {*view.fields, *heads}:
            typo = VALUES[name][:-2] + VALUES[name][-1]
            rows = await view.fetch(rt, Query(view.resolve(parse(f"{name}:{typo}")), now))
            assert rows.unknown.startswith(f"No {FILTER_VALUES[name].noun} {typo!r}"), view.name
            assert rows.unknown[-1] in ".?"
    known = await VIEWS["jobs"].fetch(rt, Query(parse("status:failed agent:reviewer"), now))
    assert (known.items, known.unknown) == ([], "")


async def test_the_title_of_dead_letters_counts_the_open_ones_as_its_tab(
    rt: Runtime, make: Factory
) -> None:
    dismissed = await make.dead()
    await make.dead()
    view = VIEWS["dead"]
    rows = await view.fetch(rt, Query(parse(""), datetime.now(UTC)))
    assert title_parts("dead", TableState(rows=rows)) == ["dead", "2"]
    await rt.job_control.dismiss(dismissed, make.owner)
    rows = await view.fetch(rt, Query(parse(""), datetime.now(UTC)))
    assert (await rt.read_model.open_failures())[Status.DEAD_LETTER] == 1
    assert title_parts("dead", TableState(rows=rows)) == ["dead", "1 open of 2"]
