"""No front end hides what a hostile diff does: the same table for each of them."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final

from draftsman.agent_runs.changes.shown_diff import shown_diff
from draftsman.deliveries.delivery import DeliveryKind
from draftsman_bots.web.pages import fragment
from draftsman_testing.channel.examples import APPROVAL
from draftsman_testing.channel.samples import message, question
from draftsman_tui.common.artifacts import patch_line
from draftsman_tui.dashboard.changes.diff_view import DiffView
from tests.bots.test_documents import MEDIA
from tests.support.cases import cases
from tests.support.hostile_diffs import DIFFS, UNSEEN

OWN: Final = re.compile("(?<=[@</])\u200b")
"""What Trello and the forges need, so that nobody is mentioned."""


def _web(patch: str) -> str:
    text = fragment(
        "changes",
        active="jobs",
        job=SimpleNamespace(name="D-7"),
        visit=None,
        live=False,
        diff=shown_diff(patch),
        is_large=False,
    )
    return re.sub(r"<[^>]*>", "", text)


def _chat(render: Callable[..., str]) -> Callable[[str], str]:
    def shown(patch: str) -> str:
        asked = question(**APPROVAL, context_snippet=patch)
        return render(message(kind=DeliveryKind.QUESTION, question=asked))

    return shown


FRONT_ENDS: Final[dict[str, Callable[[str], str]]] = {
    "web": _web,
    "dashboard": lambda patch: DiffView(patch).text,
    "diff": lambda patch: "\n".join(patch_line(line).plain for line in patch.split("\n")),
    **{name: _chat(MEDIA[name]) for name in ("terminal", "slack", "trello", "forge", "html")},
}


@cases("name", DIFFS)
def test_every_front_end_shows_what_a_diff_does(name: str) -> None:
    diff = DIFFS[name]
    missing = []
    for front_end, render in FRONT_ENDS.items():
        text = OWN.sub("", html.unescape(render(diff.patch)))
        if re.search(diff.shown, text) is None:
            missing.append(f"{front_end} does not show {diff.shown}: {text[:600]}")
        if unseen := {char for char in text if ord(char) in UNSEEN or _is_control(char)}:
            missing.append(f"{front_end} has {unseen!a}")
    assert missing == []


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co") and char not in "\n\t"
