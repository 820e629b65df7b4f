"""Sign-in, sessions and sign-out of the web inbox."""

from __future__ import annotations

import asyncio
import hashlib
import re

import pytest

from draftsman.database.database import Connection
from draftsman.errors import ConfigError, NotFound
from draftsman.people.service.browser_sessions import BrowserSessions
from draftsman.runtime import Runtime, wire
from draftsman_bots.slack.settings import SlackSettings
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.bots.web.web_side import ORIGIN, Inbox, serving
from tests.support.clock import Clock

UNKNOWN = "x" * 43


async def test_a_link_signs_in_once_and_its_page_does_not_use_it(
    inbox: Inbox, people: People
) -> None:
    token, _ = await inbox.sessions.create_link(people.ben)
    browser = inbox.visitor()
    other = inbox.visitor()
    for _ in range(2):  # as previews in a chat do
        page = await browser.get(f"/sign-in/{token}")
        assert page.status_code == 200
        assert "Sign in as ben?" in page.text
    assert "set-cookie" not in page.headers
    first = await browser.post(f"/sign-in/{token}", {})
    assert (first.status_code, first.headers["location"]) == (303, "/")
    assert "ben" in (await browser.get("/")).text
    for used in (await other.get(f"/sign-in/{token}"), await other.post(f"/sign-in/{token}", {})):
        assert used.status_code == 410
        assert "used before, or has expired" in used.text
        assert "draftsman link --web on your computer.</p>" in used.text
        assert "Slack" not in used.text, "which is not set up"
    assert (await other.get("/")).headers["location"] == "/sign-in"


async def test_the_pages_of_sign_in_name_the_command_of_slack_where_it_makes_links(
    rt: Runtime,
) -> None:
    slack = SlackSettings.model_validate(
        {"command": "/jobs", "bot_token": {"env": "A"}, "app_token": {"env": "A"}}
    )
    with_slack = wire(rt.settings.model_copy(update={"slack": slack}), rt.db, rt.embedded)
    for url, has_command in (("https://inbox.example", True), (ORIGIN, False)):
        async with serving(with_slack, url=url) as inbox:
            browser = inbox.visitor()
            used = await browser.get("/sign-in/used")
            assert ("or /jobs web in Slack." in used.text) is has_command
            asked = await browser.get("/sign-in")
            assert ("<code>/jobs web</code> in Slack" in asked.text) is has_command


async def test_a_link_leads_to_the_page_that_was_wanted(inbox: Inbox, people: People) -> None:
    browser = inbox.visitor()
    asked = await browser.get("/lists/events?sort=age")
    assert asked.headers["location"] == "/sign-in?next=%2Flists%2Fevents%3Fsort%3Dage"
    assert (await browser.get(asked.headers["location"])).status_code == 200
    for wanted in ("/lists/events?sort=age", "/"):
        token, _ = await inbox.sessions.create_link(people.ben)
        signed_in = await browser.post(f"/sign-in/{token}", {})
        assert signed_in.headers["location"] == wanted


async def test_of_two_uses_of_a_link_at_once_one_counts(inbox: Inbox, people: People) -> None:
    token, _ = await inbox.sessions.create_link(people.ben)
    uses = await asyncio.gather(*(inbox.visitor().post(f"/sign-in/{token}", {}) for _ in range(5)))
    assert sorted(use.status_code for use in uses) == [303, 410, 410, 410, 410]


async def test_a_link_expires_by_the_clock_of_the_database(
    inbox: Inbox, people: People, clock: Clock
) -> None:
    token, _ = await inbox.sessions.create_link(people.ben)
    await clock.forward(901)
    browser = inbox.visitor()
    assert (await browser.get(f"/sign-in/{token}")).status_code == 410
    assert (await browser.post(f"/sign-in/{token}", {})).status_code == 410


async def test_a_new_link_replaces_the_previous_one(inbox: Inbox, people: People) -> None:
    old, _ = await inbox.sessions.create_link(people.ben)
    new, _ = await inbox.sessions.create_link(people.ben)
    browser = inbox.visitor()
    assert (await browser.post(f"/sign-in/{old}", {})).status_code == 410
    assert (await browser.post(f"/sign-in/{new}", {})).status_code == 303


async def test_the_database_has_digests_only(
    inbox: Inbox, people: People, conn: Connection
) -> None:
    link, _ = await inbox.sessions.create_link(people.ben)
    stored = (
        "SELECT digest FROM draftsman.sign_in_links"
        " UNION SELECT digest FROM draftsman.browser_sessions"
    )
    [row] = await (await conn.execute(stored)).fetchall()
    assert row == (hashlib.sha256(link.encode()).hexdigest(),)
    browser = inbox.visitor()
    await browser.post(f"/sign-in/{link}", {})
    [cookie] = browser.http.cookies.jar
    [row] = await (await conn.execute(stored)).fetchall()
    assert cookie.value is not None
    assert row == (hashlib.sha256(cookie.value.encode()).hexdigest(),)


async def test_a_session_expires_and_can_be_ended(
    inbox: Inbox, people: People, clock: Clock
) -> None:
    ben = await inbox.visit(people.ben)
    carol = await inbox.visit(people.carol)
    listed = {session.person: session for session in await inbox.sessions.sessions()}
    assert {*listed} == {"ben", "carol"}
    assert listed["ben"].user_agent == "test browser"
    await inbox.sessions.end(listed["ben"].id)
    assert (await ben.get("/")).status_code == 303
    with pytest.raises(NotFound, match="there is no session"):
        await inbox.sessions.end(listed["ben"].id)
    assert (await carol.get("/")).status_code == 200
    await clock.forward(604_801)
    assert (await carol.get("/")).status_code == 303
    assert await inbox.sessions.sessions() == []


async def test_sign_out_ends_the_session(inbox: Inbox, people: People) -> None:
    ben = await inbox.visit(people.ben)
    cookies = dict(ben.http.cookies)
    done = await ben.post("/sign-out", await ben.hidden("/"))
    assert done.status_code == 200
    assert "You are signed out" in done.text
    assert not ben.http.cookies
    ben.http.cookies.update(cookies)
    assert (await ben.get("/")).status_code == 303


async def test_the_session_of_a_removed_person_ends(inbox: Inbox, people: People) -> None:
    ben = await inbox.visit(people.ben)
    policy = inbox.service.context.rt.policy
    policy.people = {name: item for name, item in policy.people.items() if name != "ben"}
    assert (await ben.get("/")).status_code == 303


async def test_a_person_has_at_most_20_sessions(inbox: Inbox, people: People) -> None:
    for _ in range(22):
        token, _ = await inbox.sessions.create_link(people.ben)
        assert await inbox.sessions.use_link(token, "", 600)
    assert len(await inbox.sessions.sessions()) == 20


async def test_cookies_keep_the_rules_of_browsers(rt: Runtime, people: People) -> None:
    sessions = BrowserSessions(rt.db, rt.policy)
    async with serving(rt, url="https://inbox.example.org") as inbox:
        token, _ = await sessions.create_link(people.ben)
        response = await inbox.visitor().post(f"/sign-in/{token}", {})
        cookie = response.headers["set-cookie"]
        assert re.fullmatch(
            r"__Host-draftsman-inbox=[\w-]{43}; HttpOnly; Max-Age=604800; Path=/;"
            r" SameSite=lax; Secure",
            cookie,
        )
    async with serving(rt) as inbox:
        token, _ = await sessions.create_link(people.ben)
        response = await inbox.visitor().post(f"/sign-in/{token}", {})
        assert response.headers["set-cookie"].startswith("draftsman-inbox=")
        assert "Secure" not in response.headers["set-cookie"]


async def test_a_form_of_another_session_is_refused(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.asked()
    path = f"/questions/{work.name}/1"
    ben = await inbox.visit(people.ben)
    olga = await inbox.visit(people.ben)
    form = {**await ben.hidden(path), "choice": "red"}
    other = await olga.post(path, form)
    assert other.status_code == 403
    assert "You have a new session. Check the form" in other.text
    for csrf in ("", "é", form["csrf"][:-1]):
        assert (await ben.post(path, {**form, "csrf": csrf})).status_code == 403
    nobody = inbox.visitor()
    signed_out = await nobody.post(path, form)
    assert signed_out.status_code == 401
    assert "Your session has ended" in signed_out.text
    kept = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', signed_out.text))
    assert kept == {name: value for name, value in form.items() if name != "csrf"}
    again = await (await inbox.visit(people.ben)).post(path, kept | {"choice": "red"})
    assert again.status_code == 403
    assert 'value="red" aria-current="true">' in again.text
    nobody.http.cookies.set("draftsman-inbox", UNKNOWN)
    assert (await nobody.post(path, form)).status_code == 401
    assert (await rt.questions.get(work.number, 1)).resolution is None


async def test_a_proxy_signs_its_accounts_in(rt: Runtime, make: Factory) -> None:
    work = await make.asked()
    web = {
        "trusted_proxies": ["127.0.0.0/8"],
        "proxy_header": "X-Forwarded-User",
        "accounts": {"ben@example.org": "ben"},
    }
    path = f"/questions/{work.name}/1"
    async with serving(rt, **web) as inbox:
        browser = inbox.visitor()
        assert (await browser.get("/")).status_code == 303
        browser.http.headers["x-forwarded-user"] = "ben@example.org"
        assert (await browser.get(path)).status_code == 200
        assert len(await inbox.sessions.sessions()) == 1
        assert (await browser.answer(path, choice="red")).status_code == 303
        # another account in the same browser is another session
        browser.http.headers["x-forwarded-user"] = "carol"
        assert "carol" in (await browser.get("/")).text
        assert [item.person for item in await inbox.sessions.sessions()] == ["carol"]
        stranger = await browser.get("/", **{"x-forwarded-user": "<mallory>"})
        assert stranger.status_code == 403
        assert "&lt;mallory&gt;" in stranger.text
        twice = await browser.http.get("/", headers=[("x-forwarded-user", "ben")] * 2)
        assert twice.status_code == 400
        # the proxy has signed the person out
        del browser.http.headers["x-forwarded-user"]
        assert (await browser.get("/")).status_code == 303
    async with serving(rt, **web | {"trusted_proxies": ["192.0.2.1"]}) as inbox:
        browser = inbox.visitor()
        browser.http.headers["x-forwarded-user"] = "ben"
        assert (await browser.get("/")).status_code == 303


async def test_a_program_without_the_secret_of_the_proxy_signs_no_person_in(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXY_SECRET", "shared-with-the-proxy")
    web = {
        "trusted_proxies": ["127.0.0.1"],
        "proxy_header": "X-Forwarded-User",
        "proxy_secret": {"env": "PROXY_SECRET"},
    }
    async with serving(rt, **web) as inbox:
        browser = inbox.visitor()
        browser.http.headers["x-forwarded-user"] = "ben"
        for wrong in ({}, {"x-proxy-secret": "guess"}, {"x-proxy-secret": ""}):
            assert (await browser.get("/", **wrong)).status_code == 303
        both = [("x-proxy-secret", "shared-with-the-proxy"), ("x-proxy-secret", "guess")]
        assert (await browser.http.get("/", headers=both)).status_code == 303
        assert await inbox.sessions.sessions() == []
        signed_in = await browser.get("/", **{"x-proxy-secret": "shared-with-the-proxy"})
        assert (signed_in.status_code, "ben" in signed_in.text) == (200, True)
        assert (await browser.get("/")).status_code == 303, "its cookie alone is not enough"
    monkeypatch.delenv("PROXY_SECRET")
    with pytest.raises(ConfigError, match="PROXY_SECRET"):
        async with serving(rt, **web):
            pass
    with pytest.raises(ConfigError, match="proxy_secret needs proxy_header"):
        async with serving(rt, proxy_secret={"env": "PROXY_SECRET"}):
            pass


async def test_a_proxy_header_needs_trusted_proxies(rt: Runtime) -> None:
    with pytest.raises(ConfigError, match="proxy_header needs trusted_proxies"):
        async with serving(rt, proxy_header="X-User"):
            pass
    with pytest.raises(ConfigError, match="needs url: the https URL"):
        async with serving(rt, listen="0.0.0.0:0", url=None):
            pass
