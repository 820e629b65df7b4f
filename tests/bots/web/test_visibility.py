"""A repository that a person may not see is on none of their pages."""

from __future__ import annotations

import pytest

from draftsman.entities.registry import listed_entities
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.bots.web.web_side import Inbox
from tests.support.visibility import SECRET, hide


async def test_a_hidden_repository_is_on_no_page(
    inbox: Inbox, make: Factory, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "carol")
    group = {"name": "Hidden", "kind": "parallel"}
    gate = await make.asked(GATE, repo=SECRET, title="Hidden", group=group)
    await make.queued(repo=SECRET, queue="Hidden")
    carol = await inbox.visit(people.carol)
    dave = await inbox.visit(people.dave)
    question = f"/questions/{gate.name}/1"
    seen = set()
    for path in ("/", "/jobs", *(f"/lists/{name}" for name in listed_entities())):
        assert "Hidden" not in (text := (await carol.get(path)).text), path
        assert f"{gate.name}<" not in text, path
        if "Hidden" in (await dave.get(path)).text:
            seen.add(path)
    assert {"/", "/jobs", "/lists/groups", "/lists/queues"} <= seen
    for path in (
        *(f"/jobs/{gate.name}", f"/jobs/{gate.name}/log", f"/jobs/{gate.name}/changes"),
        *(question, f"{question}/diff.txt", f"/jobs/{gate.name}/pictures/chart.png"),
    ):
        assert (await carol.get(path)).status_code == 404, path
    assert (await dave.get(question)).status_code == 200
    fields = {**await dave.hidden(question), **await carol.hidden("/"), "decision": "approve"}
    assert (await carol.post(question, fields)).status_code == 404
