"""Form of a new job: parsed and validated like `draftsman submit`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from draftsman.errors import UsageError
from draftsman.jobs.job import Status
from draftsman.repos.repo_catalog import Catalog, Repo
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_tui.dashboard.jobs import actions as retry_actions
from draftsman_tui.dashboard.requests import form as job_form
from draftsman_tui.dashboard.requests.actions import validate_request
from draftsman_tui.dashboard.requests.form import FormErrors, from_job, from_line, read
from draftsman_tui.dashboard.tables.filter import parse as filtered

PAY = Repo.at(parse("https://git.example/acme/pay"))
KNOWN = Catalog([PAY])


def test_every_field_is_parsed() -> None:
    typed = {
        "text": "Tidy\nit",
        "mode": "investigate",
        "tags": "a, b",
        "notify": "log none",
        "when": "1h30m",
        "priority": "7",
        "run_timeout": "10m",
        "max_retries": "0",
        "on_lost": "fail",
        "overrides": "n=3 who='anna b' timeout=5",
        "payload": '{"rows": [1]}',
        "title": "  ",
    }
    assert read(typed) == {
        "text": "Tidy\nit",
        "mode": "investigate",
        "tags": ("a", "b"),
        "notify": ("log", "none"),
        "delay": 5400.0,
        "priority": 7,
        "overrides": {"timeout": 600.0, "n": 3, "who": "anna b"},
        "max_retries": 0,
        "on_lost": "fail",
        "payload": {"rows": [1]},
    }
    assert read({"mode": "fix", "on_lost": "default"}) == {}
    assert read({"when": "2030-12-31T18:00Z"})["run_at"].year == 2030


def test_every_error_is_shown_beside_its_field() -> None:
    wrong = {
        "repo": ("https://a:b@git.example/x", "may not contain a password"),
        "notify": ("slack:#general", "use the channel's id"),
        "when": ("soon", "examples: 10m, 2h, 1d, 2030"),
        "priority": ("1001", "allowed: a whole number from -1000 to 1000"),
        "run_timeout": ("0s", "out of range"),
        "max_retries": ("many", "'many' is not a whole number"),
        "max_attempts": ("101", "allowed: a whole number from 1 to 100"),
        "queue": ("a b", "allowed: letters, digits and _"),
        "type": ("1 2", "a letter first"),
        "tags": ("a " * 101, "must have at most 100 entries"),
        "overrides": ("timeout='soon'", "timeout 'soon': must be a number"),
        "payload": ("[1]", "must be a JSON object"),
        "title": ("x" * 501, "at most 500"),
    }
    with pytest.raises(FormErrors) as refused:
        read({name: text for name, (text, _) in wrong.items()})
    beside = refused.value.problems
    assert beside.keys() == wrong.keys()
    for name, (_, message) in wrong.items():
        assert message in beside[name], (name, beside[name])
        assert "\n" not in beside[name]
        assert not re.search("Input|String|Tuple|parse", beside[name])


async def test_an_unknown_override_is_shown_beside_its_field(rt: Runtime) -> None:
    typed = {"text": "Tidy", "agent": "tidy", "repo": "https://git.example/x"}
    for overrides, hint in (("cal_timeout=1", "did you mean call_timeout"), ("n=1", "known: ")):
        with pytest.raises(FormErrors) as refused:
            await validate_request({**typed, "overrides": overrides}, rt)
        assert refused.value.problems.keys() == {"overrides"}
        assert hint in refused.value.problems["overrides"]


def test_command_line_is_mode_repository_and_text() -> None:
    assert from_line('fix acme/pay "Tidy the stock"', KNOWN) == {
        "mode": "fix",
        "repo": "acme/pay",
        "text": "Tidy the stock",
    }
    assert from_line("pay Tidy up", KNOWN) == {"repo": "pay", "text": "Tidy up"}
    assert from_line("https://git.example/x why", KNOWN)["repo"] == "https://git.example/x"
    assert from_line("docs are wrong", KNOWN) == {"text": "docs are wrong"}
    assert from_line("", KNOWN) == {}
    with pytest.raises(UsageError, match="missing closing quote"):
        from_line('fix "Tidy', KNOWN)


async def test_copy_has_the_same_request(make: Factory, rt: Runtime) -> None:
    fields: dict[str, Any] = {
        "type": "run_agent",
        "agent": "tidy",
        "repo": "https://git.example/acme/pay",
        "ref": "main",
        "mode": "investigate",
        "title": "Pay",
        "text": "Tidy\nit",
        "tags": ("a", "b"),
        "skills": ("python",),
        "priority": 3,
        "overrides": {"timeout": 600.0, "max_delay": 9, "answers": {"pick": "red"}},
        "notify": ("none",),
        "payload": {"rows": [1]},
        "max_retries": 2,
    }
    first = await rt.read_model.job(await make.queued(**fields))
    typed = from_job(first)
    again = await validate_request(typed, rt)
    assert "answers" not in again.overrides
    assert (again.overrides, again.notify) == ({"timeout": 600.0, "max_delay": 9}, ("none",))
    same = ("type", "agent", "repo", "ref", "mode", "title", "text", "tags", "skills", "priority")
    assert {name: getattr(again, name) for name in same} == {name: fields[name] for name in same}
    assert again.payload == {"rows": [1]}
    assert again.queue == first.queue


async def test_errors_of_the_whole_request_are_shown_beside_a_field(rt: Runtime) -> None:
    with pytest.raises(FormErrors) as refused:
        await validate_request({"repo": PAY.remote_url}, rt)
    assert refused.value.problems == {"text": "instructions are required"}
    with pytest.raises(FormErrors) as refused:
        await validate_request({"text": "Tidy", "repo": "nowhere"}, rt)
    assert "no directory or repository with this name" in refused.value.problems["repo"]
    with pytest.raises(FormErrors) as refused:
        await validate_request(
            {"text": "Tidy", "notify": "webhook:ops", "repo": PAY.remote_url}, rt
        )
    assert "unknown webhook 'ops'" in refused.value.problems["notify"]
    with pytest.raises(FormErrors) as refused:
        await validate_request({"type": "http_request", "payload": "{}"}, rt)
    assert "url" in refused.value.problems[""]


async def test_all_invalid_fields_are_reported_at_once(rt: Runtime) -> None:
    typed = {"repo": "nowhere", "max_retries": "101", "notify": "webhook:ops", "queue": "a b"}
    with pytest.raises(FormErrors) as refused:
        await validate_request(typed, rt)
    assert refused.value.problems.keys() == {"text", *typed}
    assert "no directory or repository with this name" in refused.value.problems["repo"]
    with pytest.raises(FormErrors) as refused:
        await validate_request({"type": "http_request", "payload": "[1]", "priority": "x"}, rt)
    assert refused.value.problems.keys() == {"payload", "priority"}


def test_main_fields_of_the_form() -> None:
    assert {field.name for field in job_form.FIELDS if field.is_main} == {
        "text",
        "repo",
        "agent",
        "mode",
    }


def test_retry_filter_is_parsed_from_the_line_or_the_table() -> None:
    selection = retry_actions.parse("status:failed,dead-letter type:noop repo:pay since:2h fresh")
    assert selection.statuses == (Status.FAILED, Status.DEAD_LETTER)
    assert (selection.type, selection.repo, selection.since, selection.fresh) == (
        "noop",
        "pay",
        7200.0,
        True,
    )
    from_filter = retry_actions.from_filter
    assert from_filter(filtered("agent:tidy"), "dead").statuses == (Status.DEAD_LETTER,)
    assert from_filter(filtered("status:failed repo:pay"), "jobs").repo == "pay"
    for wrong, message in (
        ("", "status is required"),
        ("status:running", "cannot retry running jobs"),
    ):
        with pytest.raises(UsageError, match=message):
            retry_actions.parse(wrong)
    with pytest.raises(UsageError, match="unknown argument 'failed'; allowed: status:"):
        retry_actions.parse("failed")
    for more in ("status:failed words", "status:failed age<2h", "status:failed by:anna"):
        with pytest.raises(UsageError, match="mark rows"):
            from_filter(filtered(more), "jobs")
