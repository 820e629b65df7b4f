"""The undo window of answers: nothing counts in it, and its end is the answer."""

from __future__ import annotations

import re

from draftsman.questions.question import QuestionStatus
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.bots.web.web_side import serving


async def test_a_decision_is_undone_with_what_was_entered(
    rt: Runtime, make: Factory, people: People
) -> None:
    work = await make.reviewed()
    path = f"/questions/{work.name}/1"
    async with serving(rt, undo=60) as inbox:
        dave = await inbox.visit(people.dave)
        request = {"decision": "request-changes", "reason": "add a test", "comments": "a.py:3=why?"}
        sent = await dave.answer(path, **request)
        assert (sent.status_code, sent.headers["location"]) == (303, f"{path}?held")
        held = await dave.get(f"{path}?held")
        assert re.search(
            r'request for changes counts in <b class="seconds">(5\d|60)</b>', held.text
        )
        assert "<q>add a test\n\na.py:3: why?</q>" in held.text
        assert held.text.count("Undo</button>") == 1
        elsewhere = (await dave.get("/")).text
        assert f'Your answer to <a href="{path}">{work.name}/1</a> counts in' in elsewhere
        assert f'action="{path}/undo"' in elsewhere
        assert re.fullmatch(rf"(5\d|6[01]); url={path}\?held", held.headers["refresh"])
        assert "Approve</button>" not in held.text
        assert "refresh" not in (await (await inbox.visit(people.carol)).get(path)).headers
        assert (await rt.questions.get(work.number, 1)).status is QuestionStatus.OPEN
        form = await dave.hidden(path)
        shown = await dave.post(f"{path}/undo", form)
        assert shown.status_code == 200
        assert "Undone: your answer does not count." in shown.text
        assert ">add a test</textarea>" in shown.text
        assert ">a.py:3=why?</textarea>" in shown.text
        assert (await dave.post(f"{path}/undo", form)).status_code == 409
        assert "Approve</button>" in (await dave.get(path)).text
        assert "Undo</button>" not in (await dave.get("/")).text


async def test_an_answer_that_is_not_undone_counts(
    rt: Runtime, make: Factory, people: People
) -> None:
    work = await make.asked(GATE)
    path = f"/questions/{work.name}/1"
    async with serving(rt, undo=0.2) as inbox:
        carol = await inbox.visit(people.carol)
        assert (await carol.answer(path, decision="approve")).status_code == 303

        async def counts() -> bool:
            return (await rt.questions.get(work.number, 1)).outcome == "approved"

        await until(counts, "the approval")
        page = await carol.get(f"{path}?held")
        assert "Your answer was recorded." in page.text
        assert "refresh" not in page.headers


async def test_the_answer_of_another_person_may_be_first(
    rt: Runtime, make: Factory, people: People
) -> None:
    work = await make.asked()
    path = f"/questions/{work.name}/1"
    async with serving(rt, undo=1) as inbox:
        ben = await inbox.visit(people.ben)
        assert (await ben.answer(path, choice="red")).status_code == 303
        await make.answer(work.number, "blue")

        async def is_refused() -> bool:
            return "Your answer does not count: " in (await ben.get(f"{path}?held")).text

        await until(is_refused, "the refusal")
