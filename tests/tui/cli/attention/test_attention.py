"""`delegate`, `oncall` and `why` of a question: notifications, and the next step."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime, open_runtime
from draftsman.settings import load
from draftsman_testing.factories import QUESTION, Factory
from tests.support.cases import cases
from tests.tui.cli.cli_runner import Cli

LADDER = """
[questions]
ladders = { input = "default" }
[[ladders.default.steps]]
notify = ["ben"]
[[ladders.default.steps]]
notify = ["@oncall", "leads"]
after = 900
escalate = true
[oncall.default]
people = ["ben", "carol"]
start = 2026-01-05T09:00:00
timezone = "Europe/Berlin"
[oncall.backend]
file = "/nowhere/oncall.ics"
"""
DAY = QUESTION.model_copy(update={"expires_in": 86_400.0})


@pytest.fixture
def ben(config: Callable[[str | None], Path], capsys: pytest.CaptureFixture[str]) -> Cli:
    """Provide the command line of ben, with a ladder and a rotation."""
    path = config("ben")
    path.write_text(path.read_text(encoding="utf-8") + LADDER, encoding="utf-8")
    return Cli(path, capsys)


async def test_why_shows_who_was_notified_and_who_is_next(
    ben: Cli, config: Callable[[str | None], Path], rt: Runtime, make: Factory
) -> None:
    path = config("ben")
    path.write_text(path.read_text(encoding="utf-8") + LADDER, encoding="utf-8")
    async with open_runtime(load(path), pooled=False) as own:
        work = await Factory(own, make.owner).asked(DAY)
        await own.sweeps.run("ladders", LeaderTerm())
    name = f"{work.name}/1"
    output = (await ben("why", name)).out
    assert "notified ben (not sent yet) at " in output
    assert "next: @oncall, leads, with the right to answer from then on, in 15 min, at " in output
    assert "(ladder default)" in output
    assert "next: @oncall, leads" in (await ben("questions")).out
    (question,) = (await ben("questions", "--json")).json
    attention = question["attention"]
    assert (attention["ladder"], attention["next_step"]) == ("default", ["@oncall", "leads"])
    assert attention["notifications"][0]["recipient"] == "ben"
    assert (await ben("why", work.name, "--json")).json["attention"]["next_at"]
    assert (await ben("show", work.name, "--json")).json["attention"][0]["ladder"] == "default"
    (await ben("why", f"{work.name}/2")).refused(3, f"no question {work.name}/2")


async def test_a_question_is_delegated(ben: Cli, make: Factory) -> None:
    name = f"{(await make.asked(DAY)).name}/1"
    (await ben("delegate", name)).refused(2, "--to")
    (await ben("delegate", name, "zoe", "--to", "zoe")).refused(2, "give one person")
    (await ben("delegate", name, "zoe")).refused(2, "unknown person 'zoe'")
    (await ben("delegate", name, "--to", "ben")).refused(2, "cannot be delegated to yourself")
    (await ben("delegate", name, "--to", "carol")).refused(1, "carol may not answer")


@cases(
    ("command", "words"),
    [
        ("ack", ("1", "h")),
        ("snooze", ("1", "h", "30", "min")),
        ("delegate", ("ben", "1", "h")),
        ("extend", ("1", "h")),
    ],
)
async def test_a_duration_may_have_blanks(
    as_: Callable[[str | None], Cli], make: Factory, command: str, words: tuple[str, ...]
) -> None:
    name = f"{(await make.asked(DAY)).name}/1"
    assert name in (await as_("root")(command, name, *words)).out


async def test_a_delegation_is_shown(as_: Callable[[str | None], Cli], make: Factory) -> None:
    root = as_("root")
    name = f"{(await make.asked(DAY)).name}/1"
    done = await root("delegate", name, "--to", "ben", "--for", "2h")
    assert f"{name} delegated to ben; others wait until " in done.out
    listed = (await root("questions")).out
    assert "delegated by root to ben, others wait until " in listed
    places = [listed.index(text) for text in ("  1  ", "delegated by", "draftsman answer")]
    assert places == sorted(places)
    again = (await root("delegate", name, "--to", "ben", "--json")).json
    assert (again["ordinal"], again["person"]) == (1, "ben")


async def test_oncall_shows_who_is_on_duty_now_and_next(
    ben: Cli, as_: Callable[[str | None], Cli]
) -> None:
    output = (await ben("oncall", "default")).out
    assert output.startswith("default  ")
    assert " until Mon 20" in output
    assert "; next " in output
    assert output.endswith(" (Europe/Berlin)\n")
    assert " 09:00 +0" in output, "the handover in the time zone of the schedule"
    assert "away" not in output
    (shift,) = (await ben("oncall", "default", "--json")).json
    assert {shift["on_duty"][0]["person"], shift["next"]["person"]} == {"ben", "carol"}
    assert shift["on_duty"][0]["end"] == shift["next"]["start"]
    (await ben("oncall", "night")).refused(3, "schedules: backend, default")
    (await ben("oncall", "backend")).refused(1, "/nowhere/oncall.ics: No such file")
    both = await ben("oncall")
    assert (both.code, both.out.count("\n")) == (1, 2)
    assert both.out.startswith("backend  cannot be read: /nowhere/oncall.ics: No such file")
    assert json.loads((await ben("oncall", "--json")).out)[1]["timezone"] == "Europe/Berlin"
    assert "no on-call schedules" in (await as_("root")("oncall")).err


async def test_oncall_shows_until_when_a_person_on_duty_is_away(ben: Cli) -> None:
    kept = ben.config.read_text(encoding="utf-8")
    day = f"{datetime.now(UTC) - timedelta(days=3):%a}"
    hours = f'[questions]\nworking_hours = "{day} 09:00-10:00"'
    ben.config.write_text(kept.replace("[questions]", hours), encoding="utf-8")
    output = (await ben("oncall", "default")).out
    assert f" (away until {day} 20" in output
    (shift,) = (await ben("oncall", "default", "--json")).json
    assert shift["on_duty"][0]["away_until"]
