"""Access of the configured tokens to the repositories on forges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from draftsman.errors import Failure

if TYPE_CHECKING:
    from draftsman.forges.forge import Forge
    from draftsman.settings import Settings

RIGHTS = "rights of a token: draftsman help --page forges#tokens"


@dataclass(frozen=True, slots=True)
class ForgeAccess:
    """Access of the token of a forge to a repository; `hint` suggests a fix."""

    forge: str
    status: Literal["ok", "warn", "fail"]
    text: str
    hint: str | None = None


async def check_access(settings: Settings, source: str) -> ForgeAccess | None:
    """Check the token for a repository; None if it is on no forge of the configuration."""
    from draftsman.forges.api.connection import forge_at, forge_settings
    from draftsman.outbound.secret_values import MissingSecret

    if (found := forge_settings(settings, source)) is None:
        return None
    name, table, project = found
    path = project.path
    try:
        forge = forge_at(settings, name, path)
        account = await forge.account()
        location = await forge.location()
        misses_webhook = await _misses_webhook(settings, forge)
    except MissingSecret as error:
        return ForgeAccess(name, "warn", error.problem, "set it for the workers")
    except Failure as error:
        return ForgeAccess(name, "fail", f"{path}: {error}", RIGHTS)
    if location.casefold() != path.casefold():
        text = f"{path} is {location} now, where calls and git follow it; others may take the name"
        hint = f"register its new address: draftsman repos add {table.url}/{location}"
        return ForgeAccess(name, "warn", text, hint)
    if account.missing:
        text = f"{path}: {account.name} lacks {', '.join(account.missing)}"
        return ForgeAccess(name, "warn", text, RIGHTS)
    if misses_webhook:
        text = f"{path}: no active webhook to {settings.forges[name].webhook_url}"
        hint = (
            "add it on the forge, with content type JSON and webhook_secret"
            " (draftsman help --page follow-ups#webhooks)"
        )
        return ForgeAccess(name, "warn", text, hint)
    return ForgeAccess(name, "ok", f"{path}: {account.name}")


async def _misses_webhook(settings: Settings, forge: Forge) -> bool:
    """Return whether the forge says that the configured webhook is missing."""
    table = settings.forges[forge.name]
    if table.events != "webhook" or table.webhook_url is None:
        return False
    return await forge.events().has_webhook(table.webhook_url) is False
