"""Pages that begin and end sessions."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlencode, urlsplit

from starlette.responses import RedirectResponse

from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.web.access import client_address, local_path
from draftsman_bots.web.oidc import OidcError, SignInAttempt
from draftsman_bots.web.pages import page, read_form
from draftsman_bots.web.problems import PageProblem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from draftsman_bots.web.context import WebContext
    from draftsman_bots.web.oidc import OidcProvider


MAX_LINK: Final = 100
"""Characters of a link's token."""


async def ask(context: WebContext, request: Request) -> Response:
    """Show how to sign in; a person that the proxy names is signed in and continues."""
    visit = await context.access.visit(request)
    if visit is not None:
        request.state.visit = visit
        return RedirectResponse(local_path(request.query_params.get("next", "/")), 303)
    oidc = context.settings.oidc
    next_path = local_path(request.query_params.get("next", "/"))
    response = page(
        "sign_in",
        None,
        link_command=link_command(context),
        provider=urlsplit(oidc.issuer).netloc if oidc is not None else "",
        begin=f"/oidc/begin?{urlencode({'next': next_path})}",
    )
    if next_path != "/":
        _remember(context, response, NEXT_COOKIE, quote(next_path))
    return response


async def confirm(context: WebContext, request: Request) -> Response:
    """Show the person of a link and a button, because previews of chats open links, too."""
    context.limits.count_sign_in(client_address(request, context.settings))
    link = request.path_params["link"]
    person = await context.sessions.person_of_link(link) if len(link) <= MAX_LINK else None
    if person is None:
        raise _invalid_link(context)
    visit = await context.access.visit(request)
    return page("confirm_sign_in", None, person=person, link=link, current=visit)


async def use_link(context: WebContext, request: Request) -> Response:
    """Sign in with a link, once."""
    context.limits.count_sign_in(client_address(request, context.settings))
    await read_form(request)
    link = request.path_params["link"]
    token = await context.access.use_link(request, link) if len(link) <= MAX_LINK else None
    if token is None:
        raise _invalid_link(context)
    next_path = request.cookies.get(_cookie(context, NEXT_COOKIE))
    response = RedirectResponse(local_path(unquote(next_path or "/")), 303)
    context.access.set_cookie(response, token)
    if next_path is not None:
        _forget(context, response, NEXT_COOKIE)
    return response


async def sign_out(context: WebContext, request: Request) -> Response:
    """End the session."""
    visit = await context.access.required(request)
    context.access.check_form(visit, await read_form(request))
    await context.access.end(request)
    request.state.visit = None
    response = page("signed_out", None)
    context.access.delete_cookie(response)
    return response


def _invalid_link(context: WebContext) -> PageProblem:
    title = "This link was used before, or has expired."
    command = link_command(context)
    in_slack = f", or {command} in Slack" if command else ""
    return PageProblem(
        410, title, f"Create a new link: draftsman link --web on your computer{in_slack}."
    )


def link_command(context: WebContext) -> str:
    """Return the command of Slack that creates a link; "" without one."""
    slack = SlackSettings.of(context.rt.settings)
    is_public = context.settings.url is not None and context.settings.is_secure
    return f"{slack.command} web" if slack is not None and is_public else ""


# The two requests of a sign-in by an OpenID Connect provider.


CALLBACK: Final = "/oidc/callback"
ATTEMPT_SECONDS: Final = 600
"""Time that a person has to sign in."""
COOKIE: Final = "draftsman-sign-in"
NEXT_COOKIE: Final = "draftsman-next"
"""The page that a person wanted to open, for the sign-in by a link."""
_log = logging.getLogger(__name__)


async def begin(context: WebContext, request: Request) -> Response:
    """Send the browser to the provider."""
    provider = _provider(context)
    context.limits.count_sign_in(client_address(request, context.settings))
    try:
        url, attempt = await provider.begin(local_path(request.query_params.get("next", "/")))
    except OidcError as error:
        raise _problem(error) from None
    response = RedirectResponse(url, 303)
    _remember(context, response, COOKIE, attempt.encode())
    return response


async def finish(context: WebContext, request: Request) -> Response:
    """Sign the person in that the provider names, in the browser that began the attempt."""
    provider = _provider(context)
    context.limits.count_sign_in(client_address(request, context.settings))
    attempt = SignInAttempt.decode(request.cookies.get(_cookie(context, COOKIE), ""))
    if attempt is None:
        raise PageProblem(400, "This sign-in was not begun in this browser.", "Sign in again.")
    try:
        account = await provider.finish(request.query_params, attempt)
    except OidcError as error:
        raise _problem(error) from None
    token = await context.access.open_for_provider(request, account)
    response = RedirectResponse(local_path(attempt.next), 303)
    context.access.set_cookie(response, token)
    _forget(context, response, COOKIE)
    return response


def _provider(context: WebContext) -> OidcProvider:
    if context.provider is None:
        raise PageProblem(404, "There is no such page.")
    return context.provider


def _cookie(context: WebContext, name: str) -> str:
    return f"__Host-{name}" if context.settings.is_secure else name


def _remember(context: WebContext, response: Response, name: str, value: str) -> None:
    """Store a value in the browser until its person has signed in."""
    response.set_cookie(
        _cookie(context, name),
        value,
        max_age=ATTEMPT_SECONDS,
        secure=context.settings.is_secure,
        httponly=True,
        samesite="lax",
    )


def _forget(context: WebContext, response: Response, name: str) -> None:
    response.delete_cookie(
        _cookie(context, name), secure=context.settings.is_secure, httponly=True, samesite="lax"
    )


def _problem(error: OidcError) -> PageProblem:
    _log.warning("sign-in by the provider failed: %s", error)
    return PageProblem(
        401,
        "The provider did not sign you in.",
        "Try again; an operator finds the reason in the log.",
    )
