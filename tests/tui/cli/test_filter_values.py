"""Typos in the values of filters, in lists and in commands on many jobs."""

from __future__ import annotations

from draftsman.entities.filter_values import FILTER_VALUES
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli
from tests.tui.test_filter_values import OTHER_OPTIONS, filters_of_commands


async def test_an_empty_list_names_an_unknown_value_beside_the_json(
    cli: Cli, make: Factory
) -> None:
    await make.failed(queue="default")
    filters = [(words, name) for words, name in filters_of_commands() if name in FILTER_VALUES]
    filters.remove((("wait",), "group"))  # a group that is waited for has to exist
    assert (("cancel",), "queue") in filters
    selections = {"cancel": "queued", "dismiss": "failed", "retry": "failed"}
    for words, name in filters:
        status = selections.get(words[0])
        selected = ("--status", status, "--dry-run") if status else ()
        done = await cli(*words, *selected, f"--{name}", "defalt", "--json")
        assert done.json == [], words
        assert f"no {FILTER_VALUES[name].noun} 'defalt'" in done.err, words
    assert {name for _, name in filters} & OTHER_OPTIONS == set()
    queued = await cli("jobs", "--queued", "--queue", "defalt")
    assert (queued.code, queued.err) == (0, "no queue 'defalt'; did you mean default?\n")
    assert (await cli("jobs", "--queue", "defalt")).err == queued.err
    assert "no jobs match" in (await cli("jobs", "--queue", "default", "--status", "running")).err
