"""Who may see a repository is decided in one place, which pages, lists and messages ask."""

from __future__ import annotations

import pytest

from draftsman.entities.jobs import JOBS
from draftsman.entities.questions import INBOX
from draftsman.people import visibility
from draftsman.people.actor import Actor
from draftsman.people.policy import Person
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.bots.web.web_side import Inbox


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the repository `secret` from carol."""

    def may_see(viewer: Actor | Person | None, repo: str | None) -> bool:
        name = viewer.person if isinstance(viewer, Actor) else viewer and viewer.name
        return not (name == "carol" and (repo or "").rpartition("/")[2] == "secret")

    monkeypatch.setattr(visibility, "may_see", may_see)


@pytest.mark.usefixtures("hidden")
async def test_a_hidden_repository_is_on_no_page(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    gate = await make.asked(GATE, repo="secret", title="Hidden")
    carol = await inbox.visit(people.carol)
    dave = await inbox.visit(people.dave)
    question = f"/questions/{gate.name}/1"
    pages = ("/", "/jobs", "/lists/inbox", "/lists/jobs")
    for path in pages:
        assert "Hidden" not in (await carol.get(path)).text, path
        assert "Hidden" in (await dave.get(path)).text, path
    for path in (f"/jobs/{gate.name}", f"/jobs/{gate.name}/log", question, f"{question}/diff.txt"):
        assert (await carol.get(path)).status_code == 404, path
    assert (await dave.get(question)).status_code == 200
    fields = {**await dave.hidden(question), **await carol.hidden("/"), "decision": "approve"}
    assert (await carol.post(question, fields)).status_code == 404
    questions = await rt.questions.open(gate.number)
    assert INBOX.visible(questions, people.carol) == []
    assert INBOX.visible(questions, people.dave) == questions
    jobs = (await rt.read_model.page()).jobs
    assert len(JOBS.visible(jobs, None)) == len(jobs)
