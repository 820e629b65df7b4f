"""The command `help`: the help of a command with its page, and pages of the documentation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from draftsman_tui.cli import main, pages
from tests.docs.pages import DOCS
from tests.support.cases import cases
from tests.tui.cli.cli_runner import Cli, Terminal


async def test_help_of_a_command_is_its_help_and_its_page(cli: Cli) -> None:
    for command, page in (
        (("submit",), "commands#submit"),
        (("queues", "pause"), "operations#pausing-and-draining-a-queue"),
        (("agents", "check"), "coding-agents#enable-an-agent"),
    ):
        text = (await cli(*command, "--help")).out
        shown = await cli("help", *command)
        assert (shown.code, shown.out) == (0, f"{text}\nPage: draftsman help --page {page}\n")
        assert (await cli("help", "--page", page)).out.startswith("## ")


async def test_help_names_nothing_else_for_an_unknown_topic(cli: Cli) -> None:
    shown = await cli("help", "shw")
    assert shown.refused(2) == "draftsman: unknown command 'shw'; did you mean show?\n"
    shown = await cli("help", "--page", "limts")
    shown.refused(3, "there is no page 'limts'; did you mean limits?", "draftsman help --page")
    shown = await cli("help", "--page", "limits#rate")
    shown.refused(3, "there is no section 'rate' of the page limits; did you mean rates?")


@cases("name", ["limits", "docs/limits.md", "limits.md"])
async def test_a_page_is_printed_as_it_is_where_there_is_no_terminal(cli: Cli, name: str) -> None:
    text = (DOCS / "limits.md").read_text("utf-8")
    assert (await cli("help", "--page", name)).out == text
    assert (await cli("help", "--page", name, "--json")).json == {"page": name, "text": text}


async def test_a_topic_that_is_no_command_is_a_page_and_no_page_is_the_index(cli: Cli) -> None:
    assert (await cli("help", "sandbox")).out.startswith("# The sandbox")
    assert (await cli("help", "--page")).out.startswith("# I want to …")


def test_a_page_is_rendered_in_the_pager_of_a_terminal(
    terminal: Callable[..., Terminal],
) -> None:
    shown = terminal("help", "--page", "limits", DRAFTSMAN_PAGER="sed 's/^/page:/'")
    assert shown.end() == 0
    assert "page:" in shown.plain
    assert "```" not in shown.plain
    assert "page:                                     Limits" in shown.plain
    short = terminal("help", "--page", "limits#rates", "--no-pager")
    assert short.end() == 0
    assert "sliding window" in short.plain
    assert "Fairness" not in short.plain


def test_a_section_ends_at_the_next_of_its_level() -> None:
    text = pages.read("own-jobs#parameters-and-results")
    assert text.startswith("## Parameters and results\n")
    assert "\n### " in text
    assert "\n## " not in text


def test_the_page_of_a_command_is_the_row_with_most_of_its_words() -> None:
    assert pages.page_of(["people", "set"]) == "security#people"
    assert pages.page_of(["no-such-command"]) is None


def test_topics_and_pages_are_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for line, names in (("help su", ["submit"]), ("help --page own", ["own-jobs"])):
        monkeypatch.setenv("_DRAFTSMAN_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", f"draftsman {line}")
        monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
        assert main.run([]) == 0
        assert [row.split(",")[1] for row in capsys.readouterr().out.split()] == names
