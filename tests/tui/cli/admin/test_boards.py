"""`boards`: names become ids, nothing is kept that does not fit, and trying changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from draftsman.domain.trello.board import LabelSighting
from draftsman.runtime import Runtime
from tests.bots.trello.webhook_receiver import WebhookReceiver
from tests.factories import Factory
from tests.support.trello import FakeTrello, error
from tests.tui.cli.conftest import As
from tests.tui.cli.trello_board import CliBoard


async def test_a_board_is_added_by_its_url_with_the_configured_labels(
    wall: CliBoard, rt: Runtime
) -> None:
    assert (await wall("list")).err.startswith("no boards configured; to add a board: draftsman")
    added = await wall("add", wall.url)
    assert added.code == 0, added.err
    assert "the label is then replaced by 'draftsman: queued'" in added.out
    assert "no repositories yet" in added.err
    config = await rt.boards.of(wall.board)
    assert config is not None
    assert {id: (rule.name, rule.mode) for id, rule in config.labels.items()} == {
        wall.label: ("draftsman", "fix")
    }
    assert (config.name, config.url, config.queued_label_id) == ("Work", wall.url, wall.queued)
    (await wall("add", wall.url)).refused(
        4, "Work is already configured", f"boards set {wall.board}"
    )
    assert wall.writes == [], "to watch a board changes nothing there"


async def test_labels_and_lists_have_the_names_of_the_board(
    wall: CliBoard, rt: Runtime, tmp_path: Path
) -> None:
    file = tmp_path / "result.md"
    file.write_text("{job}: {summary}\n")
    short = wall.url.split("/")[-2]
    added = await wall(
        "add", short, "--label", "BUG=investigate/tidy", "--label", wall.label,
        "--queued-label", "none", "--ready", "review", "--ignore", "To do",
        "--rule", "running=Doing from To do, review", "--rule", "failed=To do",
        "--template", file, "--include-existing",
    )  # fmt: skip
    assert "running: move the card from 'To do', 'Review' to 'Doing'" in added.out
    config = await rt.boards.of(wall.board)
    assert config is not None
    rule = config.labels[wall.bug]
    assert (rule.name, rule.mode, rule.agent) == ("bug", "investigate", "tidy")
    assert set(config.labels) == {wall.bug, wall.label}
    assert (config.queued_label_id, config.include_existing) == (None, True)
    assert config.ignored_list_ids == (wall.todo,)
    assert {str(status): (move.to, move.out_of) for status, move in config.moves.items()} == {
        "running": (wall.doing, (wall.todo, wall.review)),
        "failed": (wall.todo, ()),
        "completed": (wall.review, ()),
    }
    assert config.comment_template == "{job}: {summary}\n"


async def test_add_takes_every_label_of_the_given_name(
    wall: CliBoard, trello: FakeTrello, rt: Runtime
) -> None:
    twin, other = trello.label(wall.board, "Draftsman "), trello.label(wall.board, "a=b")
    nameless = trello.label(wall.board, "", "black")
    added = await wall("add", wall.url, "--label", "draftsman", "--label", "a=b")
    assert "2 labels are named 'draftsman': all of them are used" in added.err
    config = await rt.boards.of(wall.board)
    assert config is not None
    assert set(config.labels) == {wall.label, twin, other}
    (await wall("set", "work", "--label", "x")).refused(2, f"{nameless} (no name)")
    trello.rename_label(wall.bug, "defect")
    await wall("set", "Work", "--label", wall.bug)
    trello.rename_label(wall.bug, "flaw")
    config = await rt.boards.of(wall.board)
    assert config is not None
    assert {id: rule.name for id, rule in config.labels.items()} == {wall.bug: "defect"}


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
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
    ],
)
async def test_an_option_that_does_not_match_the_board_is_refused_in_one_line(
    wall: CliBoard, trello: FakeTrello, rt: Runtime, args: list[str], code: int, says: str
) -> None:
    for _ in range(2):
        trello.list(wall.board, "Twice")
    (await wall("add", wall.url, *args)).refused(code, says)
    assert await rt.boards.all() == []


async def test_an_invalid_or_invisible_board_is_refused(wall: CliBoard, trello: FakeTrello) -> None:
    hidden = trello.board_url(trello.board("Hidden", bot=False))
    (await wall("add", hidden)).refused(3, "the bot cannot see board", "invite the bot")
    (await wall("add", "aaaaaaaa")).refused(3, "the bot cannot see board aaaaaaaa")
    card = trello.card(wall.board, wall.todo, "x")
    (await wall("add", trello.card_now(card)["url"])).refused(2, "is a card")
    (await wall("add", "work stuff")).refused(2, "give its URL, https://trello.com/b/")
    (await wall("show", "Work")).refused(3, "no boards configured")
    await wall.added()
    (await wall("show", "Play")).refused(3, "unknown board 'Play'; configured boards: 'Work'")
    twin = trello.board("Work")
    await wall("add", twin, "--label", trello.label(twin, "draftsman"))
    (await wall("show", "Work")).refused(2, "2 boards are named 'Work'", wall.board, twin)
    shown = await wall("show", wall.url)
    assert (shown.code, "never polled" in shown.out) == (0, True)


async def test_missing_or_invalid_credentials_are_reported_in_one_line(
    wall: CliBoard, trello: FakeTrello, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    await wall.added()
    (await as_("root")("boards", "add", wall.url)).refused(
        2, "Trello is not configured; add [trello]"
    )
    wall.configure()
    trello.revoke()
    for args in (("test", "Work"), ("add", wall.url), ("webhook", "list")):
        error = (await wall(*args)).refused(
            1, "Trello rejected the bot's credentials: invalid token", "docs/trello.md"
        )
        assert trello.token not in error
    listed = await wall("list")
    assert (listed.code, "Work" in listed.out, "invalid token" in listed.err) == (0, True, True)
    monkeypatch.delenv("T_TOKEN")
    (await wall("test", "Work")).refused(2, "[trello] token: the variable T_TOKEN")
    monkeypatch.setenv("T_TOKEN", trello.token)
    wall.configure(api_url="http://127.0.0.1:1")
    (await wall("test", "Work")).refused(1, "cannot reach Trello", "http://127.0.0.1:1")


async def test_set_changes_only_the_given_options(
    wall: CliBoard, trello: FakeTrello, rt: Runtime
) -> None:
    await wall.added("--ready", "Review", "--ignore", "To do", "--template", "{job}")
    webhook = "5f1e0c9a8b7d6e5f4a3b2c1d"
    await rt.boards.webhook(wall.board, webhook)
    assert (await wall("set", "Work", "--label", "bug")).code == 0
    config = await rt.boards.of(wall.board)
    assert config is not None
    assert set(config.labels) == {wall.bug}
    assert config.ready_for_review_list_id == wall.review
    assert (config.ignored_list_ids, config.comment_template) == ((wall.todo,), "{job}")
    assert config.webhook_id == webhook
    await wall("set", "Work", "--ready", "none", "--ignore", "none", "--template", "none")
    config = await rt.boards.of(wall.board)
    assert config is not None
    assert (config.moves, config.ignored_list_ids, config.comment_template) == ({}, (), None)
    now = await rt.boards.clock()
    await rt.boards.baseline(wall.board, [], now, now)
    (await wall("set", "Work", "--include-existing")).refused(1, "was already polled")


async def test_a_board_change_requires_permission(
    wall: CliBoard, trello: FakeTrello, as_: As, ears: WebhookReceiver
) -> None:
    await wall.added()
    wall.configure(callback_url=ears.url, listen="127.0.0.1:0")
    text = wall.cli.config.read_text(encoding="utf-8").partition("\ntrello.")
    anna = as_("anna")
    anna.config.write_text(anna.config.read_text() + "\ntrello." + text[2], encoding="utf-8")
    for args in (
        ("set", "Work", "--ready", "Review"), ("remove", "Work", "--yes"),
        ("webhook", "add", "Work"), ("webhook", "remove", "Work", "--yes"),
    ):  # fmt: skip
        (await anna("boards", *args)).refused(1, "change boards")
    assert trello.webhooks == []


async def test_test_reports_the_effect_of_each_label_without_changes(
    wall: CliBoard, trello: FakeTrello, rt: Runtime
) -> None:
    await wall.added("--ignore", "Review", "--rule", "running=Doing from To do")
    for list_id in (wall.todo, wall.todo, wall.review):
        trello.card(wall.board, list_id, "x", labels=[wall.label])
    first = await wall("test", "Work")
    assert "2 card(s) had the label before and create none" in first.out, first.err
    assert "1 card(s) in ignored lists" in first.out
    assert (
        "label 'draftsman' creates a job (fix) and is replaced by 'draftsman: queued'" in first.out
    )
    assert "running: move the card from 'To do' to 'Doing'" in first.out
    assert "ok    the bot may comment, move cards and change labels" in first.out
    now, old = await rt.boards.clock(), next(iter(trello.world.cards))
    await rt.boards.baseline(wall.board, [LabelSighting(old, wall.label)], now, now)
    [label] = (await wall("test", "Work", "--json")).json["labels"]
    assert (label["jobs"], label["known"], label["ignored"]) == (1, 1, 1)
    assert wall.writes == []
    assert await rt.read_model.jobs() == []


async def test_test_fails_where_the_bot_may_not_write(wall: CliBoard, trello: FakeTrello) -> None:
    await wall.added()
    board = trello.world.boards[wall.board]
    board.observers.add(trello.bot_member)
    output = await wall("test", "Work")
    output.refused(1, "Work: 1 check failed")
    assert "the bot is an observer and cannot make changes" in output.out
    board.observers.clear()
    trello.world.writes = False
    assert "the token is read-only" in (await wall("test", "Work")).out


async def test_list_reports_deleted_labels_and_lists(wall: CliBoard, trello: FakeTrello) -> None:
    await wall.added("--ready", "Review", "--rule", "running=Doing")
    trello.delete_label(wall.label)
    trello.delete_label(wall.queued)
    trello.archive_list(wall.review)
    [listing] = (await wall("list", "--json")).json
    texts = [item["text"] for item in listing["checks"] if item["status"] != "ok"]
    assert re.fullmatch(
        r"board Work no longer has the label 'draftsman' \(\w+\)\n"
        r"board Work no longer has the label for queued cards \(\w+\)\n"
        r"board Work: the list for completed \(\w+\) is archived or deleted\n"
        r"board Work was never polled",
        "\n".join(texts),
    )
    listed = await wall("list")
    assert "2 failed" in listed.out
    assert f"draftsman boards set {wall.board}" in listed.err


async def test_preview_shows_the_comment_of_a_result(
    wall: CliBoard, make: Factory, rt: Runtime, trello: FakeTrello
) -> None:
    sample = (await wall("preview", "--sample")).out
    assert "**Fix the parser**" in sample
    assert r"takes \*empty\* lines" in sample
    await wall.added("--template", "{job} is done: {summary}\n{error}")
    assert (await wall("preview", "--sample")).out.startswith("D-142 is done: The parser takes")
    number = await make.completed(result={"summary": "All @well, postgresql://u:hushhush@h/x"})
    preview = (await wall("preview", f"D-{number}", "--json")).json
    assert preview["board"] == "Work"
    assert preview["text"].splitlines()[0] == (
        f"D-{number} is done: All @\u200bwell, postgresql:\u200b//u:\\*\\*\\*@\u200bh/x"
    )
    assert "hushhush" not in preview["text"]
    shown = await wall("preview", f"D-{number}", "--template", "none")
    assert "completed" in shown.out
    shown = await wall("preview", "--sample", "--template", "{{{status}}}")
    assert shown.out.startswith("{completed}")
    (await wall("preview", "D-99")).refused(3, "D-99")
    (await wall("preview")).refused(2, "specify a job or --sample")
    (await wall("preview", "--sample", "--template", "{x}")).refused(
        2, "unknown field {x}; fields: job, title"
    )
    twin = trello.board("Play")
    await wall("add", twin, "--label", trello.label(twin, "draftsman"))
    (await wall("preview", f"D-{number}")).refused(
        2, "--board is required, 2 boards are configured: 'Play', 'Work'"
    )
    assert (await wall("preview", "--sample", "--board", "play")).code == 0
    assert wall.writes == []


async def test_webhooks_are_created_compared_and_repaired(
    wall: CliBoard, trello: FakeTrello, ears: WebhookReceiver
) -> None:
    (await wall("webhook", "add", "Work")).refused(3, "no boards configured")
    await wall.added()
    (await wall("webhook", "add", "Work")).refused(2, "[trello] callback_url is not set")
    wall.configure(callback_url=ears.url, listen="127.0.0.1:0")
    ears.head = 502
    (await wall("webhook", "add", "Work")).refused(1, "did not return 200", "draftsman bots")
    assert "Work has no webhook to" in (await wall("webhook", "list")).err
    ears.head = 200
    assert "created" in (await wall("webhook", "add", "Work")).out
    assert "unchanged" in (await wall("webhook", "add", "Work")).out
    [webhook] = trello.webhooks
    trello.deactivate(webhook["id"])
    [shown] = (await wall("webhook", "list", "--json")).json["webhooks"]
    assert (shown["board"], shown["state"], shown["failures"]) == ("Work", "disabled", 30)
    assert "enabled" in (await wall("webhook", "repair")).out
    wall.configure(callback_url=f"{ears.url}/", listen="127.0.0.1:0")
    listing = (await wall("webhook", "list", "--json")).json
    assert ([item["state"] for item in listing["webhooks"]], listing["missing"]) == (
        ["other_url"],
        ["Work"],
    )
    wall.configure(callback_url=ears.url.replace("127.0.0.1", "localhost"), listen="127.0.0.1:0")
    assert "created" in (await wall("webhook", "repair", "Work")).out
    [other] = trello.webhooks
    assert other["callbackURL"].startswith("http://localhost")
    (await wall("webhook", "remove", "Work")).refused(2, "not a terminal")
    removed = await wall("webhook", "remove", "Work", "--yes")
    assert "the bot registers it again" in removed.err
    assert trello.webhooks == []
    assert "has no webhook" in (await wall("webhook", "remove", "Work", "--yes")).out


async def test_a_webhook_with_a_lost_reply_is_found_and_kept(
    wall: CliBoard, trello: FakeTrello, ears: WebhookReceiver, rt: Runtime
) -> None:
    await wall.added()
    wall.configure(callback_url=ears.url, listen="127.0.0.1:0")
    await wall("webhook", "add", "Work")
    [webhook] = trello.webhooks
    await rt.boards.webhook(wall.board, None)
    assert "unchanged" in (await wall("webhook", "repair")).out
    config = await rt.boards.of(wall.board)
    assert config is not None
    assert config.webhook_id == webhook["id"]
    await rt.boards.webhook(wall.board, None)
    assert (await wall("webhook", "remove", webhook["id"], "--yes")).code == 0
    assert trello.webhooks == []


async def test_a_board_is_removed_with_its_webhook_and_a_question(
    wall: CliBoard, trello: FakeTrello, ears: WebhookReceiver, rt: Runtime
) -> None:
    await wall.added()
    wall.configure(callback_url=ears.url, listen="127.0.0.1:0")
    await wall("webhook", "add", "Work")
    (await wall("remove", "Work")).refused(2, "not a terminal; to remove Work, use --yes")
    assert (await wall("remove", "work", "--yes")).out == "Work removed\n"
    assert (await rt.boards.all(), trello.webhooks) == ([], [])
    await wall.added()
    await wall("webhook", "add", "Work")
    trello.faults.next("DELETE", "/webhooks/{id}", error(500, "Internal"), times=9)
    removed = await wall("remove", "Work", "--yes")
    assert removed.code == 0
    assert "the webhook" in removed.err
    assert "not removed: Trello" in removed.err
    assert await rt.boards.all() == []
