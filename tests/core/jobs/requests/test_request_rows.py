"""Rows of a batch, which share the values that plain requests have in common."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.errors import UsageError
from draftsman.jobs.job import OnLost, Source
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.request_rows import row, rows
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.retries import RetryPolicy
from draftsman.jobs.runs.job_limits import JobLimits
from draftsman.people.actor import Actor

ANNA = Actor(Source.CLI, "anna", "Anna")
ERIN = Actor("slack", "U2", "Erin", person="erin")
LIMITS = JobLimits(
    {"noop": RetryPolicy(max_attempts=7), "execute_tool": RetryPolicy(max_attempts=5)},
    tools={"make": {"max_attempts": 2, "on_lost": OnLost.FAIL}},
    replaced=frozenset({"execute_tool"}),
)
REQUESTS: list[dict[str, Any]] = [
    {"type": "noop"},
    {"type": "noop", "payload": {"n": 1}},
    {"type": "noop", "payload": {"b": [1.5, None, True], "a": {"é": 'say "\\"'}}, "key": "k"},
    {"type": "noop", "payload": {"n": True}},
    {"type": "noop", "payload": {"n": 1.0}, "title": "one"},
    {"type": "noop", "payload": {"n": 2}, "priority": 3, "tags": ["x"]},
    {"type": "other", "payload": {"n": 3}},
    {"type": "other", "payload": {"n": 3}, "key": "k"},
    {"type": "noop", "payload": {"n": 4}, "repo": "https://github.com/acme/pay"},
    {"type": "noop", "payload": {"n": 4}},
    {"type": "execute_tool", "payload": {"tool": "make"}},
    {"type": "execute_tool", "payload": {"tool": "sh"}},
]


def _comparable(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the JSON of a payload as `repr` shows it, without the id."""
    payload = values["payload"]
    if isinstance(payload, str):
        payload = Invocation.model_validate_json(f'{{"payload": {payload}}}').payload
    return {**values, "id": None, "payload": repr(sorted(payload.items()))}


def test_a_batch_has_the_rows_of_its_requests() -> None:
    requests = [
        (invocation(**fields), actor) for fields in REQUESTS for actor in (ANNA, ERIN, ANNA)
    ]
    batch = rows(requests, LIMITS)
    single = [row(item, actor, LIMITS) for item, actor in requests]
    assert [*map(_comparable, batch)] == [*map(_comparable, single)]
    assert [list(values) for values in batch] == [list(values) for values in single]
    assert len({values["id"] for values in batch}) == len(batch)


def test_a_change_of_a_row_is_of_this_row_only() -> None:
    first, second = rows([(invocation(type="noop"), ANNA)] * 2, JobLimits({}))
    second["repo_name"] = "pay"
    assert first["repo_name"] is None


def test_the_payload_of_each_request_of_a_built_in_type_is_checked() -> None:
    good = invocation(type="http_request", payload={"url": "https://example.com/"})
    bad = invocation(type="http_request", payload={"nothing": 1})
    with pytest.raises(UsageError, match="url"):
        rows([(good, ANNA), (good, ANNA), (bad, ANNA)], JobLimits({}))


def test_a_built_in_type_refuses_overrides_that_it_does_not_read() -> None:
    overrides = {"colour": "red"}
    with pytest.raises(UsageError, match="unknown override colour"):
        row(invocation(overrides=overrides), ANNA, LIMITS)
    replaced = row(invocation(type="execute_tool", overrides=overrides), ANNA, LIMITS)
    assert replaced["overrides"] == overrides
