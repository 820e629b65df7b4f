"""A thousand permission prompts, replayed with rules: fewer questions, none against people."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest

from draftsman.agent_runs.protocol.agent_messages import AskMessage
from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.permission_rules.command_pattern import matches
from draftsman.questions.permission_rules.permission_rule import (
    PermissionDecision,
    RuleCandidate,
    candidates,
)
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.permission_prompts import Prompt, prompts
from tests.support.permissions import ALLOW, DENY, decide, message
from tests.support.statements import rows

COUNT = 1000
SWEEP_EVERY = 25
"""Prompts between two proposals, which a person ratifies at once."""
NOW = datetime(2026, 11, 27, tzinfo=UTC)


def words_of(prompt: Prompt) -> tuple[str, ...] | None:
    """Return the words that the worker would store for a prompt."""
    return AskMessage.model_validate({"id": "1"} | message(prompt.call)).question().command_words


def replay(recorded: list[Prompt]) -> tuple[int, list[Prompt], list[RuleCandidate]]:
    """Return the number of questions to people, the allowed prompts, and the rules."""
    decisions: list[PermissionDecision] = []
    rules: list[RuleCandidate] = []
    allowed: list[Prompt] = []
    asked = 0
    for number, prompt in enumerate(recorded, 1):
        words = words_of(prompt)
        if words and any(r.repo == prompt.repo and matches(r.pattern, words) for r in rules):
            allowed.append(prompt)
        else:
            asked += 1
            if words:
                decisions.append(
                    PermissionDecision(
                        *(number, 1, prompt.repo, list(words), prompt.allowed, "ben", NOW)
                    )
                )
                if not prompt.allowed:
                    rules = [rule for rule in rules if not matches(rule.pattern, words)]
        if number % SWEEP_EVERY == 0:
            known = {(rule.repo, rule.pattern) for rule in rules}
            rules += [c for c in candidates(decisions, 5) if (c.repo, c.pattern) not in known]
    return asked, allowed, rules


def test_a_thousand_prompts_need_fewer_questions_and_nothing_denied_is_allowed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    recorded = prompts(COUNT)
    asked, allowed, rules = replay(recorded)
    assert asked + len(allowed) == COUNT
    assert [prompt.command for prompt in allowed if not prompt.allowed] == []
    denied = [words for prompt in recorded if not prompt.allowed and (words := words_of(prompt))]
    assert denied, "people denied plain commands too"
    assert not any(matches(rule.pattern, words) for rule in rules for words in denied)
    assert len(allowed) > COUNT // 3
    with capsys.disabled():
        sys.stdout.write(
            f"\n{COUNT:,} prompts: {asked} questions with {len(rules)} rules,"
            f" {len(allowed)} fewer\n"
        )


def test_the_figure_does_not_depend_on_the_order_of_the_prompts() -> None:
    for seed in (1, 2):
        _, allowed, _ = replay(prompts(COUNT, seed))
        assert [prompt.command for prompt in allowed if not prompt.allowed] == [], seed
        assert len(allowed) > COUNT // 3


@pytest.mark.slow(fast="test_a_thousand_prompts_need_fewer_questions_and_nothing_denied_is_allowed")
async def test_the_database_asks_as_often(
    rt: Runtime, make: Factory, people: People, conn: Connection
) -> None:
    recorded = prompts(COUNT)
    expected, _, _ = replay(recorded)
    asked = 0
    for number, prompt in enumerate(recorded, 1):
        question = AskMessage.model_validate({"id": "1"} | message(prompt.call)).question()
        work = await make.asked(question, repo=f"https://git.example.org/{prompt.repo}")
        if (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_INPUT:
            asked += 1
            await decide(rt, work, ALLOW if prompt.allowed else DENY, people.ben)
        else:
            assert prompt.allowed, prompt.command
        if number % SWEEP_EVERY == 0:
            await rt.rules.sweep(LeaderTerm())
            for rule in await rt.rules.all():
                if rule.status == "proposed":
                    await rt.rules.ratify(rule.id, people.olga)
    assert asked == expected
    uses = await rows(conn, "SELECT count(*) FROM draftsman.rule_uses")
    assert uses == [(COUNT - expected,)]
