"""The browser of this machine."""

from __future__ import annotations

import os


def open_url(url: str) -> bool:
    """Open the URL; False without a browser, and with one that draws on this terminal.

    A browser of `$BROWSER` is used in any case.
    """
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    on_terminal = isinstance(browser, webbrowser.GenericBrowser) and not isinstance(
        browser, webbrowser.BackgroundBrowser
    )
    return browser.open(url) if os.environ.get("BROWSER") or not on_terminal else False
