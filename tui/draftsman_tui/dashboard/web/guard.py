"""Access checks. Loopback alone is not safe: other users and any web page can reach it.

- The URL has a secret, which other users of the machine do not know.
- `Host` must be a loopback name, which prevents DNS rebinding.
- The `Origin` of a WebSocket must be this server, since browsers let any page open a WebSocket to
  any host.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self'; connect-src 'self' {socket}; style-src 'self' 'unsafe-inline';"
        " img-src 'self' data:;"
        " frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""No external resources, no framing by other pages, no referrer with the secret URL."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reject requests that do not come from this server's own page."""
    if reason := refusal(request):
        return web.Response(status=403, text=f"draftsman: {reason}\n")
    try:
        response = await handler(request)
    except web.HTTPNotFound:
        text = "draftsman: page not found; open the URL printed by `draftsman dashboard --web`"
        return web.Response(status=404, text=f"{text}\n")
    if not response.prepared:
        socket = f"ws://{request.host}"
        response.headers.update(
            {name: text.format(socket=socket) for name, text in HEADERS.items()}
        )
    return response


def refusal(request: web.Request) -> str:
    """Return why a request is rejected; empty if it is allowed."""
    if urlsplit(f"//{request.host}").hostname not in LOOPBACK:
        return f"host {request.host[:100]!r} is not allowed; open the dashboard as 127.0.0.1"
    origin = request.headers.get("Origin")
    if origin not in (None, f"http://{request.host}"):
        return "requests from other origins are not allowed"
    if origin is None and request.headers.get("Upgrade", "").lower() == "websocket":
        return "a WebSocket request needs an Origin header"
    return ""
