"""The live checks of forges, on the fake of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman_bots.forges.live_checks import LIVE_CHECKS
from draftsman_testing.channel.live_contract import LiveContract, Onlooker
from draftsman_testing.fake.faults import Fault
from draftsman_testing.forges.server import Page, Refused
from tests.core.forges.api_contract import ForgeHarness, forge_harness

Work = Callable[[], Any]


class ForgeSide:
    """An issue of a repository."""

    scratch: str | None = "acme/pay#7"

    def __init__(self, harness: ForgeHarness) -> None:
        self.world = harness.fake.world
        self.settings = harness.settings
        self.service = harness.fake.kind
        self.secret = self.world.token
        self.person = Onlooker(harness.fake.later)
        self._before = len(self.world.notes)

    @property
    def table(self) -> object:
        return self.settings.forges

    def written(self) -> Collection[object]:
        return self.world.notes[self._before :]

    def echo(self) -> None:
        text = f"no comments for {self.secret}"
        self.world.faults.add("comment", Fault("error", status=403, text=text))

    def keep(self) -> None:
        self.world.faults.add("delete comment", Fault("error", status=403, text="forbidden"))


def _bodies(args: Mapping[str, Any], work: Work) -> Any:
    """Return a comment without its hidden line."""
    note = work()
    note["body"] = note["body"].rpartition("\n")[0]
    return note


def _empty(args: Mapping[str, Any], work: Work) -> Any:
    return Page([])


def _unedited(args: Mapping[str, Any], work: Work) -> Any:
    raise Refused(403, "comments cannot be edited")


def _without_authors(args: Mapping[str, Any], work: Work) -> Any:
    page = work()
    for note in page.entries:
        note.pop("user", None)
        note.pop("author", None)
    return page


def _too_long(args: Mapping[str, Any], work: Work) -> Any:
    if len(args.get("body", "")) > 60_000:
        raise Refused(422, "Body is too long (maximum is 60000 characters)")
    return work()


def _change(operation: str, change: Callable[[Mapping[str, Any], Work], Any]) -> Any:
    return lambda side: side.world.faults.change(operation, change)


BREAKS: Final[Mapping[str, Callable[[ForgeSide], object]]] = {
    "hidden-line": _change("comment of", _bodies),
    "comments-since": _change("comments", _empty),
    "edited-comment": _change("edit comment", _unedited),
    "author-of-comment": _change("all comments", _without_authors),
    "longest-comment": _change("comment", _too_long),
    "text-without-effect": lambda side: side.person.unseen.add("as text"),
}


class TestLiveChecks(LiveContract):
    """GitHub has each break of its own; the others share its calls."""

    checks = LIVE_CHECKS
    breaks = BREAKS

    @pytest.fixture
    async def side(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[ForgeSide]:
        async with forge_harness("github", tmp_path, monkeypatch) as harness:
            yield ForgeSide(harness)


@pytest.mark.parametrize("kind", ["gitlab", "gitea", "github app"])
async def test_other_kinds_hold_every_assumption(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with forge_harness(kind, tmp_path, monkeypatch) as harness:
        side = ForgeSide(harness)
        report = await TestLiveChecks()._report(side)
        assert report.ok, report.checks
        assert [*side.written()] == []
