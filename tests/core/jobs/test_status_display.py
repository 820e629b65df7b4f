"""Display of the statuses of a job."""

from __future__ import annotations

from draftsman.jobs.job import TERMINAL, WAITING, Status
from draftsman.jobs.status_display import DENIED, STATUSES, Meaning, StatusDisplay, display_of
from draftsman.text import humanize
from tests.support.cases import cases


@cases("status", Status)
def test_a_status_is_shown_by_its_name_and_an_emoji(status: Status) -> None:
    display = display_of(status)
    assert display.word == humanize(status)
    assert display.emoji_code.startswith(":")
    assert display.emoji_code.endswith(":")
    assert not display.emoji.isascii()


def test_the_meaning_is_that_of_the_state_machine() -> None:
    meanings = {status: display.meaning for status, display in STATUSES.items()}
    assert {status for status in Status if meanings[status] is Meaning.WAITING} == WAITING
    ends = {Meaning.SUCCESS, Meaning.FAILURE, Meaning.NEUTRAL}
    assert {status for status in Status if meanings[status] in ends} == TERMINAL


def test_a_denial_is_no_failure() -> None:
    assert display_of(Status.FAILED, denied=True) is DENIED
    assert DENIED.meaning is Meaning.DENIED
    assert display_of(Status.FAILED).meaning is Meaning.FAILURE


def test_statuses_that_differ_in_meaning_differ_in_emoji() -> None:
    def look(display: StatusDisplay) -> tuple[str, str]:
        return display.emoji, display.emoji_code

    shown: dict[tuple[str, str], set[Meaning]] = {}
    for display in (*STATUSES.values(), DENIED):
        shown.setdefault(look(display), set()).add(display.meaning)
    mixed = {emoji for (emoji, _), meanings in shown.items() if len(meanings) > 1}
    assert mixed == {"⚙️"}, "a resumed job works as soon as a worker is free"
    assert len({emoji for emoji, _ in shown}) == len({name for _, name in shown}) == len(shown)
