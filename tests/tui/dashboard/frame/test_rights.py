"""Permissions: dimmed commands are those that the core rejects, for each role and verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from draftsman.errors import DraftsmanError, NotPermitted
from draftsman.jobs.job import Source
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.people.policy import Verb
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import ScheduleSpec
from draftsman.schedules.template import define
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import PEOPLE, People
from draftsman_tui.dashboard.command_table import COMMANDS
from draftsman_tui.dashboard.frame.actions import help_groups
from tests.tui.dashboard.pilot import open_dashboard

Try = Callable[[Runtime, Actor], Awaitable[object]]
REPO = Repo.at(parse("https://git.example/acme/pay"))
BOARD = BoardConfig(board_id="a" * 24, name="Plans")


def _yes(text: str | None = None, *, decision: Decision | None = None) -> Response:
    return Response(source_event_id="e", text=text, decision=decision)


WRITES: Final[dict[Verb, Try]] = {
    Verb.SUBMIT: lambda rt, who: rt.submissions.submit(invocation(type="noop"), who),
    Verb.ANSWER: lambda rt, who: _answered(rt, 1, _yes("red"), who),
    Verb.APPROVE: lambda rt, who: _answered(rt, 2, _yes(decision=Decision.APPROVE), who),
    Verb.TELL: lambda rt, who: rt.messages.send(3, who, "use the v2 API"),
    Verb.PAUSE: lambda rt, who: rt.job_control.pause(3, who, "r"),
    Verb.CANCEL: lambda rt, who: rt.job_control.cancel(3, who),
    Verb.RETRY: lambda rt, who: rt.job_control.retry(4, who),
    Verb.DISMISS: lambda rt, who: rt.job_control.dismiss(4, who),
    Verb.EXTEND: lambda rt, who: rt.questions.extend(1, 1, 60, who),
    Verb.SWEEP: lambda rt, who: rt.sweeps.run_now("expire", who),
    Verb.RESTORE: lambda rt, who: rt.archives.restore(Path("/nowhere"), who),
    Verb.REDELIVER: lambda rt, who: rt.outbox.redeliver([1], who),
    Verb.UNLINK: lambda rt, who: rt.people.unlink("slack", "U-NEW", who),
    Verb.BOARDS: lambda rt, who: boards_of(rt).save(BOARD, who),
    Verb.REPOS: lambda rt, who: rt.repos.add(REPO, RepoProfile(), who),
    Verb.ORDER: lambda rt, who: rt.queues.move(3, "top", who),
    Verb.QUEUES: lambda rt, who: rt.queues.pause("q", who, "r"),
    Verb.RESERVE: lambda rt, who: rt.queues.release_reservation("r", who),
    Verb.SCHEDULES: lambda rt, who: rt.schedules.pause("hourly", who),
    Verb.RULES: lambda rt, who: rt.rules.propose("shop", "pytest tests/**", who),
    Verb.TEMPLATES: lambda rt, who: rt.templates.add("x", define({"type": "noop"}), who),
}
"""Service call of each verb, on the rows of the test."""


async def _answered(rt: Runtime, job: int, response: Response, actor: Actor) -> None:
    verdict = await rt.questions.answer(job, 1, response, actor)
    if not verdict.accepted:
        raise NotPermitted(verdict.reason)


def test_every_verb_of_core_has_a_command() -> None:
    verbs = set(Verb) - {Verb.BUDGET}  # an answer, whose question decides
    assert {command.needs for command in COMMANDS} - {None} == verbs == WRITES.keys()


@pytest.mark.parametrize("name", PEOPLE)
async def test_dimmed_commands_are_those_that_the_core_rejects(
    make: Factory, rt: Runtime, people: People, owner: Actor, name: str
) -> None:
    await make.asked()
    await make.asked(GATE)
    await make.queued(notify=["log"])
    await make.failed()
    request = {"type": "http_request", "payload": {"url": "https://example.org/"}}
    await rt.schedules.add(ScheduleSpec("hourly", "@hourly", request=request), owner)
    code = await rt.people.create_link_code(Actor("slack", "U-NEW", "New"))
    await rt.people.link(code, owner)
    who = people.on(Source.TUI, name)
    for verb, write in WRITES.items():
        command = next(candidate for candidate in COMMANDS if candidate.needs is verb)
        greyed = command.refusal(rt.policy, who, ["root"], read_only=False)
        if name == "erin" and verb is Verb.APPROVE:
            continue  # an approver, and not of this gate: the gate alone can tell
        message = ""
        try:
            await write(rt, who)
        except NotPermitted as error:
            message = str(error)
        except DraftsmanError:
            pass  # may, but there is nothing to do it to
        assert (message.partition(";")[0] if message else None) == (
            greyed.partition(";")[0] if greyed else None
        ), f"{name} {verb}"


async def test_dimmed_commands_are_rejected_with_the_reason(
    make: Factory, rt: Runtime, people: People
) -> None:
    job = await make.failed()
    async with open_dashboard(rt, people.on(Source.TUI, "ben")) as seen:
        await seen.rows(f"D-{job}")
        await seen.press("n", "N", "r", "R", "ctrl+k", "c", "x", "y", "e")
        assert type(seen.app.screen).__name__ == "MainScreen"
        await seen.wait_for_toast("Ben may not submit (needs the role invoker)")
        await seen.wait_for_toast("Ben may not cancel")
        for name in ("new", "sweep expire", "retry-all status:failed", "unlink slack:U"):
            await seen.command(name)
        await seen.wait_for_toast("Ben may not submit (needs the role invoker)")
        await seen.wait_for_toast("Ben may not sweep (needs the role operator)")
        await seen.wait_for_toast("Ben may not retry")
        await seen.wait_for_toast("Ben may not unlink")
        await seen.press("question_mark")
        await seen.dialog("HelpDialog")
        help_texts = {
            name: help for lines in help_groups(seen.app.main).values() for _, name, help in lines
        }
        assert help_texts[":sweep NAME"].endswith("(not permitted)")
        assert not help_texts[":answer"].endswith("(not permitted)")
        await seen.press("end")
        await seen.see("(not permitted)")
    assert len(await rt.read_model.jobs()) == 1


def test_read_only_dims_every_writing_command(rt: Runtime, owner: Actor) -> None:
    looks = {
        command.name
        for command in COMMANDS
        if command.refusal(rt.policy, owner, (), read_only=True) is None
    }
    writing = set(COMMANDS.names) - looks
    assert {"answer", "new", "copy-job", "cancel-force", "retry-all", "link", "map"} <= writing
    assert {"why", "diff", "copy", "browse", "people", "filter", "help", "open"} <= looks
