"""Keys of one's own are checked before anything is shown."""

from __future__ import annotations

import pytest

from draftsman.domain.people.actor import Actor
from draftsman.errors import ConfigError
from draftsman.runtime import Runtime
from draftsman.settings import DashboardSettings
from draftsman_tui.dashboard.command_table import COMMANDS
from draftsman_tui.dashboard.launch_options import keymap, resolve_options
from tests.tui.dashboard.pilot import open_dashboard

HIDES = {"redeliver"}
"""Of a job, it takes the place of redeliver-job where deliveries are in view."""


@pytest.mark.parametrize(
    ("name", "keys", "wanted"),
    [
        ("inbox", "i", "i"),
        ("inbox", "i, I", "i,I"),
        ("help", "f1,?", "f1,question_mark"),
        ("command", ",", "comma"),
        ("mark-range", "ctrl+space", "ctrl+@"),
        ("filter", "ctrl+f", "ctrl+f"),
        ("up", "up,w", "up,w"),
    ],
)
def test_a_key_is_understood(name: str, keys: str, wanted: str) -> None:
    others = {"why": "W"} if "w" in keys else {}
    assert keymap(DashboardSettings(keys={name: keys, **others}))[name] == wanted


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"nonsense": "x"}, "nonsense: unknown command; choose from: job-timeline, "),
        ({"inbox": "hyper+x"}, "inbox: unknown key 'hyper+x'"),
        ({"inbox": "shift+x"}, "unknown key 'shift+x'; examples: x, X"),
        ({"inbox": ""}, "unknown key ''"),
        ({"inbox": "tab"}, "reserved"),
        ({"inbox": "a"}, "inbox: 'a' is already bound to answer; remap answer too"),
        ({"sort": "/"}, "'/' is already bound to filter"),
        ({"inbox": "j"}, "'j' is already bound to down"),
        (
            {"inbox": "x", "dead": "x"},
            "inbox: 'x' is already bound to dead; choose another key for either",
        ),
    ],
)
def test_a_key_that_cannot_be_is_one_line(keys: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_options(DashboardSettings(keys=keys))
    assert said in str(caught.value)
    assert str(caught.value).startswith("[dashboard.keys] ")


def test_two_commands_change_their_keys() -> None:
    swapped = keymap(DashboardSettings(keys={"answer": "c", "cancel": "a"}))
    assert swapped == {"answer": "c", "cancel": "a"}


async def test_a_former_key_of_the_configuration_is_reported_when_the_dashboard_opens(
    rt: Runtime, owner: Actor
) -> None:
    text = "draftsman.toml: dashboard.keys.next-part is deprecated"
    options = resolve_options(DashboardSettings(), warnings=(text,))
    async with open_dashboard(rt, owner, warnings=options.warnings) as seen:
        await seen.wait_for_toast("next-part is deprecated")


def test_no_key_is_given_twice_as_it_comes() -> None:
    for place in {"job", *(name for one in COMMANDS for name in one.on or ())}:
        keys = [
            key
            for one in COMMANDS
            if place in (one.on or ()) or (one.on is None and place != "job")
            for key in COMMANDS.default_keys()[one.name].keys
            if key and one.name not in HIDES
        ]
        assert len(keys) == len(set(keys)), place
