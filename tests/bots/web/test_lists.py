"""Lists, which are made from their definitions."""

from __future__ import annotations

import re
from html import unescape

import pytest

from draftsman.entities.registry import listed_entities
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_bots.web import job_pages, list_pages
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.bots.web.web_side import Inbox

HOSTILE = "<script>alert(1)</script> \u202e"


async def test_each_list_has_a_page(inbox: Inbox, make: Factory, people: People) -> None:
    await make.asked()
    await make.queued(title=HOSTILE)
    await make.worker_row(host=HOSTILE)
    anna = await inbox.visit(people.anna)
    overview = (await anna.get("/lists")).text
    for name, entity in listed_entities().items():
        assert re.search(f'href="(/lists/{name}|/|/jobs)"', overview), name
        page = await anna.get(f"/lists/{name}")
        assert page.status_code == 200, name
        for column in entity.columns[:1]:
            empty = f"{entity.empty[0].upper()}{entity.empty[1:]}."
            assert f">{column.head.capitalize()}</a></th>" in page.text or empty in page.text
        assert "<script>alert" not in page.text
        assert "\u202e" not in page.text
    assert (await anna.get("/lists/none")).status_code == 404
    assert (await inbox.visitor().get("/lists/jobs")).status_code == 303


async def test_a_long_list_has_pages_and_a_total(
    inbox: Inbox, make: Factory, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_pages, "PAGE_SIZE", 2)
    monkeypatch.setattr(list_pages, "MAX_ROWS", 5)
    for number in range(6):
        await make.queued(title=f"Job {number}")
    anna = await inbox.visit(people.anna)

    async def read(query: str) -> tuple[str, int, list[str]]:
        page = (await anna.get(f"/lists/jobs?{query}")).text
        (text,) = re.findall(r'<p class="hint">([^<]*rows?)\.', page)
        links = re.findall(r'<a class="button" href="/lists/jobs\?([^"]*page=\d)">', page)
        return text, page.count('<a class="open"'), [unescape(link) for link in links]

    assert await read("sort=job") == ("1 to 2 of 6 rows", 2, ["sort=job&page=2"])
    assert await read("page=3") == ("5 to 5 of 5+ rows", 1, ["page=2"])
    assert await read("page=99") == await read("page=3")
    assert await read("page=x") == ("1 to 2 of 5+ rows", 2, ["page=2"])
    assert await read("where=title:0") == ("1 row", 1, []), "also beyond the rows of its pages"
    assert "the first 5 rows of this list" in (await anna.get("/lists/jobs")).text


async def test_a_list_is_sorted_and_filtered_by_its_columns(
    inbox: Inbox, make: Factory, people: People
) -> None:
    first = await make.queued(title="Mine & yours")
    second = await make.queued(title="Another")
    anna = await inbox.visit(people.anna)

    async def names(query: str) -> list[str]:
        page = await anna.get(f"/lists/jobs?{query}")
        assert page.status_code == 200
        return re.findall(r'<a class="open" href="/jobs/(D-\d+)">', page.text)

    assert await names("") == [f"D-{second}", f"D-{first}"]
    assert await names("sort=job") == [f"D-{first}", f"D-{second}"]
    assert await names("sort=-job") == [f"D-{second}", f"D-{first}"]
    assert await names("where=title:mine") == [f"D-{first}"]
    assert await names("where=title:none") == []
    assert await names("where=YOURS+title:mine") == [f"D-{first}"]
    assert await names("where=noop") == [f"D-{second}", f"D-{first}"], "the type is searched"
    assert await names("where=noop+none") == []
    page = (await anna.get("/lists/jobs?sort=job&where=title%3Amine+%26")).text
    assert 'aria-sort="ascending"><a href="?where=title%3Amine+%26&amp;sort=-job">' in page
    assert "Mine &amp; yours" in page
    for bad in ("where=bogus>1", "sort=bogus", "sort=%3Cscript%3E"):
        page = (await anna.get(f"/lists/jobs?{bad}")).text
        assert 'role="alert"' in page
        assert "<script>" not in page


async def test_lists_say_what_their_filter_knows_and_can_be_sorted_without_heads(
    inbox: Inbox, make: Factory, people: People
) -> None:
    await make.worker_row()
    anna = await inbox.visit(people.anna)
    page = (await anna.get("/lists/workers?sort=-pid")).text
    assert 'placeholder="a word, health:' in page
    assert "conditions on worker, health, " in page
    assert '<option value="-pid" selected>' in page
    await make.queued()
    events = (await anna.get("/lists/events")).text
    assert re.search(r">\d+ \w{3} \d{4}, \d\d:\d\d \w+</time>", events), "with date and zone"


async def test_jobs_are_searched_by_title_and_type(
    inbox: Inbox, make: Factory, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "PAGE_SIZE", 1)
    first = await make.queued(title="Import orders")
    second = await make.queued(title="Import prices")
    await make.queued(title="Another")
    anna = await inbox.visit(people.anna)

    async def names(query: str) -> list[str]:
        page = await anna.get(f"/jobs?{query}")
        return re.findall(r'<a class="open" href="/jobs/(D-\d+)">', page.text)

    assert await names("where=import") == [f"D-{second}"]
    assert await names(f"where=import&before={second}") == [f"D-{first}"]
    assert await names("where=noop&status=failures") == []
    assert f"where=import&amp;before={second}" in ((await anna.get("/jobs?where=import")).text)
    assert "No column" in (await anna.get("/jobs?where=bogus:1")).text


async def test_the_inbox_is_filtered(inbox: Inbox, make: Factory, people: People) -> None:
    first = await make.asked(title="Import orders")
    second = await make.asked(
        QuestionSpec(key="other", text="Which other one?", freeform=True), title="Import prices"
    )
    anna = await inbox.visit(people.anna)

    async def names(query: str) -> list[str]:
        page = await anna.get(f"/?{query}")
        return re.findall(r'<a class="cover" href="/questions/(D-\d+)/1">', page.text)

    assert await names("where=import") == [first.name, second.name]
    assert await names("where=other+title:prices") == [second.name]
    nothing = (await anna.get("/?where=none")).text
    assert "Nothing for you matches the filter" in nothing
    assert "Clear" in nothing
    assert await names("where=bogus>1") == [first.name, second.name]


async def test_each_name_in_a_list_leads_to_its_page(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    asked = await make.asked(notify=["log"])
    result = await make.completed(notify=["log"], title=f"Again: {asked.name}/1 of {asked.name}.1")
    await make.queued(group={"name": "nightly", "kind": "parallel"}, queue="slow")
    anna = await inbox.visit(people.anna)
    deliveries = (await anna.get("/lists/deliveries")).text
    question = f"/questions/{asked.name}/1"
    assert f'class="open" href="{question}">{asked.name}/1</a>' in deliveries
    assert f'class="open" href="/jobs/D-{result}">D-{result}</a>' in deliveries
    assert re.search(r'data-head="Id"><span class="key">\d+</span></td>', deliveries)
    for name in listed_entities():
        page = (await anna.get(f"/lists/{name}")).text
        body = page[page.find("<tbody>") : page.rfind("</tbody>")]
        linked = re.sub(
            r'<a [^>]*href="/(jobs|questions)/(D-[\d/]+)">(<span class="key">)?\2<', "", body
        )
        texts = re.sub("<[^>]*>", " ", linked)
        assert re.findall(r"(?<![\w.])D-\d+(?:/\d+)?(?![\w.])", texts) == [], name
    jobs = (await anna.get("/lists/jobs")).text
    assert f'Again: <a href="{question}">{asked.name}/1</a> of {asked.name}.1' in jobs


async def test_a_group_a_queue_and_a_type_lead_to_their_jobs(
    inbox: Inbox, make: Factory, people: People
) -> None:
    number = await make.queued(group={"name": "night:day", "kind": "parallel"}, queue="slow")
    await make.queued()
    anna = await inbox.visit(people.anna)
    for name, query in (("groups", "group=night%3Aday"), ("queues", "queue=slow")):
        page = (await anna.get(f"/lists/{name}")).text
        assert f'class="open" href="/jobs?{query}"' in page
        jobs = (await anna.get(f"/jobs?{query}")).text
        assert re.findall(r'<a class="open" href="/jobs/(D-\d+)">', jobs) == [f"D-{number}"]
        assert f"<summary>More filters: {name[:-1]} " in jobs, "what the folded form filters by"
    typed = (await anna.get("/jobs?type=noop&status=active")).text
    assert 'name="type" type="text" maxlength="200" value="noop"' in typed
    unknown = await anna.get("/jobs?group=night:dai&queue=slow")
    assert unknown.status_code == 200
    assert "No group &#39;night:dai&#39;; did you mean night:day?" in unknown.text
    assert f'href="/jobs/D-{number}"' not in unknown.text


async def test_a_filter_says_what_its_column_needs(
    inbox: Inbox, make: Factory, people: People
) -> None:
    await make.asked()
    anna = await inbox.visit(people.anna)
    for path, problem in (
        (
            "/jobs?where=runs>x",
            "runs&gt; needs a number, such as 3, not &#39;x&#39;. The list below is not filtered",
        ),
        ("/?where=kind:", "Kind: needs a value, as in kind:VALUE. The list below is not"),
        ("/lists/deliveries?where=age>x", "age&gt; needs a duration or a time, such as 1h"),
    ):
        assert f'role="alert"><p>{problem}' in (await anna.get(path)).text
