"""The session of a request: cookie, reverse proxy, rights and the token of forms."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.people.actor import Actor
from draftsman.people.browser_session import BrowserSession, SignInMethod
from draftsman.people.service.browser_sessions import BrowserSessions
from draftsman.questions.question import QuestionCounts
from draftsman_bots.web.plugin import WEB
from draftsman_bots.web.problems import PageProblem
from draftsman_bots.web.settings import WebSettings

# Checks of a request's address: its host, its origin, and the address of its client.


OTHER_SESSION: Final = "You have a new session. Check the form, then send it again."
"""The problem of a form that was filled in before."""
UNKNOWN_CLIENT: Final = "unknown"


def check_host(request: HTTPConnection, settings: WebSettings) -> None:
    """Raise PageProblem for another host than that of `url`, as a rebound DNS name has it."""
    hosts = request.headers.getlist("host")
    expected = urlsplit(settings.origin).netloc
    if [host.casefold() for host in hosts] != [expected]:
        raise PageProblem(421, "This address is not that of the inbox.", f"Open {settings.origin}")


def check_origin(request: HTTPConnection, settings: WebSettings) -> None:
    """Raise PageProblem for a form of another site; browsers send the origin with each form."""
    origins = request.headers.getlist("origin")
    if [origin.casefold() for origin in origins] != [settings.origin]:
        raise PageProblem(403, "This form came from another site.", "Open the page again.")


def is_trusted_proxy(request: HTTPConnection, settings: WebSettings) -> bool:
    """Return whether the peer of the connection is a trusted proxy."""
    return _is_in(_peer(request), settings.trusted_proxies)


def client_address(request: HTTPConnection, settings: WebSettings) -> str:
    """Return the address of the client, of IPv6 its /64 network, as clients have whole networks.

    Behind trusted proxies it is the last address of X-Forwarded-For that is not theirs.
    """
    return _network(_forwarded_address(request, settings))


def _forwarded_address(request: HTTPConnection, settings: WebSettings) -> str:
    peer = _peer(request)
    if not _is_in(peer, settings.trusted_proxies):
        return peer
    forwarded = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
    for part in reversed(forwarded):
        address = part.strip()
        if not address:
            continue
        if not _is_in(address, settings.trusted_proxies):
            return _canonical(address)
    return peer


def local_path(text: str) -> str:
    """Return a path of this site to continue at; `/` for any other text."""
    if not text.startswith("/") or text.startswith("//") or "\\" in text:
        return "/"
    if not (text.isascii() and text.isprintable()):
        return "/"
    return text.partition("#")[0]


def _peer(request: HTTPConnection) -> str:
    return _canonical(request.client.host) if request.client else UNKNOWN_CLIENT


def _canonical(address: str) -> str:
    """Return an address in its usual form."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return UNKNOWN_CLIENT
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)


def _network(address: str) -> str:
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address, 64), strict=False))


def _is_in(address: str, networks: tuple[str, ...]) -> bool:
    try:
        parsed = ipaddress.ip_address(_canonical(address))
    except ValueError:
        return False
    return any(parsed in ipaddress.ip_network(network) for network in networks)


COOKIE: Final = "draftsman-inbox"
PROXY_SECRET: Final = "x-proxy-secret"  # noqa: S105 - the name of a header
_TOKEN_LENGTH: Final = range(20, 100)
"""Lengths of tokens that are looked up."""


@dataclass(frozen=True, slots=True)
class Tabs:
    """The numbers in the menu of a person: their questions, and the jobs that they may see."""

    questions: QuestionCounts
    jobs: int


NO_TABS: Final = Tabs(QuestionCounts(open=0, for_you=0), jobs=0)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a signed-in person; `is_new` has a session that its response stores.

    `held` is the newest answer of the person that can still be undone.
    """

    session: BrowserSession
    actor: Actor
    token: str
    is_new: bool = False
    tabs: Tabs = NO_TABS
    held: PendingDecision | None = None

    @property
    def csrf(self) -> str:
        """The token of the forms of this session."""
        return hmac.new(self.token.encode(), b"csrf", hashlib.sha256).hexdigest()


class Access:
    """Sessions of requests, and their cookies."""

    def __init__(
        self, settings: WebSettings, sessions: BrowserSessions, proxy_secret: str | None = None
    ) -> None:
        """Take the secret without which the header of a proxy does not count; None: without."""
        self._settings = settings
        self._proxy_secret = proxy_secret
        self._sessions = sessions
        self._cookie = f"__Host-{COOKIE}" if settings.is_secure else COOKIE

    async def visit(self, request: Request) -> Visit | None:
        """Return the signed-in visit; None without a valid session.

        A person that the trusted proxy names is signed in. Raises PageProblem for an account of the
        proxy without a person.
        """
        token = request.cookies.get(self._cookie, "")
        visit = await self._of_token(token)
        account = self._proxy_account(request)
        if account is None:
            if visit is not None and visit.session.method is SignInMethod.PROXY:
                return None  # the proxy ended the session of its person
            return visit
        person = self._settings.accounts.get(account, account)
        if visit is not None and visit.session.person == person:
            return visit
        return await self._visit_of_proxy(request, account)

    async def open_for_provider(self, request: Request, account: str) -> str:
        """Sign in the person of a provider's account; return the token of the session.

        Raises PageProblem for an account without a person.
        """
        return await self._open(request, SignInMethod.OIDC, account)

    async def required(self, request: Request) -> Visit:
        """Return the visit; raises SignInRequired without a session."""
        visit = await self.visit(request)
        if visit is None:
            raise SignInRequired
        request.state.visit = visit
        return visit

    def check_form(self, visit: Visit, fields: dict[str, str]) -> None:
        """Raise PageProblem for a form that is not of this session."""
        if not self.is_form_of(visit, fields):
            raise PageProblem(
                403, "This form is of another session.", "Open the page again, then send it."
            )

    def is_form_of(self, visit: Visit, fields: dict[str, str]) -> bool:
        """Return whether a form is of this session."""
        return hmac.compare_digest(fields.get("csrf", "").encode(), visit.csrf.encode())

    async def use_link(self, request: Request, link: str) -> str | None:
        """Sign in with a link; return the token of the session, None if the link is not valid."""
        token = await self._sessions.use_link(link, _user_agent(request), self._settings.session)
        if token is not None:
            await self.end(request)
        return token

    async def end(self, request: Request) -> None:
        """End the session of a request, if it has any."""
        if len(token := request.cookies.get(self._cookie, "")) in _TOKEN_LENGTH:
            await self._sessions.close(token)

    def set_cookie(self, response: Response, token: str) -> None:
        """Store the token of a session in the browser."""
        response.set_cookie(
            self._cookie,
            token,
            max_age=int(self._settings.session),
            path="/",
            secure=self._settings.is_secure,
            httponly=True,
            samesite="lax",
        )

    def delete_cookie(self, response: Response) -> None:
        """Delete the token in the browser."""
        response.delete_cookie(
            self._cookie, path="/", secure=self._settings.is_secure, httponly=True, samesite="lax"
        )

    async def _of_token(self, token: str) -> Visit | None:
        if len(token) not in _TOKEN_LENGTH:
            return None
        session = await self._sessions.find(token, WEB.name)
        return None if session is None else Visit(*session, token)

    def _proxy_account(self, request: Request) -> str | None:
        """Return the account that a trusted proxy names; the header of any other is ignored."""
        header = self._settings.proxy_header
        if header is None or not is_trusted_proxy(request, self._settings):
            return None
        if not self._has_proxy_secret(request):
            return None
        accounts = request.headers.getlist(header)
        if len(accounts) > 1:
            raise PageProblem(400, f"The proxy sent the header {header} more than once.")
        return accounts[0].strip() or None if accounts else None

    def _has_proxy_secret(self, request: Request) -> bool:
        if self._proxy_secret is None:
            return True
        secrets = request.headers.getlist(PROXY_SECRET)
        return len(secrets) == 1 and hmac.compare_digest(
            secrets[0].encode(errors="replace"), self._proxy_secret.encode()
        )

    async def _visit_of_proxy(self, request: Request, account: str) -> Visit:
        visit = await self._of_token(await self._open(request, SignInMethod.PROXY, account))
        if visit is None:
            raise SignInRequired
        return replace(visit, is_new=True)

    async def _open(self, request: Request, method: SignInMethod, account: str) -> str:
        person = self._settings.accounts.get(account, account)
        token = await self._sessions.open(
            method, person, _user_agent(request), self._settings.session
        )
        if token is None:
            raise PageProblem(
                403,
                f"The account {account[:80]} is not a person of draftsman.",
                "An operator can add it to [web.accounts].",
            )
        await self.end(request)
        return token


class SignInRequired(Exception):
    """A page that only signed-in people may see."""


def _user_agent(request: Request) -> str:
    return request.headers.get("user-agent", "")
