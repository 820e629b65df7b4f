"""Own commands: programs of the configuration on a key."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from draftsman.errors import ConfigError, Refused
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.settings.dashboard import DashboardSettings, OwnCommandSettings
from draftsman_testing.factories import Factory
from draftsman_tui.dashboard.launch_options import resolve_options
from draftsman_tui.dashboard.own_commands import OwnCommand
from tests.support.cases import cases
from tests.tui.dashboard.pilot import open_dashboard

HOSTILE = "'; touch hacked; $(touch hacked) `touch hacked` \"x"


def _settings(name: str = "own", **fields: Any) -> DashboardSettings:
    return DashboardSettings(commands={name: OwnCommandSettings(**fields)})


@cases(
    ("name", "fields", "message"),
    [
        ("own", {"run": "x 'y"}, 'own: "x \'y" cannot be read: No closing quotation'),
        ("own", {"run": " "}, "own: run is empty; give the program and its arguments"),
        ("own", {"run": "x {titel}"}, "own: unknown placeholder {titel}; allowed: {job}, {number}"),
        ("own", {"run": "{job} x"}, "own: a placeholder cannot be the program"),
        ("own", {"run": "sh -c 'echo {title}'"}, "own: a placeholder in the text of a shell would"),
        ("own", {"run": "env bash -lc {title}"}, "own: a placeholder in the text of a shell would"),
        ("Own one", {"run": "x"}, "Own one: use 1 to 40 of a-z"),
        ("cancel", {"run": "x"}, "cancel: is a command of the dashboard; choose another name"),
        ("own", {"run": "x", "key": "a"}, "own: 'a' is already bound to answer; remap answer too"),
        ("own", {"run": "x", "key": "hyper+x"}, "own: unknown key 'hyper+x'"),
    ],
)
def test_a_bad_command_is_one_line(name: str, fields: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_options(_settings(name, **fields))
    assert str(caught.value).startswith(f"[dashboard.commands] {message}")
    assert "\n" not in str(caught.value)


def test_a_value_is_a_part_of_one_word_and_never_an_option() -> None:
    own = OwnCommand(["x", "--job={job}", "{title}"])
    values = {"job": "D-1", "title": HOSTILE}
    assert own.arguments(values) == ["x", "--job=D-1", HOSTILE]
    with pytest.raises(Refused, match="would be an option; put -- first"):
        own.arguments({"job": "D-1", "title": "--force"})
    assert OwnCommand(["x", "--", "{title}"]).arguments({"title": "--force"})[2] == "--force"


async def test_a_key_runs_a_program_with_values_of_the_job(
    make: Factory, rt: Runtime, owner: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write = "import sys; open(sys.argv[1], 'w').write('|'.join(sys.argv[2:]))"
    (tmp_path / "write.py").write_text(write)
    run = f"{sys.executable} write.py out {{job}} {{title}}"
    settings = DashboardSettings(
        commands={
            "tell-it": OwnCommandSettings(run=run, key="f5", background=True),
            "fails": OwnCommandSettings(run="false", background=True),
            "opens": OwnCommandSettings(run="gh pr view {url}", background=True),
            "absent": OwnCommandSettings(run="no-such-program", background=True),
            "screen": OwnCommandSettings(run="true"),
        }
    )
    options = resolve_options(settings)
    await make.queued(title=HOSTILE)
    async with open_dashboard(rt, owner, own=options.own, keys=options.keys) as seen:
        await seen.rows("D-1")
        await seen.see("f5 tell-it")
        await seen.press("f5")
        await seen.wait_for_toast("has ended, exit code 0")
        assert (tmp_path / "out").read_text() == f"D-1|{HOSTILE}"
        assert not (tmp_path / "hacked").exists()
        for name, why in (
            ("fails", "false ended with exit code 1"),
            ("opens", "D-1 has no url"),
            ("absent", "no-such-program: No such file"),
            ("screen", "this terminal cannot be left; set background = true"),
        ):
            await seen.command(name)
            await seen.wait_for_toast(why)
        await seen.press("ctrl+p")
        await seen.dialog("CommandPalette")
        await seen.type("tell-it")
        await seen.see("Run ", "write.py out {job} {title}")
    async with open_dashboard(
        rt, owner, own=options.own, keys=options.keys, read_only=True
    ) as seen:
        await seen.rows("D-1")
        await seen.press("f5")
        await seen.wait_for_toast("tell-it: this dashboard is read-only")
