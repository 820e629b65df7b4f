"""Who may come in. Loopback is not enough of a lock: it has other users, and every web page.

- The address has a secret, which other users of this machine do not know.
- `Host` must be a name of loopback, so that no page gets in by a name of its own that suddenly
  means 127.0.0.1 (DNS rebinding).
- A websocket must be asked for by our own page: browsers let any page open one anywhere, and say
  in `Origin` which page it is.
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
"""Nothing is loaded from anywhere else, nobody puts us in a frame, and nobody hears the address."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse who is not our own page on this machine."""
    if refused := refusal(request):
        return web.Response(status=403, text=f"draftsman: {refused}\n")
    try:
        response = await handler(request)
    except web.HTTPNotFound:
        text = "draftsman: no such page; open the address that `draftsman dashboard --web` printed"
        return web.Response(status=404, text=f"{text}\n")
    if not response.prepared:
        socket = f"ws://{request.host}"
        response.headers.update(
            {name: text.format(socket=socket) for name, text in HEADERS.items()}
        )
    return response


def refusal(request: web.Request) -> str:
    """Return why a request is refused; empty: it is not."""
    if urlsplit(f"//{request.host}").hostname not in LOOPBACK:
        return f"it is served to this machine alone, as 127.0.0.1 and not as {request.host[:100]!r}"
    origin = request.headers.get("Origin")
    if origin not in (None, f"http://{request.host}"):
        return "another page may not ask for it"
    if origin is None and request.headers.get("Upgrade", "").lower() == "websocket":
        return "a page must say where it comes from"
    return ""
