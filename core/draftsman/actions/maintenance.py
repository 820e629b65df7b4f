"""Actions on deliveries, repositories and the database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from draftsman.actions.action import (
    About,
    ActionResult,
    Arguments,
    Call,
    Subject,
    Surface,
    action,
)
from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.errors import Refused, UsageError
from draftsman.formats.amounts import counted
from draftsman.jobs.fits import Fit
from draftsman.people.policy import Verb

if TYPE_CHECKING:
    from draftsman.events.service import ArchiveContent
    from draftsman.repos.repo_catalog import Repo, RepoLocation
    from draftsman.repos.repo_profile import RepoProfile


async def dead_letters(call: Call, seqs: Sequence[int], **_: object) -> Subject:
    """Return deliveries; a single one needs no question."""
    from draftsman.deliveries.service.outbox import MAX_DEAD

    rest = "The oldest first; run the command again for the rest." if len(seqs) == MAX_DEAD else ""
    return Subject(note=rest, needs_question=len(seqs) > 1)


@action(
    About.DELIVERY,
    right=Verb.REDELIVER,
    fits=Fit({DeliveryStatus.DEAD_LETTER}, "is {}, no dead letter; nothing to resend"),
    question="Resend {}?",
    consequence="A copy that may have arrived is searched for first.",
    guarded=True,
    check=dead_letters,
)
async def redeliver(call: Call, seqs: Sequence[int]) -> ActionResult[list[int]]:
    """Resend dead-letter deliveries."""
    if not seqs:
        return ActionResult("no dead-letter deliveries", [], subject="nothing to resend:")
    revived = await call.rt.outbox.redeliver(seqs, call.actor)
    subject = counted(len(revived), "delivery", "deliveries")
    return ActionResult("queued to resend", revived, subject=subject)


# Repositories.


@action(About.REPO, right=Verb.REPOS, surfaces={Surface.COMMANDS}, name="add", undo="remove")
async def add_repo(
    call: Call,
    repo: Repo,
    profile: RepoProfile,
    *,
    commit: str | None = None,
    checks: Sequence[dict[str, Any]] = (),
    replaces: bool = False,
) -> ActionResult[Repo]:
    """Add a repository with a profile, or replace its profile."""
    service = call.rt.repos
    if replaces:
        await service.save_profile(repo, profile, call.actor, commit=commit, checks=checks)
        return ActionResult("has a new profile", repo)
    added = await service.add(repo, profile, call.actor, commit=commit, checks=checks)
    return ActionResult("added", added)


@action(About.REPO, right=Verb.REPOS, surfaces={Surface.COMMANDS}, name="check")
async def record_check(
    call: Call, location: RepoLocation, commit: str, checks: Sequence[dict[str, Any]]
) -> ActionResult[None]:
    """Record the results of the validation commands of a profile."""
    await call.rt.repos.checked(location.repo, location.path, commit, checks, call.actor)
    return ActionResult("checked", None, subject=location.name)


@action(About.REPO, right=Verb.REPOS)
async def make_default(call: Call, repo: Repo | None) -> ActionResult[str | None]:
    """Set or clear the default repository."""
    await call.rt.repos.set_default(repo, call.actor)
    name = None if repo is None else repo.full_name
    says = f"set to {name}" if name else "cleared"
    data = {"label": None, "removed": 1}
    return ActionResult(says, name, data=data, subject="default repository")


def parse_label(text: str) -> dict[str, str]:
    """Parse `LABEL` or `LABEL //FOLDER`."""
    label, _, folder = text.partition("//")
    return {"label": label.strip(), "folder": folder.strip()}


@action(
    About.REPO,
    name="map",
    right=Verb.REPOS,
    takes=Arguments("LABEL [//FOLDER]", parse_label, "Label to map to the {}?", "payments"),
    undo="unmap",
)
async def map_label(
    call: Call, repo: Repo, label: str | None, label_id: str | None = None, folder: str = ""
) -> ActionResult[str]:
    """Map a label to a repository."""
    from draftsman.repos.repo_catalog import RepoLocation

    place = f"{repo.full_name}//{folder}"
    location = await call.rt.repos.place(place) if folder else RepoLocation(repo, "")
    await call.rt.repos.map(location, call.actor, label=label, label_id=label_id)
    data = {"name": location.name, "label": label, "label_id": label_id}
    says = f"mapped to {location.name}"
    return ActionResult(says, location.name, data=data, subject=f"label {label or label_id}")


async def mapped_labels(call: Call, repo: Repo) -> Sequence[tuple[str, str]]:
    """Return the labels of a repository; raises Refused if there are none."""
    catalog = await call.rt.repos.catalog()
    labels = [
        mapping.label_name or mapping.label_id or ""
        for mapping in catalog.mappings
        if mapping.repo == repo.id
    ]
    if not labels:
        raise Refused(f"no label is mapped to {repo.full_name}")
    return [(label, label) for label in labels]


@action(
    About.REPO,
    name="unmap",
    right=Verb.REPOS,
    takes=Arguments("LABEL", lambda text: {"label": text}, "Which label?", choices=mapped_labels),
    undo="map",
)
async def unmap_label(call: Call, repo: Repo | None, label: str) -> ActionResult[int]:
    """Remove a label mapping of a repository."""
    removed = await call.rt.repos.unmap(label, call.actor, repo)
    where = f" from {repo.full_name}" if repo is not None else ""
    data = {"label": label, "removed": removed}
    return ActionResult(f"unmapped{where}", removed, data=data, subject=f"label {label}")


@action(
    About.REPO,
    name="remove",
    right=Verb.REPOS,
    question="Remove {}?",
    consequence="Deletes its label mappings and profiles. Its jobs and their work are kept.",
    destroys=True,
    guarded=True,
)
async def remove_repo(call: Call, repo: Repo) -> ActionResult[str]:
    """Remove a repository, its label mappings and profiles."""
    await call.rt.repos.remove(repo, call.actor)
    data = {"name": repo.full_name, "removed": True}
    return ActionResult("removed", repo.full_name, data=data)


# The database.


async def sweeps(call: Call, _: object) -> Sequence[tuple[str, str]]:
    """Return the names of all sweeps."""
    return [(name, name) for name in call.rt.sweeps.names]


@action(
    About.SYSTEM,
    right=Verb.SWEEP,
    takes=Arguments("NAME", prompt="Run which sweep?", choices=sweeps),
    row=str,
)
async def sweep(call: Call, name: str) -> ActionResult[int]:
    """Run a maintenance sweep now."""
    count = await call.rt.sweeps.run_now(name, call.actor)
    data = {"sweep": name, "changed": count}
    return ActionResult(f"changed {counted(count, 'row')}", count, data=data, subject=f"{name}:")


def parse_archive(text: str) -> Path:
    """Return the path of an archive; raises UsageError."""
    path = Path(text).expanduser()
    if not path.is_file():
        raise UsageError(
            f"{text[:200]}: file not found; use the machine of the leader that archived it"
        )
    return path


async def archives(call: Call, _: object) -> Sequence[tuple[str, str]]:
    """Return the archived months; raises Refused if there are none."""
    months = await call.rt.archives.all()
    if not months:
        raise Refused("no events have been archived")
    return [(f"{archive.month:%Y-%m}  {archive.path}", str(archive.path)) for archive in months]


async def restored(call: Call, path: Path, **_: object) -> Subject:
    """Return what an archive has; raises Refused for an invalid one."""
    return Subject(archived(await call.rt.archives.check(path)))


@action(
    About.SYSTEM,
    right=Verb.RESTORE,
    takes=Arguments("FILE", prompt="Restore which month?", choices=archives),
    row=parse_archive,
    question="Restore {}?",
    consequence="The next prune removes them again unless the retention is longer.",
    check=restored,
)
async def restore(call: Call, path: Path) -> ActionResult[ArchiveContent]:
    """Restore an archived month of events."""
    content = await call.rt.archives.restore(path, call.actor)
    return ActionResult("restored", content, subject=archived(content))


def archived(content: ArchiveContent) -> str:
    """Return what an archive has: `12 events of 2026-11`."""
    return f"{counted(content.events, 'event')} of {content.month:%Y-%m}"
