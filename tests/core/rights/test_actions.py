"""The right that an action declares is the right that the database enforces."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

import draftsman.actions
from draftsman.actions.action import ACTIONS, Action, Call
from draftsman.errors import DraftsmanError, Failure, NotPermitted
from draftsman.job_types.published.description import TypeDescription
from draftsman.jobs.job import AGENT_TYPE, Source
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.reserved_names import PULL_REQUEST, Owner
from draftsman.jobs.runs.outcome import Done
from draftsman.people.actor import Actor
from draftsman.people.policy import Person, Policy, Verb
from draftsman.repos.repo_catalog import Repo, RepoLocation
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import ScheduleSpec
from draftsman.schedules.template import define
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import GATE, QUESTION, REVIEW, Factory
from draftsman_testing.outbox import claim
from draftsman_testing.people import PEOPLE
from tests.core.rights.conftest import As
from tests.support.roles import Roles
from tests.support.statements import FORBIDDEN

for module in pkgutil.iter_modules(draftsman.actions.__path__, f"{draftsman.actions.__name__}."):
    import_module(module.name)
import_module("draftsman_bots.trello.records.actions")

WHO: Final = (*PEOPLE, "stranger")
AUTHOR: Final = "erin"
"""Who requested the jobs, and added the schedule."""
OWNERS_ALONE: Final = {Verb.SWEEP, Verb.RESTORE}
"""Rights on all rows, for which the database wants more than a role of draftsman."""
OTHERWISE: Final = {
    "request.submit now": "it also needs the right to submit, which no operator here has",
    "schedule.apply": "what it adds needs the right to submit, and no other",
}
"""Actions that need more than their declared right, or another."""
DESCRIBED: Final = TypeDescription(
    name="report:weekly",
    place="company.jobs:weekly",
    queue="q",
    parameters={"type": "object", "properties": {"week": {"type": "integer"}}},
)
LIMITED: Final = [item for item in ACTIONS.values() if item.right is not None]
Row = tuple[Any, ...]


@pytest.fixture
async def rows(as_role: As, known: Runtime, make: Factory, tmp_path: Path) -> Mapping[str, Row]:
    """Give a row for each action that limits its people, with the arguments of a call."""
    erin = await as_role(AUTHOR)
    actor = await erin.actor()
    owner = make.owner

    async def job(**fields: Any) -> int:
        request = invocation(**{"type": "noop", "queue": "q"} | fields)
        return (await erin.submissions.submit(request, actor)).number

    async def asked(item: Any) -> tuple[int, int]:
        work = await make.running(await job(queue="asked"))
        await known.asking.ask(work.lease, item, invoker=AUTHOR)
        return work.number, 1

    paused, finished = await job(), await job()
    failed, dismissed = [await make.running(await job(queue="failed")) for _ in range(2)]
    for work in (failed, dismissed):
        await known.settlement.failure(work, Failure("no such thing", declared="PERMANENT"))
    await known.job_control.dismiss(dismissed.number, owner)
    await erin.job_control.cancel(finished, actor)
    await known.job_control.pause(paused, owner, "noon")
    await job(group={"name": "release", "kind": "parallel"})
    request: dict[str, Any] = {"type": "http_request", "payload": {"url": "https://e.org/"}}
    for name, is_paused in (("hourly", False), ("daily", True)):
        await erin.schedules.add(ScheduleSpec(name, "@hourly", request=request), actor)
        if is_paused:
            await erin.schedules.pause(name, actor)
    await known.templates.add("report", define({"type": "noop"}), owner)
    (tmp_path / "shop").mkdir()
    repo = Repo.at(parse("https://git.example.org/acme/shop"))
    repo = await known.repos.add(repo, profile({}), owner)
    await known.repos.map(RepoLocation(repo, ""), owner, label="shop")
    texts = ("pytest tests/**", "make test")
    proposed, active = [(await known.rules.propose("acme/shop", text, owner)).id for text in texts]
    await known.queues.pause("p", owner, "noon")
    code = await known.people.create_link_code(Actor("slack", "U9", "Erin"))
    await erin.people.link(code, actor)
    await job(notify=["log"])
    delivery, *_ = await claim(known)
    await known.delivery_sender.record(delivery, Failure("full", declared="PERMANENT"))
    question = await asked(QUESTION)
    gate = await asked(GATE)
    review = await asked(REVIEW)
    work = await make.running(await job(type=AGENT_TYPE, title="x", queue="done"))
    await known.checkpoints.begin_step(work.lease, PULL_REQUEST, None, Owner.WORKER)
    pull = {"number": 7, "url": "https://git.example.org/acme/shop/pulls/7"}
    await known.checkpoints.finish_step(work.lease, PULL_REQUEST, pull, Owner.WORKER)
    await known.settlement.outcome(work, Done({"pr_url": pull["url"]}))
    board = BoardConfig(board_id="b" * 24, name="Work")
    await boards_of(known).save(board, owner)
    return {
        "job.cancel": (await job(),),
        "job.pause": (await job(), "noon"),
        "job.resume": (paused,),
        "job.tell": (await job(type=AGENT_TYPE, title="x"), "use the v2 API"),
        "job.retry": (finished,),
        "job.dismiss": (failed.number,),
        "job.undismiss": (dismissed.number,),
        "job.move": (await job(), "top"),
        "job.priority": (await job(), 5),
        "group.cancel": ("release",),
        "question.answer": (question, "red"),
        "question.extend": (question, 60.0),
        "question.ack": (question,),
        "question.snooze": (question,),
        "question.delegate": (question, "ben"),
        "question.approve": (gate,),
        "question.deny": (gate,),
        "question.request-changes": (review, "use the v2 API"),
        "request.submit": (invocation(type="noop", queue="q"),),
        "request.run type": (DESCRIBED, {"week": 31}),
        "request.submit many": ([invocation(type="noop", queue="q")],),
        "job.cancel tree": (await job(),),
        "job.revise": (work.number, invocation(type="noop", queue="q")),
        "job.merge": (work.number,),
        "queue.pause": ("q", "noon"),
        "queue.resume": ("p",),
        "queue.release": ("q",),
        "queue.drain": ("asked",),
        "schedule.pause": ("hourly",),
        "schedule.resume": ("daily",),
        "schedule.add": (ScheduleSpec("weekly", "@weekly", request={"type": "noop"}),),
        "schedule.remove": ("hourly",),
        "schedule.run": ("hourly",),
        "template.add": ("new", define({"type": "noop"})),
        "template.edit": (
            "report",
            await known.templates.get("report"),
            define({"type": "noop", "queue": "r"}),
        ),
        "template.run": ("report", {}),
        "template.remove": ("report",),
        "rule.ratify": (proposed,),
        "rule.revoke": (active,),
        "rule.propose": ("make lint", "acme/shop"),
        "delivery.redeliver": ([delivery.seq],),
        "repository.make default": (repo,),
        "repository.map": (repo, "pay"),
        "repository.add": (Repo.at(parse("https://git.example.org/acme/new")), profile({})),
        "repository.check": (RepoLocation(repo, ""), "0" * 40, []),
        "repository.unmap": (repo, "shop"),
        "repository.remove": (repo,),
        "board.watch": (board,),
        "board.unwatch": (board, without_webhook),
        "account.unlink": (("slack", "U9"),),
    }


async def without_webhook(_: Runtime, __: BoardConfig) -> None:
    """Delete no webhook."""


async def test_the_database_enforces_the_declared_right(
    as_role: As, rows: Mapping[str, Row], roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = _policy(roles)
    sessions = {who: await as_role(who) for who in WHO}
    allowed = {
        (item.key, who): _may(policy, item, Actor(Source.CLI, roles.name(who), who))
        for item in LIMITED
        if item.right not in OWNERS_ALONE and item.key not in OTHERWISE
        for who in WHO
    }
    for name in ("check", "check_answer", "check_vote", "check_approver"):
        monkeypatch.setattr(Policy, name, lambda *_, **__: None)  # the database alone decides
    found = {}
    for key, who in sorted(allowed, key=allowed.__getitem__):  # those who may not act first
        rt = sessions[who]
        row, *arguments = rows[key]
        try:
            await ACTIONS[key].run(Call(rt, await rt.actor()), row, *arguments)
        except DraftsmanError as error:  # else its row is as the person before has left it
            found[key, who] = error.sqlstate != FORBIDDEN
        else:
            found[key, who] = True
    assert found == allowed


@pytest.mark.parametrize("item", LIMITED, ids=lambda item: item.key)
def test_each_right_is_tried(item: Action[Any, ..., Any], roles: Roles) -> None:
    policy = _policy(roles)
    names = {_may(policy, item, Actor(Source.CLI, roles.name(who), who)) for who in WHO}
    assert names == {True, False}


def _policy(roles: Roles) -> Policy:
    known = roles.people()
    people = {
        name: Person(name, entry.roles, dict(entry.ids)) for name, entry in known.people.items()
    }
    return Policy(people, known.groups)


def _may(policy: Policy, item: Action[Any, ..., Any], account: Actor) -> bool:
    """Return whether a person may act on a row of the author."""
    actor = policy.resolve(account)
    with suppress(NotPermitted):
        if item.right is Verb.APPROVE:
            policy.check_vote(actor, GATE.approvers or [], invoker=AUTHOR)
        elif item.right is not None:
            policy.check(actor, item.right, invoker=AUTHOR)
        return True
    return False
