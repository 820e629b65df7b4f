"""The `web` command: the web inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.processes.process_setup import set_up_log, warn_of_variables
from draftsman_tui.terminal import params
from draftsman_tui.terminal.extras import require

if TYPE_CHECKING:
    from draftsman.settings import Settings


@command(
    "web",
    examples=(
        "draftsman web",
        "draftsman web --listen 127.0.0.1:9000",
        "draftsman web --url https://draftsman.example.org",
        "draftsman link --web",
    ),
    long_running=True,
)
@click.option("--listen", type=params.TEXT, metavar="HOST:PORT", help="Address of the server.")
@click.option("--url", type=params.TEXT, help="URL of the inbox in browsers.")
@click.option("--parent", type=int, hidden=True)
async def web(app: App, listen: str | None, url: str | None, parent: int | None) -> None:
    """Serve the web inbox: questions and jobs in a browser.

    The pages are made for phones and for large screens, and work without scripts. People sign in
    with a link of `draftsman link --web`, or as [web] configures. Browsers on other machines need
    https, so a reverse proxy: see docs/web.md. On SIGTERM, SIGINT or SIGHUP, requests in progress
    are finished. With --json, the URL is printed as JSON.
    """
    set_up_log(app)
    if parent is None:
        warn_of_variables(app)
    require("web")
    from draftsman_bots.web.service import run_web

    settings = with_options(app.settings, listen, url)

    def started(url: str) -> None:
        if app.json:
            app.out.document({"url": url})
        else:
            app.out.print(url)
        app.out.info("to sign in: draftsman link --web; to stop: Ctrl-C")

    if code := await run_web(settings, started, parent=parent):
        raise click.exceptions.Exit(code)


def with_options(settings: Settings, listen: str | None, url: str | None) -> Settings:
    """Return the settings with the options; raises UsageError for an invalid value."""
    from pydantic import ValidationError

    from draftsman import field_errors
    from draftsman.settings.web import WebSettings

    options = {key: value for key, value in (("listen", listen), ("url", url)) if value}
    given = settings.web.model_dump(exclude_unset=True)
    try:
        changed = WebSettings.model_validate(given | options)
    except ValidationError as error:
        raise field_errors.field_error(error) from None
    return settings.model_copy(update={"web": changed})
