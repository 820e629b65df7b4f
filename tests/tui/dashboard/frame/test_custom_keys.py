"""Custom keys: validation before the dashboard opens."""

from __future__ import annotations

import pytest

from draftsman.errors import ConfigError
from draftsman.settings.dashboard import DashboardSettings
from draftsman_tui.dashboard.command_table import COMMANDS
from draftsman_tui.dashboard.launch_options import keymap, resolve_options
from tests.support.cases import cases

HIDES = {"redeliver", "next-match", "previous-match"}
"""On the job screen, they replace other commands: in the deliveries tab, and during a search."""


@cases(
    ("name", "keys", "expected"),
    [
        ("inbox", "B", "B"),
        ("inbox", "B, E", "B,E"),
        ("help", "f1,?", "f1,question_mark"),
        ("command", ",", "comma"),
        ("mark-range", "ctrl+space", "ctrl+@"),
        ("filter", "ctrl+g", "ctrl+g"),
        ("up", "up,w", "up,w"),
    ],
)
def test_key_spellings(name: str, keys: str, expected: str) -> None:
    others = {"why": "E"} if "w" in keys else {}
    assert keymap(DashboardSettings(keys={name: keys, **others}))[name] == expected


@cases(
    ("keys", "message"),
    [
        ({"nonsense": "x"}, "nonsense: unknown command; help (?) and : list the names"),
        ({"inbux": "x"}, "inbux: unknown command; did you mean inbox"),
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
def test_invalid_key_is_rejected_in_one_line(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_options(DashboardSettings(keys=keys))
    assert message in str(caught.value)
    assert str(caught.value).startswith("[dashboard.keys] ")


def test_two_commands_change_their_keys() -> None:
    swapped = keymap(DashboardSettings(keys={"answer": "c", "cancel": "a"}))
    assert swapped == {"answer": "c", "cancel": "a"}


def test_default_keys_do_not_conflict() -> None:
    for view in {"job", *(name for command in COMMANDS for name in command.on or ())}:
        keys = [
            key
            for command in COMMANDS
            if view in (command.on or ()) or (command.on is None and view != "job")
            for key in COMMANDS.default_keys()[command.name].keys
            if key and command.name not in HIDES
        ]
        assert len(keys) == len(set(keys)), view
