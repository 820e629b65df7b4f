"""Sign-in by an OpenID Connect provider, against a strict provider."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from joserfc.jwk import OctKey, RSAKey

from draftsman.people.browser_session import SignInMethod
from draftsman.runtime import Runtime
from draftsman_bots.web.context import RequestLimit
from draftsman_bots.web.settings import WebSettings
from tests.bots.web.oidc_provider import CLIENT, SECRET, FakeProvider, providing
from tests.bots.web.web_side import ORIGIN, Inbox, Visitor, serving
from tests.support.cases import cases


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    """Provide a running provider."""
    async with providing() as provider:
        yield provider


@pytest.fixture
async def inbox(
    rt: Runtime, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Inbox]:
    """Provide a running server that uses the provider."""
    monkeypatch.setenv("OIDC_SECRET", SECRET)
    oidc = {
        "issuer": provider.issuer,
        "client_id": CLIENT,
        "client_secret": {"env": "OIDC_SECRET"},
    }
    async with serving(rt, oidc=oidc, accounts={"ben@example.org": "ben"}) as inbox:
        inbox.service.context.limits._sign_ins = RequestLimit(1000, 60)
        yield inbox


async def _begin(browser: Visitor, path: str = "/jobs") -> dict[str, str]:
    """Go to the provider; return the query that the browser brings."""
    response = await browser.http.get("/oidc/begin", params={"next": path})
    assert response.status_code == 303, response.text
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    return dict(parse_qsl(urlsplit(response.headers["location"]).query))


async def _finish(browser: Visitor, **query: str) -> httpx.Response:
    return await browser.http.get("/oidc/callback", params=query)


async def _sign_in(browser: Visitor, provider: FakeProvider) -> httpx.Response:
    query = await _begin(browser)
    return await _finish(browser, code=provider.authorize(query), state=query["state"])


async def test_a_person_signs_in(inbox: Inbox, provider: FakeProvider) -> None:
    browser = inbox.visitor()
    page = await browser.get("/sign-in?next=/jobs")
    assert f"Sign in with {urlsplit(provider.issuer).netloc}" in page.text
    assert 'href="/oidc/begin?next=%2Fjobs"' in page.text
    query = await _begin(browser)
    assert query["redirect_uri"] == f"{ORIGIN}/oidc/callback"
    code = provider.authorize(query)
    response = await _finish(browser, code=code, state=query["state"])
    assert (response.status_code, response.headers["location"]) == (303, "/jobs")
    assert "ben" in (await browser.get("/")).text
    [session] = await inbox.sessions.sessions()
    assert (session.person, session.method) == ("ben", SignInMethod.OIDC)
    # the attempt and the code work once
    assert (await _finish(browser, code=code, state=query["state"])).status_code == 400
    assert provider.refused == []


async def test_an_attempt_belongs_to_its_browser(inbox: Inbox, provider: FakeProvider) -> None:
    browser = inbox.visitor()
    other = inbox.visitor()
    query = await _begin(browser)
    code = provider.authorize(query)
    assert (await _finish(other, code=code, state=query["state"])).status_code == 400
    own = await _begin(other)
    for state in (query["state"], ""):
        assert (await _finish(other, code=code, state=state)).status_code == 401
    # a code of another attempt fails by its verifier
    assert (await _finish(other, code=code, state=own["state"])).status_code == 401
    assert provider.refused == ["verifier"]
    assert (await _finish(browser, code="guess", state=query["state"])).status_code == 401
    assert (await _finish(browser, error="access_denied", state=query["state"])).status_code == 401
    assert (await _finish(browser, state=query["state"])).status_code == 401
    assert await inbox.sessions.sessions() == []


TOKENS: list[dict[str, Any]] = [
    {"iss": "https://evil.example"},
    {"aud": "another"},
    {"aud": [CLIENT, "another"]},
    {"aud": [CLIENT, "another"], "azp": "another"},
    {"azp": "another"},
    {"exp": int(time.time()) - 120},
    {"exp": None},
    {"iat": None},
    {"sub": None},
    {"nonce": "of another attempt"},
    {"nonce": None},
    {"email": None},
    {"email": 1},
    {"email_verified": False},
    {"email_verified": "true"},
    {"email_verified": None},
]


async def test_an_invalid_token_signs_nobody_in(inbox: Inbox, provider: FakeProvider) -> None:
    browser = inbox.visitor()
    for changes in TOKENS:
        provider.changes = changes
        response = await _sign_in(browser, provider)
        assert response.status_code == 401, changes
        assert "did not sign you in" in response.text
    provider.changes = {"email": "<mallory>@example.org"}
    unknown = await _sign_in(browser, provider)
    assert unknown.status_code == 403
    assert "&lt;mallory&gt;@example.org" in unknown.text
    provider.changes = {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert (await _sign_in(browser, provider)).status_code == 303


async def test_keys_are_read_again_after_a_change(inbox: Inbox, provider: FakeProvider) -> None:
    browser = inbox.visitor()
    assert (await _sign_in(browser, provider)).status_code == 303
    forger = RSAKey.generate_key(2048, {"kid": "first"})
    provider.signer = forger
    assert (await _sign_in(browser, provider)).status_code == 401
    provider.signer = OctKey.import_key(b"x" * 32, {"kid": "first"})  # type: ignore[assignment]
    provider.algorithm = "HS256"
    assert (await _sign_in(browser, provider)).status_code == 401
    provider.signer = None
    provider.algorithm = "RS256"
    provider.key = RSAKey.generate_key(2048, {"kid": "second"})
    assert (await _sign_in(browser, provider)).status_code == 401, "asked for keys a moment ago"
    used = inbox.service.context.provider
    assert used is not None
    used._keys_at = -1000.0
    assert (await _sign_in(browser, provider)).status_code == 303


async def test_the_issuer_of_a_response_is_checked(inbox: Inbox, provider: FakeProvider) -> None:
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    browser = inbox.visitor()
    query = await _begin(browser)
    for issuer in ({}, {"iss": "https://evil.example"}):
        code = provider.authorize(query)
        assert (
            await _finish(browser, code=code, state=query["state"], **issuer)
        ).status_code == 401
    code = provider.authorize(query)
    response = await _finish(browser, code=code, state=query["state"], iss=provider.issuer)
    assert response.status_code == 303


async def test_bad_metadata_is_refused(inbox: Inbox, provider: FakeProvider) -> None:
    browser = inbox.visitor()
    for metadata in (
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": None},
    ):
        provider.metadata = metadata
        assert (await browser.get("/oidc/begin")).status_code == 401


async def test_without_a_provider_there_is_no_page(rt: Runtime) -> None:
    async with serving(rt) as inbox:
        for path in ("/oidc/begin", "/oidc/callback?code=x&state=y"):
            assert (await inbox.visitor().get(path)).status_code == 404


@cases(
    ("oidc", "problem"),
    [
        ({"issuer": "http://login.example.org"}, "https://"),
        ({"scopes": ["email"]}, "openid"),
        ({"client_secret": "s3cret"}, "reference"),
        ({"client_id": ""}, "at least 1"),
    ],
)
def test_settings_of_a_provider_are_checked(oidc: dict[str, Any], problem: str) -> None:
    valid = {"issuer": "https://login.example.org", "client_id": "x"}
    WebSettings.model_validate({"oidc": valid})
    with pytest.raises(ValueError, match=problem):
        WebSettings.model_validate({"oidc": valid | oidc})
