"""Checks of the web inbox by `draftsman doctor`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from draftsman_bots.process.checks import Check
from draftsman_bots.web.settings import WebSettings

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings


async def checks(settings: Settings, rt: Runtime | None) -> AsyncIterator[Check]:
    """Check the URL of the inbox, and its proxies."""
    web = WebSettings.of(settings)
    if web.url is None and not web.is_local:
        text = f"listen {web.listen} is reachable from other machines, without a url"
        yield Check("fail", text, "set url in [web] to the https URL of the inbox")
    elif web.proxy_header is not None and not web.trusted_proxies:
        then = "set trusted_proxies in [web] to the address of the proxy"
        yield Check("fail", "proxy_header has no effect", then)
    elif web.trusts_this_machine:
        text = "every program on this machine can name any person in the proxy_header"
        then = "set proxy_secret in [web], and let the proxy send it (draftsman help --page web)"
        yield Check("warn", text, then)
    else:
        yield Check("ok", web.origin)
