"""The life cycle as a graph: every status is reachable, and final statuses are final."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from draftsman.jobs.job import (
    FUSED,
    INITIAL,
    LEASED,
    TERMINAL,
    TRANSITIONS,
    WAITING,
    Status,
    steps,
)

STATUSES = st.sampled_from(Status)


def _reachable(start: frozenset[Status]) -> set[Status]:
    reached_before = set(start)
    todo = list(start)
    while todo:
        before = todo.pop()
        reached = {after for (b, after) in TRANSITIONS if b is before} - reached_before
        reached_before |= reached
        todo += reached
    return reached_before


def test_every_status_can_be_reached_from_a_new_job() -> None:
    assert _reachable(INITIAL) == set(Status)


def test_a_final_status_has_no_transitions_and_every_other_status_has_some() -> None:
    assert {before for before, _ in TRANSITIONS} == set(Status) - TERMINAL


def test_a_final_status_is_reachable_from_every_status() -> None:
    for status in set(Status) - TERMINAL:
        assert _reachable(frozenset({status})) & TERMINAL


def test_every_job_that_is_not_finished_can_be_canceled() -> None:
    for status in set(Status) - TERMINAL:
        assert TRANSITIONS[status, Status.CANCELED] == "job_canceled"


def test_no_status_has_a_transition_to_itself() -> None:
    assert [pair for pair in (*TRANSITIONS, *FUSED) if pair[0] is pair[1]] == []


def test_only_a_sweep_or_a_release_leads_back_to_a_status_of_new_jobs() -> None:
    back = {before for before, after in TRANSITIONS if after is Status.QUEUED}
    assert back == {Status.SCHEDULED, Status.CLAIMED, Status.RETRYING}


def test_a_fused_transition_is_two_transitions_of_the_table() -> None:
    for (before, after), between in FUSED.items():
        assert (before, between) in TRANSITIONS
        assert (between, after) in TRANSITIONS
        assert (before, after) not in TRANSITIONS


def test_a_job_has_a_lease_only_from_claim_to_end_or_release() -> None:
    assert {b for b, a in TRANSITIONS if a in LEASED} - LEASED == {Status.QUEUED, Status.RESUMED}


def test_a_job_waits_for_people_only_after_its_run_asked() -> None:
    starts = {before for before, after in TRANSITIONS if after in WAITING}
    assert starts - WAITING == {Status.RUNNING}
    assert {pair for pair in TRANSITIONS if WAITING.issuperset(pair)} == {
        (Status.WAITING_FOR_APPROVAL, Status.WAITING_FOR_INPUT)
    }


def test_no_event_kind_is_shared_by_different_ends() -> None:
    ends = {kind: after for (_, after), kind in TRANSITIONS.items() if after in TERMINAL}
    assert len(ends) == len(TERMINAL)
    assert not {kind for (_, a), kind in TRANSITIONS.items() if a not in TERMINAL} & ends.keys()


@given(STATUSES, STATUSES)
def test_version_grows_by_the_statuses_passed(before: Status, after: Status) -> None:
    growth = steps(before, after)
    assert growth == (2 if (before, after) in FUSED else int((before, after) in TRANSITIONS))
