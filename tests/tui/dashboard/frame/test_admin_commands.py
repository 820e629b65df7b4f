"""Administration commands: repositories, boards, people, sweeps, archives and web pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from draftsman.channels import ChannelName
from draftsman.deliveries.delivery import Delivery, DeliveryKind, DeliveryStatus
from draftsman.jobs.job import Source
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.settings import settings_model
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_tui.common.job_pages import message_pages
from tests.tui.dashboard.pilot import open_dashboard


async def test_repository_default_labels_and_removal(rt: Runtime, people: People) -> None:
    pay = Repo.at(parse("https://git.example/acme/pay"))
    olga = people.on(Source.TUI, "olga")
    await rt.repos.add(pay, RepoProfile(), olga)
    async with open_dashboard(rt, olga, view="repos") as seen:
        await seen.see("acme/pay")
        await seen.command("default")
        await seen.wait_for_toast("Default repository set to acme/pay")
        await seen.see("default")
        await seen.command("map")
        await seen.dialog("PromptDialog")
        await seen.paste("payments")
        await seen.press("enter")
        await seen.wait_for_toast("Label payments mapped to acme/pay")
        assert [mapping.label_name for mapping in (await rt.repos.catalog(age=0)).mappings] == [
            "payments"
        ]
        await seen.command("unmap")
        await seen.see("1  payments")
        await seen.press("1")
        await seen.wait_for_toast("Label payments unmapped from acme/pay")
        await seen.command("unmap")
        await seen.wait_for_toast("no label is mapped to acme/pay")
        await seen.command("default")
        await seen.wait_for_toast("Default repository cleared")
        await seen.press("o")
        await seen.wait_for_toast("Opened https://git.example/acme/pay")
        await seen.command("forget")
        await seen.dialog("ConfirmDialog")
        await seen.press("y")
        await seen.wait_for_toast("Repository acme/pay removed")
        await seen.rows()
        await seen.command("forget")
        await seen.wait_for_toast("choose a repository first")
    assert not (await rt.repos.catalog(age=0)).repos


async def test_board_is_unwatched(rt: Runtime, owner: Actor) -> None:
    await boards_of(rt).save(
        BoardConfig(board_id="a" * 24, name="Plans", webhook_id="b" * 24), owner
    )
    async with open_dashboard(rt, owner, view="boards") as seen:
        await seen.see("Plans")
        await seen.command("unwatch")
        await seen.see("Stop watching board Plans?")
        await seen.press("y")
        problem = f"the webhook {'b' * 24} was not removed"
        await seen.wait_for_toast(f"Board Plans is not watched any more; {problem}")
        await seen.rows()
        await seen.command("unwatch")
        await seen.wait_for_toast("choose a board first")
    assert not await boards_of(rt).all()


async def test_queue_is_paused_and_resumed(rt: Runtime, make: Factory, people: People) -> None:
    await make.queued(queue="pay", type="report")
    async with open_dashboard(rt, people.on(Source.TUI, "olga"), view="queues") as seen:
        await seen.see("pay", "open")
        await seen.press("p")
        await seen.dialog("PromptDialog")
        await seen.paste("disk is full")
        await seen.press("enter")
        await seen.wait_for_toast("Queue 'pay' paused; running jobs continue")
        await seen.see("by olga: disk is full")
        await seen.command("pause type:report model is down")
        await seen.wait_for_toast("Type 'report' in the queue 'pay' paused")
        await seen.command("jobs")
        await seen.rows("D-1")
        await seen.see("paused")
        await seen.command("queues")
        await seen.press("U")
        await seen.see("Resume what?")
        await seen.press("1")
        await seen.wait_for_toast("Queue 'pay' resumed")
        await seen.press("U")
        await seen.wait_for_toast("Type 'report' in the queue 'pay' resumed")
        await seen.command("unpause")
        await seen.wait_for_toast("is not paused")
    assert len(await rt.queues.changes("pay")) == 4


async def test_the_reservation_of_a_queue_is_ended(rt: Runtime, owner: Actor) -> None:
    await rt.reservations.submit(invocation(type="noop", queue="pay"), owner)
    async with open_dashboard(rt, owner, view="queues") as seen:
        await seen.see("pay")
        await seen.command("unreserve")
        await seen.see("End the reservation of the queue 'pay'?")
        await seen.press("y")
        await seen.wait_for_toast("Queue 'pay' released")
        assert await rt.reservations.all() == []
        await seen.command("unreserve")
        await seen.wait_for_toast("is not reserved")


async def test_people_are_listed_linked_and_unlinked(rt: Runtime, people: People) -> None:
    code = await rt.people.create_link_code(Actor("slack", "U-NEW", "New"))
    async with open_dashboard(rt, people.on(Source.TUI, "olga")) as seen:
        await seen.command("link wrong")
        await seen.wait_for_toast("the code is invalid, used or expired")
        await seen.command(f"link {code}")
        await seen.wait_for_toast("Account slack:U-NEW (New) linked to olga")
        await seen.command("people")
        await seen.see("carol  approver", "slack:U-NEW (New)")
        await seen.press("escape")
        await seen.command("unlink nobody")
        await seen.wait_for_toast("use CHANNEL:ID")
        await seen.command("unlink")
        await seen.dialog("ChoiceDialog")
        await seen.press("1")
        await seen.see("Unlink account slack:U-NEW?")
        await seen.press("y")
        await seen.wait_for_toast("Account slack:U-NEW unlinked from olga")
    assert not await rt.people.links()


async def test_sweep_and_restore_report_results_and_errors(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.set_due(await make.retrying(), 0)
    async with open_dashboard(rt, owner) as seen:
        await seen.see("retrying")
        await seen.command("sweep promote")
        await seen.wait_for_toast("promote: changed 1 row")
        await seen.command("sweep floors")
        await seen.wait_for_toast("unknown sweep 'floors'; choose: decisions, expire, remind")
        await seen.command("sweep")
        await seen.see("2  expire", "12  rescue")
        await seen.type("2")
        await seen.wait_for_toast("Expire: changed 0 rows")
        await seen.command("restore")
        await seen.wait_for_toast("no events have been archived")
        await seen.command("restore /nowhere/events.gz")
        await seen.wait_for_toast("file not found")


async def test_browse_asks_which_of_several_pages(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    done = {"pr_url": "https://git.example/acme/pay/pull/7"}
    job = await make.completed(done, url="https://trello.com/c/abc", repo="https://h/acme/pay")
    await make.queued(url="javascript:alert(1)", repo="/tmp/pay")
    async with open_dashboard(rt, owner) as seen:
        monkeypatch.setattr(seen.app, "open_url", opened.append)
        await seen.rows("D-2", f"D-{job}")
        await seen.press("o")
        await seen.wait_for_toast("this row has no web page to open")
        await seen.press("down", "o")
        await seen.see("1  pull request", "2  ticket  https://trello.com/c/abc", "3  repository")
        await seen.press("1")
        await seen.wait_for_toast("Opened https://git.example/acme/pay/pull/7")
        await seen.press("o")
        await seen.dialog("ChoiceDialog")
        await seen.press("escape")
        await seen.command("browse ticket")
        await seen.wait_for_toast("Opened https://trello.com/c/abc")
        await seen.command("browse thread")
        await seen.wait_for_toast("this row has no thread to open")
    assert opened == ["https://git.example/acme/pay/pull/7", "https://trello.com/c/abc"]


def test_message_threads_have_urls() -> None:
    deliveries = [
        _delivery("slack", "C01", "C01/2.2"),
        _delivery("slack", "C01", "C01/1.1"),
        _delivery("trello", "5f" * 12, "ac" * 12),
        _delivery("log", "log", "1"),
        _delivery("slack", "C02", None),
    ]
    slack = {"bot_token": {"env": "B"}, "app_token": {"env": "A"}, "team": "T012"}
    settings = settings_model().model_validate({"slack": slack})
    card = f"https://trello.com/c/{'5f' * 12}#comment-{'ac' * 12}"
    slack_url = "https://slack.com/app_redirect?channel=C01&message_ts=1.1&team=T012"
    assert dict(message_pages(deliveries, settings)) == {
        "thread in slack:C01": slack_url,
        f"thread in trello:{'5f' * 12}": card,
    }


def _delivery(channel: ChannelName, target: str, ref: str | None) -> Delivery:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    fields: dict[str, Any] = {"seq": 1, "id": uuid4(), "job": 1, "question": None}
    fields |= {"original": None, "thread": None, "attempts": 1, "in_doubt": False}
    fields |= {"next_attempt_at": None, "last_error": None, "created_at": at, "sent_at": at}
    return Delivery(
        channel=channel,
        target=target,
        external_ref=ref,
        kind=DeliveryKind.STATUS,
        status=DeliveryStatus.SENT,
        **fields,
    )


async def test_queued_jobs_are_moved_and_prioritized(
    rt: Runtime, make: Factory, people: People
) -> None:
    a, b, c = [await make.queued(queue="q") for _ in range(3)]
    async with open_dashboard(rt, people.on(Source.TUI, "olga")) as seen:
        await seen.rows(f"D-{c}", f"D-{b}", f"D-{a}")
        await seen.press("M")
        await seen.see(f"Move D-{c}?")
        await seen.press("1")
        await seen.wait_for_toast(f"D-{c} moved to the top")
        await seen.command(f"move after D-{a}")
        await seen.wait_for_toast(f"D-{c} moved after D-{a}")
        assert [job.number for job in await rt.queues.order()] == [a, c, b]
        await seen.command("move sideways")
        await seen.wait_for_toast("enter top, bottom, before D-2 or after D-2")
        await seen.command("priority 7")
        await seen.wait_for_toast("set to priority 7")
        assert [job.number for job in await rt.queues.order()] == [c, a, b]
        await seen.command("priority high")
        await seen.wait_for_toast("expected a whole number")
