"""The process that serves the web inbox."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

from draftsman.database import migrate
from draftsman.errors import (
    ConfigError,
    DatabaseUnreachable,
    DraftsmanError,
    NotFound,
    NotPermitted,
    SchemaOutdated,
    UsageError,
)
from draftsman.people.service.browser_sessions import BrowserSessions
from draftsman.processes.hardening import deny_inspection
from draftsman.processes.lifecycle import StopSignal
from draftsman.processes.shutdown import shutdown_signals
from draftsman.runtime import open_runtime
from draftsman_bots.process.credentials import read_optional
from draftsman_bots.process.http import HttpServer, bind
from draftsman_bots.web import job_pages, list_pages, question_pages, sign_in, start_pages
from draftsman_bots.web.access import (
    Access,
    SignInRequired,
    Visit,
    check_host,
    check_origin,
    client_address,
    local_path,
)
from draftsman_bots.web.context import WebContext
from draftsman_bots.web.oidc import OidcProvider
from draftsman_bots.web.pages import page, read_form
from draftsman_bots.web.problems import PageProblem, error_text
from draftsman_bots.web.running import recorded
from draftsman_bots.web.settings import WebSettings
from draftsman_bots.web.sign_in import CALLBACK

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings


# The ASGI application of the web inbox: routes, headers, limits and error pages.


STATIC: Final = Path(__file__).parent / "static"
HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self';"
        " connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
PRIVATE: Final = "no-store"
"""`Cache-Control` of pages, which no browser or proxy may keep."""
STATIC_AGE: Final = "public, max-age=3600"
MAX_KEPT: Final = 1000
"""Fields of a form that are kept while its person signs in again."""
_log = logging.getLogger(__name__)
Handler = Callable[[WebContext, Request], Awaitable[Response]]


def application(context: WebContext) -> Starlette:
    """Return the application."""

    def route(path: str, handler: Handler, method: str = "GET") -> Route:
        return Route(path, _endpoint(context, handler), methods=[method])

    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_: Request) -> Response:
        problems = await context.rt.readiness.problems()
        body = {"ready": not problems, "problems": problems}
        return JSONResponse(body, status_code=503 if problems else 200)

    async def failed(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == 405 and request.method == "GET":  # of a form, as after a reload
            return RedirectResponse(local_path(request.url.path.rpartition("/")[0] or "/"), 303)
        if status == 500:
            _log.error("%s %s failed: %r", request.method, request.url.path, error)
        title = {404: "There is no such page.", 405: "This page takes no such request."}
        return _problem_page(
            request, PageProblem(status, title.get(status, "Something went wrong."))
        )

    app = Starlette(
        routes=[
            route("/", question_pages.inbox),
            route("/questions/{job}/{ordinal}", question_pages.show),
            route("/questions/{job}/{ordinal}", question_pages.answer, "POST"),
            route("/questions/{job}/{ordinal}/undo", question_pages.undo, "POST"),
            route("/questions/{job}/{ordinal}/diff.txt", question_pages.diff_file),
            route("/start", start_pages.overview),
            route("/start/{kind}/{name:path}", start_pages.show),
            route("/start/{kind}/{name:path}", start_pages.submit, "POST"),
            route("/lists", list_pages.overview),
            route("/lists/{name}", list_pages.show),
            route("/jobs", job_pages.jobs),
            route("/jobs/{job}", job_pages.show),
            route("/jobs/{job}", job_pages.act, "POST"),
            route("/jobs/{job}/changes", job_pages.changes),
            route("/jobs/{job}/events", job_pages.events),
            route("/jobs/{job}/artifacts/{run:int}/{name:path}", job_pages.artifact),
            route("/jobs/{job}/pictures/{name:path}", job_pages.picture),
            route("/jobs/{job}/log", job_pages.stream),
            route("/sign-in", sign_in.ask),
            route("/oidc/begin", sign_in.begin),
            route(sign_in.CALLBACK, sign_in.finish),
            route("/sign-in/{link}", sign_in.confirm),
            route("/sign-in/{link}", sign_in.use_link, "POST"),
            route("/sign-out", sign_in.sign_out, "POST"),
            Route("/healthz", alive),
            Route("/readyz", ready),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers={HTTPException: failed, Exception: failed},
    )
    app.router.redirect_slashes = False  # its redirects go to any host that a request names
    app.add_middleware(SecurityHeaders)
    return app


class SecurityHeaders:
    """Adds the security headers to each response; pages are not stored by caches."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        cached = scope.get("path", "").startswith("/static/")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                is_ok = message["status"] in (200, 304)
                added = HEADERS | {"cache-control": STATIC_AGE if cached and is_ok else PRIVATE}
                message["headers"] += [
                    (name.encode(), value.encode())
                    for name, value in added.items()
                    if name.encode() not in names
                ]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _endpoint(context: WebContext, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return the handler of a route, with checks before it and error pages after it."""

    @functools.wraps(handler)
    async def endpoint(request: Request) -> Response:
        try:
            check_host(request, context.settings)
            context.limits.count_request(client_address(request, context.settings))
            if request.method == "POST":
                check_origin(request, context.settings)
            response = await handler(context, request)
            etag = response.headers.get("etag")
            if etag is not None and request.headers.get("if-none-match") == etag:
                response = Response(status_code=304, headers={"etag": etag})
        except SignInRequired:
            response = await _to_sign_in(request)
        except PageProblem as problem:
            response = _problem_page(request, problem)
        except DraftsmanError as error:
            response = _problem_page(request, _problem(error))
        visit: Visit | None = getattr(request.state, "visit", None)
        if visit is not None and visit.is_new:
            context.access.set_cookie(response, visit.token)
        return response

    return endpoint


async def _to_sign_in(request: Request) -> Response:
    """Send a person without a session to the sign-in page; keep a form to send it again."""
    if request.method != "GET":
        try:
            fields = await read_form(request, most=MAX_KEPT)
        except PageProblem as problem:
            return _problem_page(request, problem)
        fields.pop("csrf", "")
        return page("session_ended", None, status=401, path=request.url.path, fields=fields)
    query = f"?{request.url.query}" if request.url.query else ""
    path = local_path(f"{request.url.path}{query}")
    query = f"?{urlencode({'next': path})}" if path != "/" else ""
    return RedirectResponse(f"/sign-in{query}", 303)


def _problem(error: DraftsmanError) -> PageProblem:
    match error:
        case SchemaOutdated():
            advice = "The database is that of another version. An operator has to migrate it."
            return PageProblem(503, "Not available at the moment.", advice, retry_after=60)
        case DatabaseUnreachable():
            advice = "The database cannot be reached. Try again in a moment."
            return PageProblem(503, "Not available at the moment.", advice, retry_after=5)
        case NotFound():
            return PageProblem(404, error_text(error))
        case NotPermitted():
            return PageProblem(403, error_text(error))
        case UsageError():
            return PageProblem(400, error_text(error))
    return PageProblem(409, error_text(error))


def _problem_page(request: Request, problem: PageProblem) -> Response:
    visit: Visit | None = getattr(request.state, "visit", None)
    response = page("problem", visit, status=problem.status, problem=problem)
    if problem.retry_after is not None:
        response.headers["retry-after"] = str(problem.retry_after)
    return response


class WebService:
    """The HTTP server of the inbox."""

    def __init__(self, rt: Runtime) -> None:
        settings = WebSettings.of(rt.settings)
        if settings.proxy_header is not None and not settings.trusted_proxies:
            raise ConfigError("[web] proxy_header needs trusted_proxies: the address of the proxy")
        if settings.url is None and not settings.is_local:
            raise ConfigError(
                f"[web] listen {settings.listen} needs url: the https URL of the inbox in browsers"
            )
        if settings.proxy_secret is not None and settings.proxy_header is None:
            raise ConfigError("[web] proxy_secret needs proxy_header: the header with the account")
        proxy_secret = read_optional("web", "proxy_secret", settings.proxy_secret)
        listener = bind(settings.address, "web")
        self.port: int = listener.getsockname()[1]
        if settings.url is None:
            host = settings.listen.rpartition(":")[0]
            settings = settings.model_copy(update={"url": f"http://{host}:{self.port}"})
        self.url = settings.origin
        sessions = BrowserSessions(rt.db, rt.policy)
        access = Access(settings, sessions, proxy_secret)
        provider = _provider(settings)
        self.stop = StopSignal(lambda: self._server.stop.set())
        self.context = WebContext(rt, settings, sessions, access, provider, stop=self.stop)
        self._server = HttpServer(application(self.context), listener)

    async def run(self) -> None:
        """Serve until stopped."""
        _log.info("serving the web inbox on %s, port %s", self.url, self.port)
        try:
            await self._server.run()
        finally:
            await self.context.tasks.close(0)


def _provider(settings: WebSettings) -> OidcProvider | None:
    """Return the configured provider; raises ConfigError for a missing secret."""
    if (oidc := settings.oidc) is None:
        return None
    secret = read_optional("web.oidc", "client_secret", oidc.client_secret)
    return OidcProvider(oidc, secret, f"{settings.origin}{CALLBACK}")


async def run_web(
    settings: Settings, started: Callable[[str], None], *, parent: int | None = None
) -> int:
    """Serve the inbox until a signal arrives; return the exit code.

    `started` gets the URL. The end of the process `parent` counts as a signal. Raises ConfigError,
    DatabaseUnreachable, SchemaOutdated.
    """
    deny_inspection()
    async with shutdown_signals(parent) as signals, open_runtime(settings) as rt:
        await migrate.warn_of_schema(rt.db.session_url)
        service = WebService(rt)
        with signals.stopping(service.stop), recorded(settings, service.url):
            started(service.url)
            await service.run()
    _log.info("web inbox stopped")
    return 0
