"""The `link` command: sign-in links of the web inbox, and links of chat accounts."""

from __future__ import annotations

import io

import click

from draftsman.actions import people as actions
from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.perform import act, perform
from draftsman_tui.terminal import params
from draftsman_tui.terminal.extras import of_channel, require
from draftsman_tui.terminal.output import styled
from draftsman_tui.terminal.results import result_line


@command(
    "link",
    section="Setup",
    examples=("draftsman link --web", "draftsman link --web --qr", "draftsman link K7PQ2MXWAB"),
    does=(actions.link, actions.sign_in),
)
@click.argument("code", type=params.TEXT, required=False)
@click.option("--web", is_flag=True, help="Print a URL that signs you in to the web inbox, once.")
@click.option("--qr", is_flag=True, help="With --web: also print a QR code, for a phone.")
async def link(app: App, code: str | None, web: bool, qr: bool) -> None:
    """Sign in to the web inbox, or link a chat account to you.

    With --web, prints a URL that is valid once, for 15 minutes; a new URL replaces it. Open it only
    in your own browser: it signs in as you. CODE is the reply to `/draftsman link` in chat, as in
    `draftsman people link`.
    """
    if web == (code is not None):
        raise UsageError("use --web for the web inbox, or the CODE of a chat account")
    if qr and not web:
        raise UsageError("--qr requires --web")
    if code is not None:
        await perform(app, actions.link, code)
        return
    if qr:
        require(of_channel("web"))
    from draftsman.settings.channel_tables import section_of

    settings = section_of(app.settings, "web").in_use(app.settings)
    async with app.runtime() as rt:
        result = await act(app, rt, actions.sign_in, settings.origin, prints=app.json)
    if app.json:
        return
    url, _ = result.value
    app.out.print(url)
    for row in _qr_code(url) if qr else ():
        app.out.print(styled(row, "bright_white on black"))
    app.out.print_stderr(result_line(result))


def _qr_code(url: str) -> list[str]:
    """Return the lines of a QR code, of light modules on a dark background."""
    import segno

    text = io.StringIO()
    segno.make(url, error="l", micro=False).terminal(text, border=2, compact=True)
    return text.getvalue().splitlines()
