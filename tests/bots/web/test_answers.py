"""Answers and decisions over HTTP, with the rights and rules of all channels."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

from draftsman.database.database import Connection
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.answer_kind import AnswerKind
from draftsman.questions.question import Decision
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.rights import responders_text
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, PATCH, QUESTION, REVIEW, Factory
from draftsman_testing.people import People
from draftsman_testing.waits import wait_blocked
from tests.bots.web.web_side import Inbox
from tests.support.permissions import SHOP


def wrong_fields(page: str) -> list[str]:
    """Return the fields with a problem, which is at the field alone and has the focus."""
    assert 'class="notice bad"' not in page
    fields = re.findall(r'<p class="wrong" id="(\w+)-problem">', page)
    for field in fields:
        marked = (
            rf'id="{field}"[^>]* aria-invalid="true" aria-describedby="{field}-problem[^>]* auto'
        )
        assert re.search(marked, page)
    assert page.count(" autofocus") == len(fields)
    return fields


async def test_a_choice_resumes_the_job(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.asked()
    ben = await inbox.visit(people.ben)
    path = f"/questions/{work.name}/1"
    page = await ben.get(path)
    assert page.status_code == 200
    assert "Which one?" in page.text
    done = await ben.answer(path, choice="blue")
    assert (done.status_code, done.headers["location"]) == (303, f"{path}?recorded")
    shown = await ben.get(f"{path}?recorded")
    assert "Your answer was recorded." in shown.text
    assert "was answered by ben: blue" in shown.text
    _, [answer] = await rt.questions.of_job(work.number)
    assert (answer.source, answer.voter, answer.payload) == ("web", "ben", {"value": "blue"})
    assert answer.responder_id == "ben"
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED
    events = await rt.read_model.job_events(work.number)
    assert "web:ben" in {event.actor for event in events}


async def test_identical_questions_are_shown_once_and_an_answer_counts_for_all(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    jobs = [await make.asked(repo=SHOP) for _ in range(4)]
    ben = await inbox.visit(people.ben)
    listed = (await ben.get("/")).text
    assert listed.count("Which one?") == 1
    assert "4 jobs ask this" in listed
    alone = f"/questions/{jobs[3].name}/1"
    page = (await ben.get(alone)).text
    names = ", ".join(work.name for work in jobs)
    assert f"4 jobs ask this: {names}. An answer counts for all." in page
    done = await ben.answer(alone, choice="blue", only="yes")
    assert done.headers["location"] == f"{alone}?recorded"
    assert "3 jobs ask this" in (await ben.get("/")).text

    path = f"/questions/{jobs[1].name}/1"
    done = await ben.answer(path, choice="red")
    assert done.headers["location"] == f"{path}?recorded&also=2"
    assert "recorded, also for 2 other jobs." in (await ben.get(f"{path}?recorded&also=2")).text
    assert "recorded." in (await ben.get(f"{path}?recorded&also=many")).text
    values = [(await rt.questions.get(work.number, 1)).answer_text() for work in jobs]
    assert values == ["red", "red", "red", "blue"]


async def test_the_next_question_is_the_following_that_nobody_else_holds(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    works = [await make.asked(GATE, text=f"Ticket {nth}") for nth in range(4)]
    paths = [f"/questions/{work.name}/1" for work in works]
    await make.asked()
    carol = await inbox.visit(people.carol)
    await rt.acknowledgments.delegate(works[2].number, 1, people.carol, "dave", 60)
    listed = (await carol.get("/")).text
    assert 'For you <span class="count">3</span>' in listed
    assert listed.index("For others") < listed.index("delegated to dave")
    following = {0: 1, 1: 3, 2: 3, 3: 0}
    for nth, other in following.items():
        page = (await carol.get(paths[nth])).text
        assert f'class="next" href="{paths[other]}"' in page
        assert f'written">Ticket {nth}</p>' in page
        assert (" to dave, others wait until " in page) is (nth == 2)
    await carol.answer(paths[1], decision="approve")
    note = (await carol.get(f"{paths[1]}?recorded")).text
    assert f'class="button primary" href="{paths[3]}">Next: {works[3].name}/1' in note
    assert 'class="next"' not in note


async def test_a_form_counts_once(inbox: Inbox, make: Factory, people: People, rt: Runtime) -> None:
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    carol = await inbox.visit(people.carol)
    path = f"/questions/{work.name}/1"
    fields = {**await carol.hidden(path), "decision": "approve", "reason": "looks good"}
    first, again = [await carol.post(path, fields) for _ in range(2)]
    assert (first.status_code, again.status_code) == (303, 303)
    _, answers = await rt.questions.of_job(work.number)
    assert [answer.voter for answer in answers] == ["carol"]
    page = (await carol.get(path)).text
    assert "1 of 2 approvals" in page
    assert ">approves: looks good<" in page
    assert "; 1 more approval is needed (dave)." in page
    assert ('value="approve"' in page, 'value="deny"' in page) == (False, True)
    inbox_page = (await carol.get("/")).text
    assert "No question waits for you" in inbox_page
    assert "<span>1 of 2 approvals</span>" in inbox_page
    repeated = await carol.answer(path, decision="approve")
    assert repeated.status_code == 409
    assert "already recorded" in repeated.text
    dave = await inbox.visit(people.dave)
    assert (await dave.answer(path, decision="approve")).status_code == 303
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_a_denial_has_a_reason(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.asked(GATE)
    dave = await inbox.visit(people.dave)
    path = f"/questions/{work.name}/1"
    assert (await dave.answer(path, decision="deny", reason="not\r\non Friday")).status_code == 303
    question = await rt.questions.get(work.number, 1)
    assert question.resolution == {
        "outcome": "denied",
        "via": "person",
        "by": ["dave"],
        "reason": "not\non Friday",
    }
    assert (await rt.read_model.job(work.number)).status is Status.FAILED
    assert '<span class="tag denied">denied</span>' in (await dave.get(path)).text
    page = (await dave.get(f"/jobs/{work.name}")).text
    assert '<span class="tag denied">failed</span>' in page
    assert '<span class="denied">was denied by dave: not on Friday</span>' in page
    approved = await make.asked(GATE)
    path = f"/questions/{approved.name}/1"
    assert (await dave.answer(path, decision="approve")).status_code == 303
    assert '<span class="tag good">approved</span>' in (await dave.get(path)).text


async def test_the_first_files_are_unfolded_but_large_ones(
    inbox: Inbox, make: Factory, people: People
) -> None:
    sizes = {"small": 3, "large": 301, "next": 299, "full": 299, "tiny": 1}
    sections = [
        f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,{size} @@\n"
        + "+x\n" * size
        for name, size in sizes.items()
    ]
    work = await make.reviewed("".join(sections).encode())
    text = (await (await inbox.visit(people.dave)).get(f"/questions/{work.name}/1")).text
    folded = dict(re.findall(r'<details id="file-(\d)"( open)?>', text))
    assert folded == {"1": " open", "2": "", "3": " open", "4": "", "5": ""}
    assert re.findall(r'<span class="hint">(\d+) lines', text) == ["302", "300", "2"]
    assert text.count("> Viewed</label>") == len(sizes)
    assert re.findall(r'<a href="#file-\d"><span class="path">(\w+)', text) == [*sizes]
    assert 'name="comment" value="large:301"' in text


async def test_changes_are_requested_with_comments_in_a_form(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.reviewed()
    dave = await inbox.visit(people.dave)
    path = f"/questions/{work.name}/1"
    request = {"decision": "request-changes", "reason": "add a test"}
    begun = await dave.answer(
        path, reason="add a test", comments="b.txt: name it", comment="a.py:3"
    )
    assert begun.status_code == 200
    assert ">add a test</textarea>" in begun.text
    assert re.search(r" autofocus>b.txt: name it\na.py:3=</textarea>", begun.text)
    comments = "a.py:3=why?\r\n\r\nb.txt: name it"
    for wrong, problem in (
        ("a.py:9=x", "he diff has no line 9 of a.py; its lines of the new version: 1-3"),
        ("c.py=x", "is not a comment on a changed file"),
    ):
        refused = await dave.answer(path, **request, comments=wrong)
        assert refused.status_code == 422
        assert problem in refused.text
        assert wrong in refused.text
        assert wrong_fields(refused.text) == ["comments"]
        refused = await dave.answer(path, **request | {"reason": wrong.replace("c.py", "a.py:9")})
        assert wrong_fields(refused.text) == ["reason"]
    refused = await dave.answer(path, decision="approve", comments=comments)
    assert "omments on files are for a request for changes" in refused.text
    assert wrong_fields(refused.text) == ["comments"]
    many = "\n".join(["a.py:3=x"] * 101)
    refused = await dave.answer(path, **request, comments=many)
    assert wrong_fields(refused.text) == ["comments"]
    refused = await dave.answer(path, decision="request-changes")
    assert wrong_fields(refused.text) == ["reason"]
    undecided = await dave.answer(path)
    assert undecided.text.count('role="alert"><p>Choose: approve') == 1
    assert "aria-invalid" not in undecided.text
    assert (await dave.answer(path, **request, comments=comments)).status_code == 303
    question = await rt.questions.get(work.number, 1)
    assert list(map(str, question.comments)) == ["a.py:3: why?", "b.txt: name it"]
    page = (await dave.get(path)).text
    assert '">changes requested</span>' in page
    assert "requests changes: add a test" in page
    assert "a.py:3: why?" in page


async def test_a_new_approval_repeats_what_was_asked_for(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.reviewed()
    dave = await inbox.visit(people.dave)
    request = {"decision": "request-changes", "reason": "add a test", "comments": "a.py:3=why?"}
    assert (await dave.answer(f"/questions/{work.name}/1", **request)).status_code == 303
    again = await make.running(work.number)
    await rt.changes.store(again.lease, PATCH)
    await rt.asking.ask(again.lease, REVIEW.model_copy(update={"key": "second review"}))
    page = (await dave.get(f"/questions/{work.name}/2")).text
    asked = page.index(f'Asked for in <a href="/questions/{work.name}/1">')
    assert asked < page.index("<p>add a test</p>") < page.index("<code>a.py:3</code> why?")


async def test_a_replaced_approval_links_the_one_that_repeats_what_was_asked_for(
    inbox: Inbox, make: Factory, people: People
) -> None:
    work = await make.overtaken(people.carol)
    dave = await inbox.visit(people.dave)
    page = (await dave.get(f"/questions/{work.name}/2")).text
    asked = page.index(
        f'Asked for in <a href="/questions/{work.name}/1">{work.name}/1</a> by carol'
    )
    assert asked < page.index("<p>use the v2 API</p>") < page.index("<code>a.py:3</code> handle")
    old = (await dave.get(f"/questions/{work.name}/1")).text
    link = f'it is asked again as <a href="/questions/{work.name}/2">{work.name}/2</a>'
    assert link in old
    assert "requests changes: use the v2 API" in old
    assert link not in page


async def test_an_expired_question_says_when_and_what_helps(
    inbox: Inbox, make: Factory, people: People
) -> None:
    number = await make.expired(actor=people.anna)
    anna = await inbox.visit(people.anna)
    path = f"/questions/D-{number}/1"
    page = (await anna.get(path)).text
    said = re.sub(r"<(?!/?time)[^>]*>", "", page)
    assert re.search(
        rf"No person had answered it at <time [^>]*>[^<]*</time>: D-{number} expired\.", said
    )
    assert re.search(
        r"expired, <time [^>]*>now</time> · asked|expired, <time [^>]*>\d+ s ago", said
    )
    assert '<input type="hidden" name="action" value="retry">' in page
    of_job = re.sub(r"<(?!/?time)[^>]*>", "", (await anna.get(f"/jobs/D-{number}")).text)
    assert re.search(rf"D-{number}/1 expired at <time [^>]*>[^<]*</time>: no answer within", of_job)
    assert "(on_expire" not in of_job
    fields = {**await anna.hidden(path), "action": "retry"}
    assert (await anna.post(f"/jobs/D-{number}", fields)).status_code == 303
    page = (await anna.get(path)).text
    assert f', and was retried as <a href="/jobs/D-{number + 1}">' in page
    assert 'value="retry"' not in page


async def test_a_question_of_work_that_changed_nothing_has_no_card_of_changes(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.running(actor=people.anna)
    await rt.changes.store(work.lease, b"")
    await rt.asking.ask(work.lease, QUESTION)
    anna = await inbox.visit(people.anna)
    page = (await anna.get(f"/questions/{work.name}/1")).text
    assert "<h2>Changes</h2>" not in page
    assert "diff.txt" not in page


async def test_the_address_of_a_form_leads_to_its_page(
    inbox: Inbox, make: Factory, people: People
) -> None:
    work = await make.asked()
    anna = await inbox.visit(people.anna)
    for path, page in (
        (f"/questions/{work.name}/1/undo", f"/questions/{work.name}/1"),
        ("/sign-out", "/"),
    ):
        response = await anna.get(path)
        assert (response.status_code, response.headers["location"]) == (303, page)


async def test_lines_that_changed_since_a_review_take_comments_that_the_changes_show(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.reviewed(PATCH)
    await make.review(work.number, Decision.REQUEST_CHANGES, people.dave, reason="use two")
    again = await make.running(work.number)
    changed = PATCH.replace(b"index 1..2", b"index 1..3").replace(b"+2\n", b"+two\n")
    await rt.changes.store(again.lease, changed[: changed.index(b"diff --git a/b.txt")])
    await rt.asking.ask(again.lease, REVIEW)
    dave = await inbox.visit(people.dave)
    page = (await dave.get(f"/questions/{work.name}/2")).text
    since = page[page.index('id="since-file-1"') : page.index("<h3>All changes</h3>")]
    assert "b.txt" in since, "which is no longer changed, and takes no comment"
    assert {*re.findall(r'name="comment" value="([^":]*)', since)} == {"a.py"}


async def test_the_context_is_read_before_the_facts_as_markdown_and_as_it_was_written(
    inbox: Inbox, make: Factory, people: People
) -> None:
    work = await make.asked(GATE.model_copy(update={"context": "**Why** <b>\n\n- `one`"}))
    plain = await make.asked(GATE.model_copy(update={"context": "a * b * c\n  __init__"}))
    carol = await inbox.visit(people.carol)
    page = (await carol.get(f"/questions/{work.name}/1")).text
    shown = page.index("<strong>Why</strong> &lt;b&gt;")
    assert shown < page.index("<pre>**Why** &lt;b&gt;") < page.index('<dl class="facts">')
    page = (await carol.get(f"/questions/{plain.name}/1")).text
    assert "<pre>a * b * c\n  __init__</pre>" in page
    assert "As written" not in page


async def test_a_form_offers_to_request_changes_where_somebody_makes_them(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    gate = await make.asked(GATE)
    review = await make.reviewed()
    dave = await inbox.visit(people.dave)
    pages = [(await dave.get(f"/questions/{work.name}/1")).text for work in (gate, review)]
    assert ["Request changes</button>" in page for page in pages] == [False, True]
    assert ['name="comments"' in page for page in pages] == [False, True]
    refused = await dave.answer(
        f"/questions/{gate.name}/1", decision="request-changes", reason="no"
    )
    assert "takes no requests for changes" in refused.text
    assert (await rt.questions.get(gate.number, 1)).status == "open"


async def test_two_people_answer_at_once(
    inbox: Inbox, make: Factory, people: People, rt: Runtime, conn: Connection
) -> None:
    work = await make.asked(actor=people.anna)
    path = f"/questions/{work.name}/1"
    ben = await inbox.visit(people.ben)
    anna = await inbox.visit(people.anna)
    forms = [await ben.hidden(path), await anna.hidden(path)]
    lock = "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE"
    async with conn.transaction():
        await conn.execute(lock, (work.number,))
        sent = [
            asyncio.create_task(ben.post(path, {**forms[0], "choice": "red"})),
            asyncio.create_task(anna.post(path, {**forms[1], "choice": "blue"})),
        ]
        async with rt.db.connection() as watch:
            await wait_blocked(watch, by=conn.info.backend_pid, sessions=2)
    answers = await asyncio.gather(*sent)
    assert sorted(response.status_code for response in answers) == [303, 409]
    late = next(response for response in answers if response.status_code == 409)
    assert "Your answer was not accepted" in late.text
    winner = "ben" if answers[0].status_code == 303 else "anna"
    question = await rt.questions.get(work.number, 1)
    assert question.resolution is not None
    assert question.resolution["by"] == [winner]


async def test_an_answer_of_another_type_is_refused_with_what_is_allowed(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    week = QuestionSpec(key="k", text="Week?", freeform=True, answer_kind=AnswerKind.INTEGER)
    work = await make.asked(week)
    ben = await inbox.visit(people.ben)
    path = f"/questions/{work.name}/1"
    page = (await ben.get(path)).text
    assert "Your answer: a whole number, such as 31" in page
    assert '<input id="text" name="text" type="number" step="1" value="">' in page
    refused = await ben.post(path, {**await ben.hidden(path), "text": "next"})
    problem = "&#39;next&#39; is not a whole number; enter a whole number, such as 31"
    assert refused.text.count(problem) == 1, "beside its field alone"
    assert 'aria-describedby="text-problem" autofocus value="next">' in refused.text
    answered = await ben.post(path, {**await ben.hidden(path), "text": " 031 "})
    assert answered.status_code == 303
    question = await rt.questions.get(work.number, 1)
    assert question.resolution is not None
    assert question.resolution["text"] == "31"


async def test_rights_are_those_of_the_other_channels(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    gate = await make.asked(GATE)
    choice = await make.asked()
    anna = await inbox.visit(people.anna)
    for name, fields in ((gate.name, {"decision": "approve"}), (choice.name, {"choice": "red"})):
        page = await anna.get(f"/questions/{name}/1")
        assert '<div class="decision" role="note"><p>anna may not ' in page.text
        assert "; allowed: " in page.text
        assert 'name="key"' not in page.text
        carol = await inbox.visit(people.carol if name == gate.name else people.ben)
        form = await carol.hidden(f"/questions/{name}/1")
        form["csrf"] = (await anna.hidden("/"))["csrf"]
        refused = await anna.post(f"/questions/{name}/1", {**form, **fields})
        assert refused.status_code == 409
        assert "may not" in refused.text
    assert (await rt.questions.get(gate.number, 1)).resolution is None
    asked = await rt.questions.get(choice.number, 1)
    assert asked.resolution is None
    assert responders_text(rt.policy, asked, invoker="root", owner="you") == "you, ben"
    mine = GATE.model_copy(update={"approvers": ("erin", "dave")})
    own = await make.asked(mine, actor=people.erin)
    page = await (await inbox.visit(people.erin)).get(f"/questions/{own.name}/1")
    assert "<p>Erin requested this job and may not approve it; allowed: dave.</p>" in page.text


async def test_an_answer_is_bound_to_the_question_that_was_shown(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    first = await make.asked(GATE)
    second = await make.asked(GATE)
    carol = await inbox.visit(people.carol)
    shown = await carol.hidden(f"/questions/{first.name}/1")
    other = await carol.post(f"/questions/{second.name}/1", {**shown, "decision": "approve"})
    assert other.status_code == 409
    assert "not the question that your page showed" in other.text
    none = {name: value for name, value in shown.items() if name != "shown"}
    assert (
        await carol.post(f"/questions/{first.name}/1", {**none, "decision": "approve"})
    ).status_code == 409
    assert (await rt.questions.get(second.number, 1)).resolution is None


async def test_bad_input_gets_a_clear_line_and_keeps_the_text(
    inbox: Inbox, make: Factory, people: People
) -> None:
    free = QuestionSpec(key="k", text="Name?", choices=("red", "blue"), freeform=True)
    work = await make.asked(free)
    closed = await make.asked()
    ben = await inbox.visit(people.ben)
    path = f"/questions/{work.name}/1"
    both = await ben.answer(path, choice="red", text="green & <b>bold</b>")
    assert both.status_code == 422
    assert "not both" in both.text
    assert "green &amp; &lt;b&gt;bold&lt;/b&gt;</textarea>" in both.text
    assert wrong_fields(both.text) == ["text"]
    empty = await ben.answer(path)
    assert empty.status_code == 422
    assert empty.text.count("hoose an answer or write an answer") == 1
    assert wrong_fields(empty.text) == ["text"]
    unknown = await ben.answer(path, choice="<green>")
    assert unknown.status_code == 422
    assert "&lt;green&gt;" in unknown.text
    assert 'id="choice-problem"' in unknown.text
    long = await ben.answer(path, text="x" * 20_001)
    assert long.status_code == 422
    assert "20000" in long.text.replace(",", "")
    only = f"/questions/{closed.name}/1"
    assert (await ben.answer(only, text="green")).status_code == 422
    for key in ("", "short", "k" * 65):
        assert (await ben.answer(path, choice="red", key=key)).status_code == 400
    for bad in ("/questions/D-1/x", "/questions/x/1", "/questions/D-999999/1", "/questions/D-1/²"):
        assert (await ben.get(bad)).status_code == 404
    assert (await ben.answer(path, text="a\x00b")).status_code == 303


async def test_the_inbox_has_own_questions_first(
    inbox: Inbox, make: Factory, people: People
) -> None:
    gate = await make.asked(GATE)
    choice = await make.asked()
    carol = await inbox.visit(people.carol)
    text = (await carol.get("/")).text
    assert text.index("For you") < text.index(f"{gate.name}/1") < text.index("For others")
    assert text.index("For others") < text.index(f"{choice.name}/1")
    assert gate.name in text
    assert "(1) Questions" in text


async def test_a_choice_is_a_single_tap_in_the_bar_if_it_has_room(
    inbox: Inbox, make: Factory, people: People
) -> None:
    spec = QuestionSpec(key="k", text="Which?", choices=("red", "blue"), freeform=True)
    written = spec.model_copy(update={"answer_kind": AnswerKind.DATE})
    long = QuestionSpec(key="k", text="Which?", choices=("red", "b" * 25))
    ben = await inbox.visit(people.ben)
    bars = []
    for item in (QUESTION, spec, written, long):
        work = await make.asked(item)
        page = (await ben.get(f"/questions/{work.name}/1")).text
        assert page.count('name="choice" value="red"') == 1
        bars.append(re.sub("<[^>]*>", " ", page[page.index('<div class="decision') :]).split())
    assert bars == [
        ["red", "blue"],
        ["Choose", "an", "answer"],
        ["Choose", "an", "answer"],
        ["Choose", "an", "answer"],
    ]


async def test_the_text_of_an_answer_has_the_only_button_that_sends_it(
    inbox: Inbox, make: Factory, people: People
) -> None:
    ben = await inbox.visit(people.ben)
    spec = QuestionSpec(key="k", text="Which?", choices=("red", "blue"), freeform=True)
    for item, has_choices in (
        (spec, True),
        (QuestionSpec(key="k", text="?", freeform=True), False),
    ):
        work = await make.asked(item)
        page = (await ben.get(f"/questions/{work.name}/1")).text
        send = '<button class="primary" type="submit" id="send" data-keep>Send answer</button>'
        assert page.count("Send answer") == page.count(send) == 1
        assert page.index('id="text"') < page.index(send) < page.index('class="decision')
        assert ("A choice is sent at once." in page) is has_choices


async def test_an_open_question_names_three_people_and_folds_the_others(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    few = await make.asked(GATE.model_copy(update={"approvers": ("carol", "dave", "erin")}))
    many = GATE.model_copy(update={"approvers": ("carol", "dave", "erin", "olga"), "quorum": 2})
    work = await make.asked(many)
    carol = await inbox.visit(people.carol)
    assert "approval for carol, dave, erin · asked" in re.sub(
        "<[^>]*>", "", (await carol.get(f"/questions/{few.name}/1")).text
    )
    for path in (f"/questions/{work.name}/1", f"/jobs/{work.name}"):
        page = (await carol.get(path)).text
        assert re.search(r'popovertarget="(more-\w+)">2 of carol, dave and 2 more</button>', page)
        assert re.search(r'id="more-\w+" popover>2 of carol, dave, erin, olga</span>', page)
    local = replace(rt.policy, login="root")
    for item in (GATE.model_copy(update={"approvers": ("root", "dave")}), QUESTION):
        asked = await rt.questions.get((await make.asked(item)).number, 1)
        for name in ("root", "you"):
            text = responders_text(local, asked, invoker="anna", owner=name)
            assert text.split(", ")[0] == name, "the owner has one name in each medium"
            assert "root" not in text.removeprefix(name)


async def test_a_view_counts_as_seen(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.asked()
    ben = await inbox.visit(people.ben)
    await ben.get(f"/questions/{work.name}/1")
    async with rt.db.connection() as conn:
        rows = await (
            await conn.execute("SELECT person, channel::text FROM draftsman.question_views")
        ).fetchall()
    assert rows == [("ben", "web")]


async def test_the_owner_of_the_database_is_a_person_like_others_in_the_inbox(
    inbox: Inbox, make: Factory, rt: Runtime
) -> None:
    """Only a terminal and the dashboard prove that it is the user of the operating system."""
    root = Actor(Source.CLI, "root", "root", owner=True)
    cases = (
        ("carol", GATE, "carol requested this job and may not approve it"),
        ("root", GATE.model_copy(update={"approvers": ()}), "in a terminal or in the dashboard"),
    )
    for login, item, reason in cases:
        rt.policy.login = inbox.service.context.rt.policy.login = login
        in_terminal = replace(root, id=login, display_name=login)
        work = await make.asked(item, actor=in_terminal)
        path = f"/questions/{work.name}/1"
        page = await (await inbox.visit(in_terminal)).get(path)
        assert 'value="approve"' not in page.text
        in_inbox = inbox.sessions.actor("web", login)
        assert in_inbox is not None
        refused = await make.decide(work.number, True, in_inbox)
        assert not refused.accepted
        assert reason in str(refused.reason)
        assert (await make.decide(work.number, True, in_terminal)).resolved
