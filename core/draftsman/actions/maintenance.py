"""Actions on deliveries, repositories, accounts and the database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from draftsman.actions.action import About, ActionResult, Call, action
from draftsman.actions.jobs import TERMINALS
from draftsman.errors import CommandHint
from draftsman.formats.amounts import counted
from draftsman.people.policy import Verb

if TYPE_CHECKING:
    from draftsman.events.service import ArchiveContent
    from draftsman.people.directory import IdentityLink
    from draftsman.repos.repo_catalog import Repo, RepoLocation


def deliveries(count: int) -> str:
    """Return a number of deliveries: `3 deliveries`."""
    return counted(count, "delivery", "deliveries")


@action(
    About.DELIVERY,
    right=Verb.REDELIVER,
    question="Resend {}?",
    consequence="A copy that may have arrived is searched for first.",
    guarded=True,
    surfaces=TERMINALS,
)
async def redeliver(call: Call, seqs: Sequence[int]) -> ActionResult[list[int]]:
    """Resend dead-letter deliveries."""
    revived = await call.rt.outbox.redeliver(seqs, call.actor)
    return ActionResult(deliveries(len(revived)), "queued to resend", revived)


@action(About.REPO, right=Verb.REPOS, surfaces=TERMINALS)
async def make_default(call: Call, repo: Repo | None) -> ActionResult[str | None]:
    """Set or clear the default repository."""
    await call.rt.repos.set_default(repo, call.actor)
    name = None if repo is None else repo.full_name
    return ActionResult("default repository", f"set to {name}" if name else "cleared", name)


@action(About.REPO, name="map", right=Verb.REPOS, arguments="LABEL [//FOLDER]", surfaces=TERMINALS)
async def map_label(
    call: Call, location: RepoLocation, label: str | None, label_id: str | None = None
) -> ActionResult[str]:
    """Map a label to a repository."""
    await call.rt.repos.map(location, call.actor, label=label, label_id=label_id)
    return ActionResult(f"label {label or label_id}", f"mapped to {location.name}", location.name)


@action(About.REPO, name="unmap", right=Verb.REPOS, arguments="LABEL", surfaces=TERMINALS)
async def unmap_label(call: Call, repo: Repo | None, label: str) -> ActionResult[int]:
    """Remove a label mapping of a repository."""
    removed = await call.rt.repos.unmap(label, call.actor, repo)
    where = f" from {repo.full_name}" if repo is not None else ""
    return ActionResult(f"label {label}", f"unmapped{where}", removed)


@action(
    About.REPO,
    name="remove",
    right=Verb.REPOS,
    question="Remove repository {}?",
    consequence="Deletes its label mappings and profiles. Its jobs and their work are kept.",
    destroys=True,
    guarded=True,
    surfaces=TERMINALS,
)
async def remove_repo(call: Call, repo: Repo) -> ActionResult[str]:
    """Remove a repository, its label mappings and profiles."""
    await call.rt.repos.remove(repo, call.actor)
    return ActionResult(f"repository {repo.full_name}", "removed", repo.full_name)


@action(About.ACCOUNT, arguments="CODE", undo="unlink", surfaces=TERMINALS)
async def link(call: Call, code: str) -> ActionResult[IdentityLink]:
    """Link a chat account to you, by its code."""
    account = await call.rt.people.link(code, call.actor)
    identity = f"{account.channel}:{account.external_id}"
    hint = CommandHint("people unlink", identity, lead="if this is not your account")
    says = f"linked to {account.person}"
    name = f" ({account.display_name})" if account.display_name else ""
    return ActionResult(f"account {identity}{name}", says, account, then=hint)


@action(
    About.ACCOUNT,
    right=Verb.UNLINK,
    arguments="CHANNEL:ID",
    question="Unlink {}?",
    undo="link",
    surfaces=TERMINALS,
)
async def unlink(call: Call, account: tuple[str, str]) -> ActionResult[str]:
    """Unlink a chat account."""
    person = await call.rt.people.unlink(*account, call.actor)
    return ActionResult(f"account {':'.join(account)}", f"unlinked from {person}", person)


@action(About.SYSTEM, right=Verb.SWEEP, arguments="NAME", surfaces=TERMINALS)
async def sweep(call: Call, name: str) -> ActionResult[int]:
    """Run a maintenance sweep now."""
    count = await call.rt.sweeps.run_now(name, call.actor)
    return ActionResult(f"{name}:", f"changed {counted(count, 'row')}", count)


@action(
    About.SYSTEM,
    right=Verb.RESTORE,
    arguments="FILE",
    question="Restore {}?",
    consequence="The next prune removes them again unless the retention is longer.",
    surfaces=TERMINALS,
)
async def restore(call: Call, path: Path) -> ActionResult[ArchiveContent]:
    """Restore an archived month of events."""
    content = await call.rt.archives.restore(path, call.actor)
    return ActionResult(archived(content), "restored", content)


def archived(content: ArchiveContent) -> str:
    """Return what an archive has: `12 events of 2026-11`."""
    return f"{counted(content.events, 'event')} of {content.month:%Y-%m}"
