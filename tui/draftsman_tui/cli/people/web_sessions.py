"""The commands `people sessions` and `people sign-out`: sessions of the web inbox."""

from __future__ import annotations

import click

from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.terminal import params, times
from draftsman_tui.terminal.output import line, one_line, styled


@command("sessions", examples=("draftsman people sessions", "draftsman people sessions --json"))
async def sessions(app: App) -> None:
    """List sessions of the web inbox: your own, of all people for operators."""
    from draftsman.people.service.web_sessions import WebSessions

    async with app.runtime(read_only=True) as rt:
        found = await WebSessions(rt.db, rt.policy).sessions()
    if app.json:
        app.out.document({"sessions": found})
        return
    for session in found:
        agent = one_line(session.user_agent)[:60] or "unknown browser"
        app.out.print(
            line(
                styled(f"{session.id:>6}  {session.person}", "bold"),
                f"  by {session.method} {times.ago(session.created_at)},"
                f" expires {times.left(session.expires_at)}  {agent}",
            )
        )
    if not found:
        app.out.info("no sessions; to sign in: draftsman link --web")


@command(
    "sign-out", examples=("draftsman people sign-out 12", "draftsman people sign-out --person anna")
)
@click.argument("session", type=click.IntRange(1, 2**63 - 1), required=False)
@click.option("--person", type=params.TEXT, help="End all sessions of this person.")
async def sign_out(app: App, session: int | None, person: str | None) -> None:
    """End a session of the web inbox, or all sessions of a person.

    The browser is signed out with its next request. Operators may end the sessions of others.
    """
    if (session is None) == (person is None):
        raise UsageError("give the number of a session (draftsman people sessions), or --person")
    from draftsman.people.service.web_sessions import WebSessions

    async with app.runtime() as rt:
        service = WebSessions(rt.db, rt.policy)
        if session is not None:
            await service.end(session)
            ended = 1
        else:
            ended = await service.end_all(person or "")
    if app.json:
        app.out.document({"ended": ended})
    else:
        app.out.print(f"ended {ended} session{'' if ended == 1 else 's'}")
