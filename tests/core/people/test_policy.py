"""Permissions: the table of verbs and roles, and the rules of approvals."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from draftsman.errors import NotPermitted
from draftsman.jobs.job import Source
from draftsman.people.actor import SYSTEM, Actor
from draftsman.people.configuration import configured_policy as configured
from draftsman.people.policy import ROLES, Person, Policy, Verb
from draftsman.settings import settings_model
from draftsman_testing.people import GROUPS, PEOPLE
from tests.support.cases import cases

ROLE_OF = {
    Verb.SUBMIT: "invoker",
    Verb.ANSWER: "responder",
    Verb.APPROVE: "approver",
    Verb.BUDGET: "operator",
    Verb.TELL: "responder",
    Verb.PAUSE: "operator",
    Verb.CANCEL: "operator",
    Verb.RETRY: "operator",
    Verb.DISMISS: "operator",
    Verb.EXTEND: "operator",
    Verb.SWEEP: "operator",
    Verb.RESTORE: "operator",
    Verb.REDELIVER: "operator",
    Verb.UNLINK: "operator",
    Verb.BOARDS: "operator",
    Verb.REPOS: "operator",
    Verb.QUEUES: "operator",
    Verb.RESERVE: "operator",
    Verb.ORDER: "operator",
    Verb.TEMPLATES: "operator",
    Verb.SCHEDULES: "operator",
    Verb.RULES: "operator",
}
OWN = {
    Verb.ANSWER,
    Verb.TELL,
    Verb.PAUSE,
    Verb.CANCEL,
    Verb.RETRY,
    Verb.DISMISS,
    Verb.EXTEND,
    Verb.UNLINK,
    Verb.SCHEDULES,
}
POLICY = Policy(
    {role: Person(role, frozenset({role}), {Source.CLI: role}) for role in ROLES},
    {"all": tuple(ROLES)},
)


def _actor(role: str) -> Actor:
    return POLICY.resolve(Actor(Source.CLI, role, role.title()))


@cases("verb", Verb)
@cases("role", sorted(ROLES))
def test_a_role_has_exactly_its_permissions(verb: Verb, role: str) -> None:
    if ROLE_OF[verb] == role:
        POLICY.check(_actor(role), verb)
    else:
        with pytest.raises(NotPermitted, match=rf"needs the role {ROLE_OF[verb]}\); allowed: "):
            POLICY.check(_actor(role), verb)


@cases("verb", Verb)
def test_an_invoker_may_control_but_not_approve_an_own_job(verb: Verb) -> None:
    actor = _actor("invoker")
    if verb in OWN or verb is Verb.SUBMIT:
        POLICY.check(actor, verb, invoker="invoker")
    else:
        with pytest.raises(NotPermitted):
            POLICY.check(actor, verb, invoker="invoker")
    if verb in OWN:
        for other in ("operator", None, ""):
            with pytest.raises(NotPermitted):
                POLICY.check(actor, verb, invoker=other)


@cases("verb", Verb)
def test_without_people_only_the_owner_of_the_database_has_permissions(verb: Verb) -> None:
    empty = Policy()
    with pytest.raises(NotPermitted, match="no people are configured") as refused:
        empty.check(empty.resolve(Actor(Source.CLI, "root", "Root")), verb)
    assert "draftsman people set NAME --login LOGIN --role" in str(refused.value.hint)
    empty.check(empty.resolve(Actor(Source.CLI, "root", "Root", owner=True)), verb)


def test_an_actor_is_mapped_to_the_person_of_its_channel_only() -> None:
    people = configured(settings_model().model_validate({"people": PEOPLE, "groups": GROUPS}))
    same = [(Source.CLI, "carol"), (Source.TUI, "carol"), (Source.API, "carol")]
    for channel, id in (*same, ("slack", "U-CAROL")):
        actor = people.resolve(Actor(channel, id, "C"))
        assert (actor.person, {*actor.roles}, actor.voter) == ("carol", {"approver"}, "carol")
    for channel, id in (("slack", "carol"), (Source.API, "U-CAROL"), (Source.MCP, "carol")):
        unlinked = people.resolve(Actor(channel, id, "C"))
        assert (unlinked.person, unlinked.roles) == (None, frozenset())
        assert unlinked.voter == f"{channel}:{id}"


def test_an_actors_name_gives_no_role() -> None:
    claimed = Actor("slack", "x", "X", person="operator", roles=ROLES)
    resolved = POLICY.resolve(replace(claimed, roles=frozenset()))
    with pytest.raises(NotPermitted):
        POLICY.check(resolved, Verb.SWEEP)


def test_the_system_is_neither_an_owner_nor_in_a_role() -> None:
    assert (SYSTEM.name, SYSTEM.owner, SYSTEM.roles) == ("internal:system", False, frozenset())


PEOPLE_OF_GATES = Policy(
    {
        name: Person(name, frozenset({"approver"}), {Source.CLI: name})
        for name in ("carol", "dave", "erin")
    },
    {"leads": ("carol", "dave")},
)


def _votes(name: str, approvers: list[str], policy: Policy = PEOPLE_OF_GATES) -> bool:
    try:
        policy.check_vote(policy.resolve(Actor(Source.CLI, name, name)), approvers, invoker="erin")
    except NotPermitted:
        return False
    return True


def test_a_list_of_approvers_is_people_and_groups() -> None:
    assert PEOPLE_OF_GATES.approvers(["leads", "erin"]) == {"carol", "dave", "erin"}
    assert PEOPLE_OF_GATES.approvers([]) == frozenset()
    assert _votes("carol", ["leads"])
    assert not _votes("erin", ["leads"])


def test_approval_fails_closed() -> None:
    assert not any(_votes(name, []) for name in ("carol", "dave", "erin"))
    assert not _votes("stranger", ["stranger"])


def test_a_self_approval_is_refused_unless_configured() -> None:
    assert not _votes("erin", ["erin"])
    assert _votes("erin", ["erin"], replace(PEOPLE_OF_GATES, self_approval=True))


def test_a_role_without_a_person_decides_nothing() -> None:
    unmapped = Actor("slack", "U1", "Somebody", roles=frozenset({"approver"}))
    with pytest.raises(NotPermitted, match="Somebody is not linked to a person"):
        PEOPLE_OF_GATES.check_vote(unmapped, ["carol"], invoker="erin")


def test_a_name_on_the_list_does_not_replace_the_role() -> None:
    people = dict(PEOPLE_OF_GATES.people) | {"ben": Person("ben", frozenset({"responder"}), {})}
    lenient = replace(PEOPLE_OF_GATES, people=people)
    ben = Actor(Source.CLI, "ben", "Ben", person="ben", roles=frozenset({"responder"}))
    with pytest.raises(NotPermitted, match="needs the role approver"):
        lenient.check_vote(ben, ["ben"], invoker="anna")


def test_a_refused_decision_names_the_approvers_of_this_job_only() -> None:
    names = ("responder", "approver")
    with pytest.raises(NotPermitted, match=r"needs the role approver\); allowed: responder$"):
        POLICY.check_vote(_actor("operator"), names, invoker="approver")
    with pytest.raises(NotPermitted, match=r"may not approve it; allowed: responder$"):
        POLICY.check_vote(_actor("approver"), names, invoker="approver")
    with pytest.raises(NotPermitted, match=r"allowed: none unless .* self_approval is set"):
        POLICY.check_vote(_actor("approver"), ("approver",), invoker="approver")


@cases(
    ("login", "giver", "then"),
    [
        (None, "the database owner", "; then run: draftsman people import"),
        ("anna", "the database owner anna", ""),
    ],
)
def test_a_refusal_names_the_unassigned_role_and_the_people_who_can_assign_it(
    login: str | None, giver: str, then: str
) -> None:
    people = {"ben": Person("ben", frozenset({"responder"}), {Source.CLI: "ben"})}
    policy = Policy(people, login=login)
    ben = policy.resolve(Actor(Source.CLI, "ben", "Ben"))
    table = f'roles = ["approver"] in [people.NAME]{then}'
    message = f"needs the role approver); no person has it; {giver} can grant it: {table}"
    with pytest.raises(NotPermitted, match=re.escape(message)):
        policy.check(ben, Verb.APPROVE)
    with pytest.raises(NotPermitted, match=re.escape(message)):
        policy.check_vote(ben, ["ben"], invoker="anna")


@pytest.mark.parametrize("seed", range(20))
def test_account_is_that_of_the_first_person_who_has_it(seed: int) -> None:
    """People may have each other's accounts, and names that are accounts of others."""
    choice = random.Random(seed)
    names = ["a", "b", "c", "d"]
    policy = Policy()
    for _ in range(3):  # the people are replaced
        order = choice.sample(names, 4)
        policy.people = {name: _random_person(choice, name, names) for name in order}
        for channel in ("slack", "trello", "web", "mail", "cli", "none"):
            for id in [*names, "x"]:
                holders = (p for p in policy.people.values() if p.has_account(channel, id))
                holder = next(holders, None)
                expected = None if holder is None else holder.name
                assert policy.resolve(Actor(channel, id, id)).person == expected
                assert policy.requester(f"{channel}:{id}") == (expected or f"{channel}:{id}")


def _random_person(choice: random.Random, name: str, names: list[str]) -> Person:
    channels = [channel for channel in ("slack", "trello", "web", "cli") if choice.random() < 0.5]
    return Person(
        name,
        frozenset({"invoker"}),
        {channel: choice.choice(names) for channel in channels},
        further_ids={
            channel: tuple(choice.sample(names, 2))
            for channel in ("slack", "trello")
            if choice.random() < 0.5
        },
    )
