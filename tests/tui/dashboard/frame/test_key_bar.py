"""Key bar: commands of the view, also clickable."""

from __future__ import annotations

import gc
import warnings

import pytest

from draftsman.errors import Failure
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import claim
from draftsman_tui.dashboard.command_table import COMMANDS
from draftsman_tui.dashboard.widgets.screen_lines import KeyBar
from tests.tui.dashboard.pilot import open_dashboard


async def test_key_bar_shows_commands_of_the_view(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.queued()
    async with open_dashboard(rt, owner) as seen:
        await seen.see("c cancel", "/ filter", "? help")
        await seen.see("n new")
        await seen.command("deliveries")
        await seen.until(lambda: "n new" not in seen.lines[-1])


async def test_command_name_is_clickable(rt: Runtime, owner: Actor) -> None:
    async with open_dashboard(rt, owner) as seen:
        await seen.see("? help")
        await seen.pilot.click(KeyBar, offset=(seen.lines[-1].index("? help") + 2, 0))
        await seen.dialog("HelpDialog")


async def test_denied_command_is_not_clickable(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.queued()
    async with open_dashboard(rt, owner, read_only=True) as seen:
        await seen.see("c cancel")
        shown = seen.app.main.query_one(KeyBar)
        assert {name: allowed for _, name, allowed in shown._shown_keys}["cancel"] is False


async def test_keys_that_fit_no_selected_job_are_not_shown(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.failed()
    queued = await make.queued()
    async with open_dashboard(rt, owner) as seen:

        def possible() -> list[str]:
            names = {"cancel", "retry"}
            shown = seen.app.screen.query_one(KeyBar)._shown_keys
            return [name for _, name, is_possible in shown if is_possible and name in names]

        await seen.rows("D-2", "D-1")
        await seen.until(lambda: possible() == ["cancel"])
        await seen.press("down")
        await seen.until(lambda: possible() == ["retry"])
        await seen.press("space", "up", "space")
        await seen.until(lambda: possible() == ["cancel", "retry"])
        await seen.press("escape", "up")
        await rt.job_control.cancel(queued, owner)
        await seen.until(lambda: possible() == ["retry"])
        await seen.job("D-2")
        await seen.until(lambda: possible() == ["retry"])


async def test_answer_is_not_shown_on_jobs_without_a_question(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.queued()
    await make.asked()
    async with open_dashboard(rt, owner) as seen:

        def may_answer() -> bool:
            shown = seen.app.screen.query_one(KeyBar)._shown_keys
            return {name: is_possible for _, name, is_possible in shown}.get("answer", False)

        await seen.rows("D-2", "D-1")
        await seen.until(may_answer)
        await seen.press("down")
        await seen.until(lambda: not may_answer())
        await seen.job("D-1")
        await seen.until(lambda: not may_answer())
        await seen.press("escape", "up")
        await seen.job("D-2")
        await seen.until(may_answer)
    async with open_dashboard(rt, owner, view="inbox") as seen:
        await seen.rows("D-2/1")
        await seen.until(may_answer)


async def test_keys_follow_what_fits_the_row(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.completed()
    await make.dead()
    await make.queued(notify=["log"])
    [sent] = await claim(rt)
    await rt.delivery_sender.record(sent, Failure("the disk is full", declared="PERMANENT"))
    async with open_dashboard(rt, owner) as seen:

        def names() -> set[str]:
            shown = seen.app.main.query_one(KeyBar)._shown_keys
            return {name for _, name, _ in shown} & {
                *("answer", "cancel", "retry", "dismiss", "why", "redeliver")
            }

        await seen.newest_first()
        await seen.rows("D-3", "D-2", "D-1")
        await seen.until(lambda: names() == {"cancel", "why"})
        await seen.press("down")
        await seen.until(lambda: names() == {"retry", "dismiss", "why"})
        await seen.press("down")
        await seen.until(lambda: names() == {"retry", "why"})
        await seen.command("dead")
        await seen.rows("D-2")
        await seen.see("r retry", "X dismiss")
        await seen.press("X")
        await seen.dialog("ConfirmDialog")
        await seen.press("y")
        await seen.until(lambda: names() == {"retry", "why"})
        await seen.command("deliveries")
        await seen.until(lambda: len(seen.keys) == 1)
        await seen.until(lambda: "redeliver" in names())
        await rt.outbox.redeliver([sent.seq], owner)
        await seen.until(lambda: "redeliver" not in names())


async def test_key_bar_is_redrawn_only_on_change(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await make.queued()
    async with open_dashboard(rt, owner) as seen:
        await seen.rows("D-3", "D-2", "D-1")
        updates: list[object] = []
        monkeypatch.setattr(KeyBar, "update", lambda *args, **options: updates.append(args))
        await seen.press("j", "j", "k")
        assert updates == []
        await seen.command("deliveries")
        await seen.see("deliveries ·")
        assert updates != []


async def test_empty_table_shows_how_to_submit_a_job(rt: Runtime, owner: Actor) -> None:
    async with open_dashboard(rt, owner, size=(80, 24)) as seen:
        await seen.see("No jobs yet. Press n to submit a job", "n new", "q quit")
        await seen.press("2")
        await seen.see("No open questions")
        assert "n new" not in seen.lines[-1]


async def test_command_canceled_before_its_start_logs_no_warning(rt: Runtime, owner: Actor) -> None:
    async with open_dashboard(rt, owner) as seen:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            seen.app.main.run(COMMANDS["refresh"])
            seen.app.workers.cancel_group(seen.app.main, "commands")
            await seen.pilot.pause()
            gc.collect()
        assert [str(warning.message) for warning in caught] == []
