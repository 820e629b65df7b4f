"""Requests: equality, validation and the repository."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.errors import UsageError
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.repos.repo_catalog import Catalog, Repo
from draftsman.repos.repo_url import parse, repo_name
from tests.support.cases import cases

BASE: dict[str, Any] = {
    "type": "noop",
    "title": "Fix the build",
    "text": "It is\n  red.",
    "payload": {"a": 1, "b": [1, 2]},
    "skills": ["x", "y"],
}


@cases(
    "same",
    [
        {"title": "  Fix   the\tbuild "},
        {"text": "It is red.\n"},
        {"payload": {"b": [1, 2], "a": 1}},
        {"skills": ["y", "x"]},
        {"external_event_id": "E2"},
        {"run_at": datetime(2199, 1, 1, tzinfo=UTC)},
        {"delay": 5.0},
        {"queue": "q", "priority": 9},
        {"tags": ["t"]},
        {"url": "https://host/1"},
        {"key": "k", "subject_key": "s"},
        {"max_attempts": 1, "max_retries": 1, "on_lost": "fail"},
    ],
    ids=str,
)
def test_digest_ignores_spaces_ids_and_times(same: dict[str, Any]) -> None:
    assert invocation(**BASE | same).digest == invocation(**BASE).digest


@cases(
    "other",
    [
        {"type": "other"},
        {"mode": "investigate"},
        {"agent": "tidy"},
        {"repo": "/srv/app"},
        {"title": "Fix the tests"},
        {"text": "It is green."},
        {"payload": {"a": 1, "b": [2, 1]}},
        {"overrides": {"model": "small"}},
        {"skills": ["x"]},
    ],
    ids=str,
)
def test_digest_depends_on_the_request(other: dict[str, Any]) -> None:
    assert invocation(**BASE | other).digest != invocation(**BASE).digest


def test_digest_depends_on_the_branch() -> None:
    first, two = (invocation(repo="/srv/app", ref=ref).digest for ref in ("main", "next"))
    assert first != two != invocation(repo="/srv/app").digest


@cases(
    ("fields", "complaint"),
    [
        ({"type": ""}, "type"),
        ({"type": "9lives"}, "type"),
        ({"type": "a b"}, "type"),
        ({"type": "a\n"}, "type"),
        ({"queue": ""}, "queue"),
        ({"queue": "a/b"}, "queue"),
        ({"queue": "x" * 64}, "queue"),
        ({"key": ""}, "key"),
        ({"priority": 1001}, "priority"),
        ({"mode": "break"}, "'investigate' or 'fix'"),
        ({"source_type": "carrier_pigeon"}, "source_type"),
        ({"run_at": "2999-01-01T00:00:00"}, "time zone"),
        ({"run_at": "soon"}, "run_at"),
        ({"delay": 0}, "delay"),
        ({"delay": float("inf")}, "delay"),
        ({"delay": 1, "run_at": "2199-01-01T00:00:00Z"}, "not both"),
        ({"run_at": "2999-01-01T00:00:00Z"}, "2200"),
        ({"max_attempts": 101}, "max_attempts"),
        ({"max_retries": -1}, "max_retries"),
        ({"on_lost": "panic"}, "'retry', 'resume', 'fail' or 'new_job'"),
        ({"payload": [1]}, "payload"),
        ({"payload": {"a": float("nan")}}, "finite number"),
        ({"payload": {"a": b"bytes"}}, "not JSON"),
        ({"tags": "t" * 101}, "tags"),
        ({"colour": "red"}, "colour"),
        ({"repo": ""}, "repo"),
    ],
    ids=str,
)
def test_an_invalid_request_is_refused_in_one_line(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        invocation(**fields)
    assert "\n" not in str(caught.value)


@given(st.dictionaries(st.sampled_from(["type", "key", "queue", "title"]), st.text()))
def test_any_text_is_a_valid_request_or_is_refused(fields: dict[str, str]) -> None:
    with contextlib.suppress(UsageError):
        assert len(invocation(**fields).digest) == 64


@cases(
    ("source", "expected"),
    [
        ("https://host/acme/app.git", ("acme", "app")),
        ("https://host/acme/app/", ("acme", "app")),
        ("https://host/group/sub/app", ("sub", "app")),
        ("ssh://git@host:22/acme/app.git", ("acme", "app")),
        ("git@host:acme/app.git", ("acme", "app")),
        ("host:app", (None, "app")),
        ("/srv/app", (None, "app")),
        ("/srv/app.git/", (None, "app")),
        ("./app", (None, "app")),
        ("../a:b", (None, "a:b")),
        ("app", (None, "app")),
        ("/", (None, "repo")),
        ("https://host", (None, "repo")),
        ("file:///srv/app", ("srv", "app")),
    ],
)
def test_repository_name_has_owner_and_name(source: str, expected: tuple[str | None, str]) -> None:
    assert repo_name(source) == expected


@given(st.text(min_size=1) | st.text("[]:/@.#?", min_size=1).map(lambda text: f"http://{text}"))
def test_every_repository_location_has_a_name(source: str) -> None:
    owner, name = repo_name(source)
    assert name
    assert owner is None or owner


def test_a_known_repository_has_one_name_for_all_its_urls() -> None:
    folder = replace(Repo.at(parse("https://host/acme/app")), remote_url="/srv/app")
    sources = ["/srv/app", "https://host/acme/app.git", "git@HOST:Acme/App.git", "file:///srv/app/"]
    assert set(Catalog([folder]).names_of(sources).values()) == {("host", "acme", "app")}
    others = {
        "/srv/other/app": (None, None, "app"),
        "https://host/group/sub/app": ("host", "group/sub", "app"),
        "ext::sh -c x": (None, None, ":sh -c x"),
    }
    assert Catalog([folder]).names_of(others) == others


def test_the_headline_is_the_title_or_the_first_line() -> None:
    assert invocation(title="T", text="first\nsecond").headline == "T"
    assert invocation(text="\n first\nsecond").headline == "first"
    assert invocation().headline is None
