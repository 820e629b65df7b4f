"""`boards bind` and `unbind`: labels that create jobs of a template."""

from __future__ import annotations

from draftsman.runtime import Runtime
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.trello import FakeTrello
from tests.tui.cli.conftest import As
from tests.tui.cli.trello_board import CliBoard

TEMPLATE = ("--type", "http_request", "--payload", '{"url": "https://example.org/"}', "Do it")


async def _rules(board: CliBoard, rt: Runtime) -> dict[str, str]:
    config = await boards_of(rt).of(board.board)
    assert config is not None
    return {id: rule.text for id, rule in config.labels.items()}


async def test_a_label_is_bound_listed_and_unbound(board: CliBoard, rt: Runtime) -> None:
    await board.added()
    assert (await board.cli("templates", "add", "bump", *TEMPLATE)).code == 0
    bound = await board("bind", "Work", "BUG", "bump")
    assert bound.out == ("board Work has the label BUG, which creates jobs of template bump\n")
    assert await _rules(board, rt) == {board.label: "fix", board.bug: "template bump"}
    assert "label bug creates a job (template bump)" in (await board("show", "Work")).out
    assert "bug: template bump" in (await board("list")).out
    assert "label 'bug' creates a job (template bump)" in (await board("test", "Work")).out
    again = await board("bind", "Work", "bug", "template/bump@1", "--json")
    assert again.json["labels"][board.bug]["template"] == "template/bump@1"
    await board("bind", "Work", "bug", "bump")
    await board.cli("templates", "remove", "bump", "--yes")
    tested = await board("test", "Work")
    assert tested.code == 1
    assert "board Work: label 'bug': template bump was removed" in tested.out
    assert f"draftsman boards unbind {board.board} 'bug'" in tested.out
    assert (await board("unbind", "Work", "bug")).out == (
        "board Work has the label bug, which no longer creates jobs\n"
    )
    assert await _rules(board, rt) == {board.label: "fix"}
    assert board.writes == []


async def test_label_options_bind_templates_too(board: CliBoard, rt: Runtime) -> None:
    await board.cli("templates", "add", "bump", *TEMPLATE)
    await board("add", board.url, "--label", "bug=template/bump")
    assert await _rules(board, rt) == {board.bug: "template bump"}


async def test_bad_input_is_refused_in_a_line(board: CliBoard, trello: FakeTrello) -> None:
    await board.added()
    await board.cli("templates", "add", "bump", *TEMPLATE)
    for args, code, problem in (
        (("bind", "Work", "nope", "bump"), 2, "the board has no label 'nope'"),
        (("bind", "Work", "bug", "bmp"), 3, "unknown template 'bmp'; did you mean bump?"),
        (("bind", "Work", "bug", "bump@2"), 3, "template bump has no version 2"),
        (("bind", "Work", "bug", "a b"), 3, "unknown template 'a b'"),
        (("bind", "Work", "draftsman: queued", "bump"), 2, "the queued label may not be"),
        (("bind", "Play", "bug", "bump"), 3, "unknown board 'Play'"),
        (("unbind", "Work", "bug"), 3, "no label 'bug' of Work has a template; labels: none"),
        (("set", "Work", "--label", "bug=template/"), 2, "NAME=template/TEMPLATE"),
    ):
        (await board(*args)).refused(code, problem)


async def test_only_operators_bind_labels(board: CliBoard, as_: As, rt: Runtime) -> None:
    await board.added()
    await board.cli("templates", "add", "bump", *TEMPLATE)
    await board("bind", "Work", "bug", "bump")
    board.cli = as_("anna")
    board.configure()
    for args in (("bind", "Work", "draftsman", "bump"), ("unbind", "Work", "bug")):
        (await board(*args)).refused(1, "may not change boards (needs the role operator)")
    assert await _rules(board, rt) == {board.label: "fix", board.bug: "template bump"}
