"""Submission of a new job from the form, and its errors."""

from __future__ import annotations

import pytest
from psycopg import AsyncConnection

from draftsman.jobs.job import Mode, Status
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime, open_runtime
from draftsman.settings import Settings
from draftsman_testing.factories import Factory
from draftsman_tui.dashboard.requests.actions import validate_request
from draftsman_tui.dashboard.requests.dialog import NewJobDialog
from draftsman_tui.dashboard.requests.form import FIELDS, FormErrors
from draftsman_tui.dashboard.widgets.field import FieldRow
from tests.support.server import Server
from tests.tui.dashboard.pilot import open_dashboard
from tests.tui.dashboard.test_live import cut

PAY = "https://git.example/acme/pay"


async def test_submitted_job_is_under_the_cursor(make: Factory, rt: Runtime, owner: Actor) -> None:
    await rt.repos.add(Repo.at(parse(PAY)), RepoProfile(), owner)
    old = [await make.queued() for _ in range(2)]
    async with open_dashboard(rt, owner, size=(80, 24)) as seen:
        await seen.rows(f"D-{old[1]}", f"D-{old[0]}")
        await seen.press("S", "n")
        await seen.dialog("NewJobDialog")
        await seen.press(*"Tidy", "ctrl+j", *"it", "tab", "p")
        await seen.see("acme/pay")
        await seen.press("down", "tab", "tab", "right")
        await seen.see("● investigate")
        form = seen.app.screen
        assert isinstance(form, NewJobDialog)
        form.action_submit()
        form.action_submit()
        await seen.wait_for_toast("created")
        await seen.dialog("MainScreen")
        await seen.rows(f"D-{old[0]}", f"D-{old[1]}", "D-3")
        assert seen.cursor_key == "D-3"
    job = await rt.read_model.job(3)
    assert (job.agent_request.text, job.title, job.agent_request.mode) == (
        "Tidy\nit",
        "Tidy",
        Mode.INVESTIGATE,
    )
    assert job.payload["repo"]["source"] == PAY
    assert (job.agent_request.agent, job.source, job.idempotency_key[:4]) == ("tidy", "cli", "tui:")


async def test_errors_are_shown_beside_fields_and_input_is_kept(rt: Runtime, owner: Actor) -> None:
    await rt.repos.add(Repo.at(parse(PAY)), RepoProfile(), owner)
    async with open_dashboard(rt, owner, size=(80, 24)) as seen:
        await seen.command("new fix 'Tidy the stock'")
        await seen.dialog("NewJobDialog")
        await seen.see("Tidy the stock", "● fix")
        form = seen.app.screen
        assert isinstance(form, NewJobDialog)
        form.failed(FormErrors({"queue": "the field was not shown yet"}))
        await seen.see("▲ the field was not shown yet")
        await seen.press("escape")  # nothing was changed: no question
        await seen.dialog("MainScreen")
        await seen.command("new fix 'Tidy the stock'")
        await seen.dialog("NewJobDialog")
        await seen.press("tab")
        await seen.paste("nowhere")
        await seen.press("enter")
        await seen.see("▲ no directory or repository with this name", "nowhere")
        await seen.press("ctrl+u", "ctrl+o")
        await seen.see("Not before")
        await seen.press(*["tab"] * 5, *"x7", "enter")
        await seen.see("▲ 'x7' is not a whole number")
        assert (await rt.read_model.jobs()) == []
        await seen.press("escape")
        await seen.dialog("ConfirmDialog")
        await seen.press("enter")
        await seen.dialog("NewJobDialog")
        await seen.press("home", "delete", "ctrl+s")
        await seen.wait_for_toast("D-1 created")
    job = await rt.read_model.job(1)
    assert (job.agent_request.text, job.priority) == ("Tidy the stock", 7)


async def test_form_stays_open_when_the_database_is_lost(
    make: Factory, settings: Settings, owner: Actor, server: Server, database: str
) -> None:
    quick = settings.database.model_copy(update={"connect_timeout": 2})
    settings = settings.model_copy(update={"database": quick})
    await make.rt.repos.add(Repo.at(parse(PAY)), RepoProfile(), owner)
    async with open_runtime(settings) as rt, open_dashboard(rt, owner) as seen:
        await seen.press("n")
        await seen.dialog("NewJobDialog")
        await seen.press(*"Tidy")
        admin = await AsyncConnection.connect(server.url("postgres"), autocommit=True)
        await cut(admin, database)
        await seen.press("enter")
        await seen.see("Tidy", "couldn't get a connection")
        await seen.dialog("NewJobDialog")
        await admin.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS true')
        await admin.close()
        await seen.press("enter")
        await seen.wait_for_toast("D-1 created")
    assert [job.title for job in await make.rt.read_model.jobs()] == ["Tidy"]


async def test_form_whose_first_submission_succeeded_creates_no_second_job(
    rt: Runtime, owner: Actor
) -> None:
    await rt.repos.add(Repo.at(parse(PAY)), RepoProfile(), owner)
    from draftsman_tui.dashboard.requests.actions import JobSubmission

    async with open_dashboard(rt, owner) as seen:
        submit = JobSubmission(seen.app.main)
        submitted = [await submit({"text": "Tidy"}) for _ in range(2)]
        assert [job.value.outcome for job in submitted] == ["created", "deduplicated"]
        await seen.press("n")
        await seen.dialog("NewJobDialog")
        seen.app.screen._do = submit  # type: ignore[attr-defined]
        await seen.press(*"Paint", "enter")
        await seen.see("already submitted as D-1; enter submits this as another job")
        await seen.press("enter")
        await seen.wait_for_toast("D-2 created")


async def test_form_joins_an_equal_job_of_another_form(rt: Runtime, owner: Actor) -> None:
    from draftsman_tui.dashboard.requests.actions import JobSubmission

    await rt.repos.add(Repo.at(parse(PAY)), RepoProfile(), owner)
    async with open_dashboard(rt, owner) as seen:
        typed = {"text": "Tidy", "unique": "1h"}
        forms = [JobSubmission(seen.app.main) for _ in range(2)]
        submitted = [await form(typed) for form in (*forms, forms[0])]
    assert [job.value.outcome for job in submitted] == ["created", "joined", "deduplicated"]
    assert {job.value.number for job in submitted} == {1}


async def test_unsupported_values_are_errors_of_their_fields(rt: Runtime) -> None:
    slack = "not configured; add [slack] (draftsman help --page slack)"
    for typed, field, says in (
        ({"type": "noop", "notify": "log slack:C1"}, "notify", slack),
        (
            {"type": "llm_generate", "payload": '{"prompt": "a"}'},
            "type",
            "[llm.NAME] is not configured",
        ),
    ):
        with pytest.raises(FormErrors) as caught:
            await validate_request(typed, rt)
        assert caught.value.problems.keys() == {field}
        assert says in caught.value.problems[field]


async def test_an_unknown_type_is_accepted_with_a_warning(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.queued(type="http_requst")
    async with open_dashboard(rt, owner, size=(120, 40)) as seen:
        await seen.rows("D-1")
        await seen.press("N")
        await seen.see("New job like D-1", "http_requst")
        await seen.press("ctrl+s")
        await seen.wait_for_toast("D-2 created; the job waits for a worker that handles the type")


async def test_copy_of_a_job_fills_the_form(make: Factory, rt: Runtime, owner: Actor) -> None:
    old = await make.queued(title="Tidy", tags=("a",), payload={"n": 1})
    async with open_dashboard(rt, owner, size=(120, 40)) as seen:
        await seen.rows(f"D-{old}")
        await seen.press("N")
        await seen.see(f"New job like D-{old}", "noop", '{"n": 1}')
        await seen.press("ctrl+s")
        await seen.wait_for_toast("D-2 created")
        await seen.rows("D-2", f"D-{old}")
    new = await rt.read_model.job(2)
    assert (new.type, new.tags, new.payload, new.retry_of) == ("noop", ["a"], {"n": 1}, None)
    assert new.status is Status.QUEUED


async def test_repository_is_required_without_a_catalog(rt: Runtime, owner: Actor) -> None:
    async with open_dashboard(rt, owner, size=(80, 24)) as seen:
        await seen.press("n")
        await seen.dialog("NewJobDialog")
        await seen.see("path or URL of a git repository")
        assert "the job asks" not in seen.text
        await seen.press(*"Tidy", "enter")
        await seen.see("▲ no repositories yet; use a path or URL", "draftsman repos add")
        assert (await rt.read_model.jobs()) == []
        await seen.paste(PAY)
        await seen.press("enter")
        await seen.wait_for_toast("D-1 created")


@pytest.mark.slow(fast="test_submitted_job_is_under_the_cursor")
async def test_tab_completes_the_only_name_that_continues_the_text(
    rt: Runtime, owner: Actor
) -> None:
    completions = {"agent": ["tidy", "coder", "corrector"]}
    async with open_dashboard(rt, owner) as seen:
        form = NewJobDialog("New job", {"text": "Tidy"}, completions)
        await seen.app.push_screen(form)
        for typed, agent in (("ti", "tidy"), ("co", "co"), ("order", "order"), ("", "")):
            await seen.press("tab", "tab", *typed, "tab")
            assert form.typed["agent"] == agent
            await seen.press("shift+tab", *["backspace"] * 9, "shift+tab", "shift+tab")


async def test_tab_moves_between_fields(rt: Runtime, owner: Actor) -> None:
    await rt.repos.add(Repo.at(parse(PAY)), RepoProfile(), owner)

    async with open_dashboard(rt, owner, size=(80, 24)) as seen:

        def here() -> str:
            rows = [row for row in seen.app.screen.query(FieldRow) if row.has_focus_within]
            return rows[0].field.name if rows else f"outside: {seen.app.focused}"

        await seen.press("n")
        await seen.dialog("NewJobDialog")
        await seen.press(*"one", "ctrl+j", *"two")
        first = [field.name for field in FIELDS if field.is_main]
        walked = []
        for _ in range(len(first) + 1):
            walked.append(here())
            await seen.press("tab")
        assert walked == [*first, "text"]
        await seen.press("shift+tab")
        assert here() == "text"
        await seen.press("ctrl+o")
        for field in FIELDS[len(first) :]:
            assert here() == field.name
            await seen.press("tab")
        assert here() == "text"
        form = seen.app.screen
        assert isinstance(form, NewJobDialog)
        assert form.typed["text"] == "one\ntwo"
        await seen.pilot.click(".more-title")
        await seen.see("▶ more")
        assert not form.query_one(".more").display
