"""`boards`: names are resolved to ids, invalid options store nothing, and tests change nothing."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from draftsman.runtime import Runtime
from draftsman_bots.trello.records.board import LabelSighting
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import Factory
from draftsman_testing.trello import FakeTrello, error
from tests.bots.trello.webhook_receiver import WebhookReceiver
from tests.tui.cli.conftest import As
from tests.tui.cli.trello_board import CliBoard


async def test_a_board_is_added_by_its_url_with_the_configured_labels(
    board: CliBoard, rt: Runtime
) -> None:
    assert (await board("list")).err.startswith("no boards configured; to add a board: draftsman")
    added = await board("add", board.url)
    assert added.code == 0, added.err
    assert "the label is then replaced by 'draftsman: queued'" in added.out
    assert "no repositories yet" in added.err
    config = await boards_of(rt).of(board.board)
    assert config is not None
    assert {id: (rule.name, rule.mode) for id, rule in config.labels.items()} == {
        board.label: ("draftsman", "fix")
    }
    assert (config.name, config.url, config.queued_label_id) == ("Work", board.url, board.queued)
    (await board("add", board.url)).refused(
        4, "Work is already configured", f"boards set {board.board}"
    )
    assert board.writes == [], "watching a board does not change it"


async def test_labels_and_lists_have_the_names_of_the_board(
    board: CliBoard, rt: Runtime, tmp_path: Path
) -> None:
    file = tmp_path / "result.md"
    file.write_text("{job}: {summary}\n")
    short = board.url.split("/")[-2]
    added = await board(
        "add", short, "--label", "BUG=investigate/tidy", "--label", board.label,
        "--queued-label", "none", "--ready", "review", "--ignore", "To do",
        "--rule", "running=Doing from To do, review", "--rule", "failed=To do",
        "--template", file, "--include-existing",
    )  # fmt: skip
    assert "running: move the card from 'To do', 'Review' to 'Doing'" in added.out
    config = await boards_of(rt).of(board.board)
    assert config is not None
    rule = config.labels[board.bug]
    assert (rule.name, rule.mode, rule.agent) == ("bug", "investigate", "tidy")
    assert set(config.labels) == {board.bug, board.label}
    assert (config.queued_label_id, config.include_existing) == (None, True)
    assert config.ignored_list_ids == (board.todo,)
    assert {str(status): (move.to, move.out_of) for status, move in config.moves.items()} == {
        "running": (board.doing, (board.todo, board.review)),
        "failed": (board.todo, ()),
        "completed": (board.review, ()),
    }
    assert config.comment_template == "{job}: {summary}\n"


async def test_a_board_is_shown_with_the_names_of_its_lists_and_labels(
    board: CliBoard, trello: FakeTrello
) -> None:
    await board("add", board.url, "--label", "bug", "--ignore", "To do", "--rule", "running=Doing")
    trello.rename_label(board.bug, "flaw")
    shown = (await board("show", "Work")).out
    assert "label flaw creates a job (fix)\n" in shown
    assert "list 'To do': ignored" in shown
    assert "running: move the card to 'Doing'" in shown
    assert not any(id in shown for id in (board.bug, board.todo, board.doing, board.queued))
    trello.delete_label(board.bug)
    shown = (await board("show", "Work")).out
    assert f"label bug {board.bug} (not on the board) creates a job" in shown
    board.configure(api_url="http://127.0.0.1:9")
    unreachable = await board("show", "Work")
    assert unreachable.code == 0
    assert f"running: move the card to {board.doing}\n" in unreachable.out
    assert "Trello could not be read, so that ids are shown: " in unreachable.err
    document = (await board("show", "Work", "--json")).json
    assert document["ignored_list_ids"] == [board.todo]


async def test_add_takes_every_label_of_the_given_name(
    board: CliBoard, trello: FakeTrello, rt: Runtime
) -> None:
    lower_case = trello.label(board.board, "Draftsman ")
    other = trello.label(board.board, "a=b")
    nameless = trello.label(board.board, "", "black")
    added = await board("add", board.url, "--label", "draftsman", "--label", "a=b")
    assert "2 labels are named 'draftsman': all of them are used" in added.err
    config = await boards_of(rt).of(board.board)
    assert config is not None
    assert set(config.labels) == {board.label, lower_case, other}
    (await board("set", "work", "--label", "x")).refused(2, f"{nameless} (no name)")
    trello.rename_label(board.bug, "defect")
    await board("set", "Work", "--label", board.bug)
    trello.rename_label(board.bug, "flaw")
    config = await boards_of(rt).of(board.board)
    assert config is not None
    assert {id: rule.name for id, rule in config.labels.items()} == {board.bug: "defect"}


MISMATCHES: list[tuple[list[str], int, str]] = [
    (
        ["--label", "nope"],
        2,
        "no label 'nope'; it has: 'draftsman', 'draftsman: queued', 'bug'",
    ),
    (["--label", "bug=fx"], 2, "MODE: investigate or fix"),
    (["--label", "bug=fix/ghost"], 2, "unknown agent 'ghost'; available: tidy"),
    (["--label", "bug=fix/" + "x" * 101], 2, "agent: must have at most 100 characters"),
    (["--label", "bug", "--label", "Bug=fix"], 2, "'Bug' is given twice"),
    (["--queued-label", "nope"], 2, "--queued-label: the board has no label 'nope'"),
    (
        ["--queued-label", "draftsman"],
        2,
        "the queued label may not be a label that creates jobs",
    ),
    (["--ready", "Dne"], 2, "--ready: the board has no list 'Dne'; it has: 'To do', 'Doing'"),
    (["--ready", "Twice"], 2, "2 lists are named 'Twice'; give the id: "),
    (["--ignore", "Dne"], 2, "--ignore: the board has no list 'Dne'"),
    (["--rule", "done=Doing"], 2, "unknown status 'done'; available: scheduled"),
    (["--rule", "running"], 2, "use STATUS=LIST or 'STATUS=LIST from LIST, LIST'"),
    (["--rule", "running=Doing from Dne"], 2, "--rule: the board has no list 'Dne'"),
    (["--template", "{job} {nope}"], 2, "--template: unknown field {nope}; fields: job, title"),
    (["--template", "{job"], 2, "--template: single {; write {{ for a literal brace"),
    (["--template", "typo.md"], 2, "not a file, and a template text needs a field"),
]


async def test_an_option_that_does_not_match_the_board_is_refused_in_one_line(
    board: CliBoard, trello: FakeTrello, rt: Runtime
) -> None:
    for _ in range(2):
        trello.list(board.board, "Twice")
    for args, code, message in MISMATCHES:
        (await board("add", board.url, *args)).refused(code, message)
    assert await boards_of(rt).all() == []


async def test_an_invalid_or_invisible_board_is_refused(
    board: CliBoard, trello: FakeTrello
) -> None:
    hidden = trello.board_url(trello.board("Hidden", bot=False))
    (await board("add", hidden)).refused(3, "the bot cannot see board", "invite the bot")
    (await board("add", "aaaaaaaa")).refused(3, "the bot cannot see board aaaaaaaa")
    card = trello.card(board.board, board.todo, "x")
    (await board("add", trello.card_now(card)["url"])).refused(2, "is a card")
    (await board("add", "work stuff")).refused(2, "give its URL, https://trello.com/b/")
    (await board("show", "Work")).refused(3, "no boards configured")
    await board.added()
    (await board("show", "Play")).refused(3, "unknown board 'Play'; configured boards: 'Work'")
    duplicate = trello.board("Work")
    await board("add", duplicate, "--label", trello.label(duplicate, "draftsman"))
    (await board("show", "Work")).refused(2, "2 boards are named 'Work'", board.board, duplicate)
    result = await board("show", board.url)
    assert (result.code, "never polled" in result.out) == (0, True)


async def test_missing_or_invalid_credentials_are_reported_in_one_line(
    board: CliBoard, trello: FakeTrello, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    await board.added()
    (await as_("root")("boards", "add", board.url)).refused(
        2, "Trello is not configured; add [trello]"
    )
    board.configure()
    trello.revoke()
    for args in (("test", "Work"), ("add", board.url), ("webhook", "list")):
        error = (await board(*args)).refused(
            1,
            "Trello rejected the bot's credentials: invalid token",
            "draftsman help --page trello",
        )
        assert trello.token not in error
    listed = await board("list")
    assert (listed.code, "Work" in listed.out, "invalid token" in listed.err) == (0, True, True)
    monkeypatch.delenv("T_TOKEN")
    (await board("test", "Work")).refused(2, "[trello] token: the variable T_TOKEN")
    monkeypatch.setenv("T_TOKEN", trello.token)
    board.configure(api_url="http://127.0.0.1:1")
    (await board("test", "Work")).refused(1, "cannot reach Trello", "http://127.0.0.1:1")


async def test_set_changes_only_the_given_options(
    board: CliBoard, trello: FakeTrello, rt: Runtime
) -> None:
    await board.added("--ready", "Review", "--ignore", "To do", "--template", "{job}")
    webhook = "5f1e0c9a8b7d6e5f4a3b2c1d"
    await boards_of(rt).webhook(board.board, webhook)
    assert (await board("set", "Work", "--label", "bug")).code == 0
    config = await boards_of(rt).of(board.board)
    assert config is not None
    assert set(config.labels) == {board.bug}
    assert config.ready_for_review_list_id == board.review
    assert (config.ignored_list_ids, config.comment_template) == ((board.todo,), "{job}")
    assert config.webhook_id == webhook
    await board("set", "Work", "--ready", "none", "--ignore", "none", "--template", "none")
    config = await boards_of(rt).of(board.board)
    assert config is not None
    assert (config.moves, config.ignored_list_ids, config.comment_template) == ({}, (), None)
    now = await boards_of(rt).clock()
    await boards_of(rt).baseline(board.board, [], now, now)
    (await board("set", "Work", "--include-existing")).refused(1, "was already polled")


async def test_a_board_change_requires_permission(
    board: CliBoard, trello: FakeTrello, as_: As, receiver: WebhookReceiver
) -> None:
    await board.added()
    board.configure(callback_url=receiver.url, listen="127.0.0.1:0")
    text = board.cli.config.read_text(encoding="utf-8").partition("\ntrello.")
    anna = as_("anna")
    anna.config.write_text(anna.config.read_text() + "\ntrello." + text[2], encoding="utf-8")
    for args in (
        ("set", "Work", "--ready", "Review"), ("remove", "Work", "--yes"),
        ("webhook", "add", "Work"), ("webhook", "remove", "Work", "--yes"),
    ):  # fmt: skip
        (await anna("boards", *args)).refused(1, "change boards")
    assert trello.webhooks == []


async def test_test_reports_the_effect_of_each_label_without_changes(
    board: CliBoard, trello: FakeTrello, rt: Runtime
) -> None:
    await board.added("--ignore", "Review", "--rule", "running=Doing from To do")
    for list_id in (board.todo, board.todo, board.review):
        trello.card(board.board, list_id, "x", labels=[board.label])
    trello.calls.clear()
    first = await board("test", "Work")
    reads = Counter(call.path for call in trello.calls)
    assert [path for path, count in reads.items() if count > 1] == [], "each is read once"
    assert "2 card(s) had the label before and create none" in first.out, first.err
    assert "1 card(s) in ignored lists" in first.out
    assert (
        "label 'draftsman' creates a job (fix) and is replaced by 'draftsman: queued'" in first.out
    )
    assert "running: move the card from 'To do' to 'Doing'" in first.out
    assert "ok    the bot may comment, move cards and change labels" in first.out
    now = await boards_of(rt).clock()
    old = next(iter(trello.world.cards))
    await boards_of(rt).baseline(board.board, [LabelSighting(old, board.label)], now, now)
    [label] = (await board("test", "Work", "--json")).json["labels"]
    assert (label["jobs"], label["known"], label["ignored"]) == (1, 1, 1)
    assert board.writes == []
    assert await rt.read_model.jobs() == []


async def test_test_fails_where_the_bot_may_not_write(board: CliBoard, trello: FakeTrello) -> None:
    await board.added()
    world_board = trello.world.boards[board.board]
    world_board.observers.add(trello.bot_member)
    output = await board("test", "Work")
    output.refused(1, "Work: 1 check failed")
    assert "the bot is an observer and cannot make changes" in output.out
    world_board.observers.clear()
    trello.world.writes = False
    assert "the token is read-only" in (await board("test", "Work")).out


async def test_list_reports_deleted_labels_and_lists(board: CliBoard, trello: FakeTrello) -> None:
    await board.added("--ready", "Review", "--rule", "running=Doing")
    trello.delete_label(board.label)
    trello.delete_label(board.queued)
    trello.archive_list(board.review)
    [listing] = (await board("list", "--json")).json
    texts = [item["text"] for item in listing["checks"] if item["status"] != "ok"]
    assert re.fullmatch(
        r"board Work no longer has the label 'draftsman' \(\w+\)\n"
        r"board Work no longer has the label for queued cards \(\w+\)\n"
        r"board Work: the list for completed \(\w+\) is archived or deleted\n"
        r"board Work was never polled",
        "\n".join(texts),
    )
    listed = await board("list")
    assert "2 failed" in listed.out
    assert f"draftsman boards set {board.board}" in listed.err


async def test_preview_shows_the_comment_of_a_result(
    board: CliBoard, make: Factory, rt: Runtime, trello: FakeTrello
) -> None:
    sample = (await board("preview", "--sample")).out
    assert "**Fix the parser**" in sample
    assert r"takes \*empty\* lines" in sample
    await board.added("--template", "{job} is done: {summary}\n{error}")
    assert (await board("preview", "--sample")).out.startswith("D-142 is done: The parser takes")
    number = await make.completed(result={"summary": "All @well, postgresql://u:hushhush@h/x"})
    preview = (await board("preview", f"D-{number}", "--json")).json
    assert preview["board"] == "Work"
    assert preview["text"].splitlines()[0] == (
        f"D-{number} is done: All @\u200bwell, postgresql:\u200b//u:\\*\\*\\*@\u200bh/x"
    )
    assert "hushhush" not in preview["text"]
    result = await board("preview", f"D-{number}", "--template", "none")
    assert "completed" in result.out
    result = await board("preview", "--sample", "--template", "{{{status}}}")
    assert result.out.startswith("{completed}")
    (await board("preview", "D-99")).refused(3, "D-99")
    (await board("preview")).refused(2, "specify a job or --sample")
    (await board("preview", "--sample", "--template", "{x}")).refused(
        2, "unknown field {x}; fields: job, title"
    )
    duplicate = trello.board("Play")
    await board("add", duplicate, "--label", trello.label(duplicate, "draftsman"))
    (await board("preview", f"D-{number}")).refused(
        2, "--board is required, 2 boards are configured: 'Play', 'Work'"
    )
    assert (await board("preview", "--sample", "--board", "play")).code == 0
    assert board.writes == []


async def test_webhooks_are_created_compared_and_repaired(
    board: CliBoard, trello: FakeTrello, receiver: WebhookReceiver
) -> None:
    (await board("webhook", "add", "Work")).refused(3, "no boards configured")
    await board.added()
    (await board("webhook", "add", "Work")).refused(2, "[trello] callback_url is not set")
    board.configure(callback_url=receiver.url, listen="127.0.0.1:0")
    receiver.head = 502
    (await board("webhook", "add", "Work")).refused(1, "did not return 200", "draftsman bots")
    assert "Work has no webhook to" in (await board("webhook", "list")).err
    receiver.head = 200
    assert "created" in (await board("webhook", "add", "Work")).out
    assert "unchanged" in (await board("webhook", "add", "Work")).out
    [webhook] = trello.webhooks
    trello.deactivate(webhook["id"])
    [result] = (await board("webhook", "list", "--json")).json["webhooks"]
    assert (result["board"], result["state"], result["failures"]) == ("Work", "disabled", 30)
    assert "enabled" in (await board("webhook", "repair")).out
    board.configure(callback_url=f"{receiver.url}/", listen="127.0.0.1:0")
    listing = (await board("webhook", "list", "--json")).json
    assert ([item["state"] for item in listing["webhooks"]], listing["missing"]) == (
        ["other_url"],
        ["Work"],
    )
    board.configure(
        callback_url=receiver.url.replace("127.0.0.1", "localhost"), listen="127.0.0.1:0"
    )
    assert "created" in (await board("webhook", "repair", "Work")).out
    [other] = trello.webhooks
    assert other["callbackURL"].startswith("http://localhost")
    (await board("webhook", "remove", "Work")).refused(2, "not a terminal")
    removed = await board("webhook", "remove", "Work", "--yes")
    assert "the bot registers it again" in removed.err
    assert trello.webhooks == []
    assert "has no webhook" in (await board("webhook", "remove", "Work", "--yes")).out


async def test_a_webhook_with_a_lost_reply_is_found_and_kept(
    board: CliBoard, trello: FakeTrello, receiver: WebhookReceiver, rt: Runtime
) -> None:
    await board.added()
    board.configure(callback_url=receiver.url, listen="127.0.0.1:0")
    await board("webhook", "add", "Work")
    [webhook] = trello.webhooks
    await boards_of(rt).webhook(board.board, None)
    assert "unchanged" in (await board("webhook", "repair")).out
    config = await boards_of(rt).of(board.board)
    assert config is not None
    assert config.webhook_id == webhook["id"]
    await boards_of(rt).webhook(board.board, None)
    assert (await board("webhook", "remove", webhook["id"], "--yes")).code == 0
    assert trello.webhooks == []


async def test_a_board_is_removed_with_its_webhook_and_a_question(
    board: CliBoard, trello: FakeTrello, receiver: WebhookReceiver, rt: Runtime
) -> None:
    await board.added()
    board.configure(callback_url=receiver.url, listen="127.0.0.1:0")
    await board("webhook", "add", "Work")
    (await board("remove", "Work")).refused(
        2, "Stop watching board Work? Deletes its webhook.", "to confirm, use --yes"
    )
    assert (await board("remove", "work", "--yes")).out == ("board Work is not watched any more\n")
    assert (await boards_of(rt).all(), trello.webhooks) == ([], [])
    await board.added()
    await board("webhook", "add", "Work")
    trello.faults.next("DELETE", "/webhooks/{id}", error(500, "Internal"), times=9)
    removed = await board("remove", "Work", "--yes")
    assert removed.code == 0
    assert "the webhook" in removed.err
    assert "not removed: Trello" in removed.err
    assert await boards_of(rt).all() == []
