"""Permission requests of agents, made by the adapter itself, and the decisions of people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from draftsman.agent_runs.protocol.agent_messages import AskMessage
from draftsman.agents.agent_client import AgentClient
from draftsman.agents.permissions import Call, Permissions
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.people.actor import Actor
from draftsman.questions.permission_rules.permission_rule import PermissionRule
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import EVENTS, Factory

SHOP = "https://git.example.org/acme/shop"
SHOP_NAME = "git.example.org/acme/shop"
"""The repository of its rules."""
TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
ROOTS = {"/workspace/repo": ".", "/home/agent": "~"}
ALLOW = "allow once"
DENY = "deny"
FOR_JOB = "allow for this job"


class _Recorder:
    """An agent's client that records the message and does not send it."""

    def __init__(self) -> None:
        self.start: dict[str, Any] = {"answers": {}, "steps": {}}
        self.fields: dict[str, Any] = {}

    def call(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        assert kind == "ask"
        self.fields = fields
        return {"value": ALLOW}


def message(call: Call) -> dict[str, Any]:
    """Return the message with which the adapter asks for a call."""
    recorder = _Recorder()
    Permissions(cast("AgentClient", recorder), "Claude Code").ask(call, TREE)
    return recorder.fields


def request(command: str, **given: Any) -> dict[str, Any]:
    """Return the message with which the adapter asks for a command."""
    return message(Call.of({"kind": "execute", "rawInput": {"command": command, **given}}, ROOTS))


def question(command: str, **given: Any) -> QuestionSpec:
    """Return the question of a permission request, as a worker stores it."""
    return AskMessage.model_validate({"id": "1"} | request(command, **given)).question()


async def asked(make: Factory, command: str, repo: str = SHOP, **fields: Any) -> ClaimedJob:
    """Ask for a command in a new job of a repository."""
    return await make.asked(question(command), repo=repo, **fields)


async def decide(
    rt: Runtime, work: ClaimedJob, answer: str, actor: Actor, ordinal: int = 1
) -> None:
    """Answer a permission request."""
    response = Response(source_event_id=f"decision {next(EVENTS)}", text=answer)
    verdict = await rt.questions.answer(work.number, ordinal, response, actor)
    assert verdict.accepted, verdict.reason


async def decided(
    rt: Runtime, make: Factory, commands: Sequence[str], answer: str, actor: Actor, repo: str = SHOP
) -> list[ClaimedJob]:
    """Ask for each command in a job of its own, and answer it."""
    jobs = [await asked(make, command, repo) for command in commands]
    for work in jobs:
        await decide(rt, work, answer, actor)
    return jobs


async def ratified(
    rt: Runtime, pattern: str, actor: Actor, seconds: float = 3600.0, repo: str = SHOP_NAME
) -> PermissionRule:
    """Propose and ratify a rule."""
    rule = await rt.rules.propose(repo, pattern, actor)
    return await rt.rules.ratify(rule.id, actor, seconds)
