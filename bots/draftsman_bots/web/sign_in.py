"""Pages that begin and end sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from starlette.responses import RedirectResponse

from draftsman_bots.web.forms import read_form
from draftsman_bots.web.origin import client_address, local_path
from draftsman_bots.web.pages import page
from draftsman_bots.web.problems import PageProblem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from draftsman_bots.web.context import WebContext

MAX_LINK: Final = 100
"""Characters of a link's token."""


async def ask(context: WebContext, request: Request) -> Response:
    """Show how to sign in; a person that the proxy names is signed in and continues."""
    visit = await context.access.visit(request)
    if visit is not None:
        request.state.visit = visit
        return RedirectResponse(local_path(request.query_params.get("next", "/")), 303)
    oidc, next_path = context.settings.oidc, local_path(request.query_params.get("next", "/"))
    return page(
        "sign_in",
        None,
        provider=urlsplit(oidc.issuer).netloc if oidc is not None else "",
        begin=f"/oidc/begin?{urlencode({'next': next_path})}",
    )


async def confirm(context: WebContext, request: Request) -> Response:
    """Show the person of a link and a button, because previews of chats open links, too."""
    context.limits.count_sign_in(client_address(request, context.settings))
    link = request.path_params["link"]
    person = await context.sessions.person_of_link(link) if len(link) <= MAX_LINK else None
    if person is None:
        raise _invalid_link()
    visit = await context.access.visit(request)
    return page("confirm_sign_in", None, person=person, link=link, current=visit)


async def use_link(context: WebContext, request: Request) -> Response:
    """Sign in with a link, once."""
    context.limits.count_sign_in(client_address(request, context.settings))
    await read_form(request)
    link = request.path_params["link"]
    token = await context.access.use_link(request, link) if len(link) <= MAX_LINK else None
    if token is None:
        raise _invalid_link()
    response = RedirectResponse("/", 303)
    context.access.set_cookie(response, token)
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


def _invalid_link() -> PageProblem:
    return PageProblem(
        410,
        "This link was used before, or has expired.",
        "Create a new link: /draftsman web in Slack, or draftsman link --web on your computer.",
    )
