"""Headers, limits, hostile texts and foreign sites."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.errors import SchemaOutdated
from draftsman.jobs.details.service.read_model import ReadModel
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_bots.process.http import MAX_BODY_BYTES
from draftsman_bots.web.access import local_path
from draftsman_bots.web.context import MAX_KEYS, RequestLimit
from draftsman_bots.web.settings import WebSettings
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.bots.web.web_side import Inbox, serving
from tests.support.cases import cases

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}\u202e\x1b[31m"
PATCH = f"""diff --git a/x.html b/x.html
--- a/x.html
+++ b/x.html
@@ -1 +1 @@
-old
+{HOSTILE}
"""


async def test_every_response_has_the_headers(inbox: Inbox, people: People) -> None:
    ben = await inbox.visit(people.ben)
    paths = ("/", "/jobs", "/sign-in", "/none", "/questions/D-1/1", "/static/style.css", "/healthz")
    for path in paths:
        headers = (await ben.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        stored = path.startswith("/static/")
        assert headers["cache-control"] == ("public, max-age=3600" if stored else "no-store")
        assert "server" not in headers


async def test_hostile_texts_are_escaped(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    spec = QuestionSpec(key="k", text=HOSTILE, context=HOSTILE, choices=(HOSTILE[:40], "b"))
    work = await make.asked(spec, title=HOSTILE[:100], tags=("t",))
    gate = await make.asked(
        GATE.model_copy(update={"text": HOSTILE, "action": {"do": HOSTILE, HOSTILE: HOSTILE}})
    )
    ben = await inbox.visit(people.ben)
    carol = await inbox.visit(people.carol)
    for path in ("/", f"/questions/{work.name}/1", "/jobs", f"/jobs/{work.name}"):
        text = (await ben.get(path)).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        assert "{{ 7*7 }}" in text
        assert "\u202e" not in text
        assert "\x1b" not in text
        assert "style=" not in text
        assert "onclick" not in text
    page = (await carol.get(f"/questions/{gate.name}/1")).text
    assert "If approved" in page
    assert "<script>alert" not in page
    denied = await carol.answer(f"/questions/{gate.name}/1", decision="deny", reason=HOSTILE)
    assert denied.status_code == 303
    for path in (f"/questions/{gate.name}/1", f"/jobs/{gate.name}"):
        assert "<script>alert" not in (await carol.get(path)).text
    filtered = await ben.http.get("/jobs", params={"status": HOSTILE, "repo": HOSTILE})
    assert filtered.status_code == 200
    assert "There is no status" in filtered.text
    assert "jobs of every status" in filtered.text
    assert "<script>alert" not in filtered.text


async def test_hostile_changes_are_escaped(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.running()
    await rt.changes.store(work.lease, PATCH.encode() + b"\xff")
    await rt.asking.ask(work.lease, GATE.model_copy(update={"context": PATCH}))
    carol = await inbox.visit(people.carol)
    path = f"/questions/{work.name}/1"
    for page in (path, f"/jobs/{work.name}/changes"):
        text = (await carol.get(page)).text
        assert "+&lt;script&gt;alert(1)&lt;/script&gt;" in text
        assert "<script>alert" not in text
    plain = await carol.get(f"{path}/diff.txt")
    assert plain.headers["content-type"] == "text/plain; charset=utf-8"
    assert plain.content == PATCH.encode() + b"\xff"
    assert (await inbox.visitor().get(f"{path}/diff.txt")).status_code == 303


async def test_forms_of_other_sites_are_refused(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.asked()
    path = f"/questions/{work.name}/1"
    ben = await inbox.visit(people.ben)
    form = {**await ben.hidden(path), "choice": "red"}
    for origin in ("https://evil.example", "null", "http://localhost:1", None):
        assert (await ben.post(path, form, origin=origin)).status_code == 403
    token, _ = await inbox.sessions.create_link(people.ben)
    assert (await ben.post(f"/sign-in/{token}", {}, origin="null")).status_code == 403
    for host in ("evil.example", "localhost:1", "127.0.0.1"):
        assert (await ben.get("/", host=host)).status_code == 421
    wrong = await ben.post(path, form, **{"content-type": "text/plain"})
    assert wrong.status_code == 415
    assert (await rt.questions.get(work.number, 1)).resolution is None


async def test_sizes_and_methods_are_limited(inbox: Inbox, people: People, make: Factory) -> None:
    work = await make.asked()
    path = f"/questions/{work.name}/1"
    ben = await inbox.visit(people.ben)
    large = await ben.post(path, {"text": "x" * (MAX_BODY_BYTES + 1)})
    assert large.status_code == 413
    many = await ben.post(path, {f"f{number}": "" for number in range(30)})
    assert many.status_code == 400
    twice = await ben.http.post(
        path,
        content="csrf=a&csrf=b",
        headers={"origin": ben.origin, "content-type": "application/x-www-form-urlencoded"},
    )
    assert twice.status_code == 400
    assert (await ben.http.put(path)).status_code == 405
    assert (await ben.get("/static/../service.py")).status_code == 404
    assert (await ben.get("/static/%2e%2e/service.py")).status_code == 404


async def test_sign_ins_and_answers_are_limited(
    inbox: Inbox, people: People, make: Factory
) -> None:
    ben = await inbox.visit(people.ben)
    work = await make.asked()
    path = f"/questions/{work.name}/1"
    form = {**await ben.hidden(path), "choice": "green"}
    limits = inbox.service.context.limits
    limits._forms = RequestLimit(30, 60, clock=lambda: 0.0)
    limits._sign_ins = RequestLimit(10, 60, clock=lambda: 0.0)
    statuses = [(await ben.post(path, form)).status_code for _ in range(31)]
    assert statuses == [422] * 30 + [429]
    guesses = [(await ben.get(f"/sign-in/{number}")) for number in range(12)]
    assert [guess.status_code for guess in guesses[-3:]] == [410, 429, 429]
    assert int(guesses[-1].headers["retry-after"]) > 0


async def test_addresses_behind_a_trusted_proxy_have_own_limits(rt: Runtime) -> None:
    async with serving(rt, trusted_proxies=["127.0.0.1"]) as inbox:
        browser = inbox.visitor()

        async def guess(forwarded: str) -> int:
            header = {"x-forwarded-for": forwarded}
            return (await browser.get("/sign-in/x", **header)).status_code

        first = [await guess(f"203.0.113.{number}, 198.51.100.1") for number in range(11)]
        assert first == [410] * 10 + [429]  # the client's own header changes nothing
        assert await guess("198.51.100.2") == 410


def test_a_rate_limit_refills_and_forgets() -> None:
    now = [0.0]
    limit = RequestLimit(2, 10, clock=lambda: now[0])
    assert [limit.take("a") for _ in range(3)] == [0, 0, 5]
    now[0] = 5
    assert [limit.take("a"), limit.take("a")] == [0, 5]
    for number in range(MAX_KEYS):
        limit.take(str(number))
    assert limit.take("a") == 0


@cases(
    ("text", "path"),
    [
        ("/jobs/D-1", "/jobs/D-1"),
        ("/jobs?status=failed", "/jobs?status=failed"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("/\tevil", "/"),
        ("javascript:alert(1)", "/"),
        ("///evil.example", "/"),
        (" ////evil.example", "/"),
        ("//[evil", "/"),
        ("/jobs//a", "/jobs//a"),
        ("", "/"),
    ],
)
def test_no_redirect_leaves_the_site(text: str, path: str) -> None:
    assert local_path(text) == path


@pytest.mark.parametrize("path", ["/jobs/", "/static", "/sign-in/?next=/"])
async def test_no_page_of_another_host_is_a_redirect(inbox: Inbox, path: str) -> None:
    response = await inbox.visitor().get(path, host="evil.example")
    assert response.status_code == 404
    assert "location" not in response.headers


async def test_the_next_page_after_the_proxy_is_of_this_site(rt: Runtime) -> None:
    web: dict[str, Any] = {"trusted_proxies": ["127.0.0.1"], "proxy_header": "X-User"}
    async with serving(rt, **web) as inbox:
        browser = inbox.visitor()
        for path, target in (("//evil.example", "/"), ("/jobs", "/jobs")):
            response = await browser.http.get(
                "/sign-in", params={"next": path}, headers={"x-user": "ben"}
            )
            assert (response.status_code, response.headers["location"]) == (303, target)


@cases(
    ("web", "problem"),
    [
        ({"url": "http://inbox.example.org"}, "https://"),
        ({"url": "https://inbox.example.org/path"}, "no path"),
        ({"url": "ftp://x"}, "URL"),
        ({"trusted_proxies": ["proxy"]}, "network"),
        ({"trusted_proxies": ["10.0.0.1/8"]}, "network"),
        ({"proxy_header": "X User", "trusted_proxies": ["::1"]}, "header"),
        ({"session": 1}, "300"),
    ],
)
def test_settings_are_checked(web: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        WebSettings.model_validate(web)


async def test_a_database_of_another_version_is_not_an_unreachable_one(
    inbox: Inbox, make: Factory, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await make.queued()
    ben = await inbox.visit(people.ben)

    def outdated(*_: object, **__: object) -> None:
        raise SchemaOutdated("no such function")

    monkeypatch.setattr(ReadModel, "details", outdated)
    page = await ben.get(f"/jobs/D-{job}")
    assert (page.status_code, page.headers["retry-after"]) == (503, "60")
    assert "The database is that of another version." in page.text
