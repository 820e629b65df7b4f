"""The changes of a job or of a branch that `policy test` checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from draftsman.errors import Refused, UsageError
from draftsman_tui.changes.user_repository import UserRepository
from draftsman_tui.entities.artifacts import no_diff_reason

if TYPE_CHECKING:
    from draftsman.repos.repo_catalog import RepoLocation
    from draftsman.runtime import Runtime

DIFF: Final = (
    *("diff", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--find-renames", "--src-prefix=a/", "--dst-prefix=b/"),
)
"""The patch of a job is made with the same options."""
BRANCHES: Final = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
"""Default bases of a branch; the first that exists counts."""


@dataclass(frozen=True, slots=True)
class TestedChanges:
    """A patch, with its base and repository."""

    __test__ = False

    name: str
    patch: str
    base: str
    location: RepoLocation | None
    """The registered repository; None: the policy of the configuration counts."""
    invoker: str
    folders: tuple[UserRepository, ...]
    """Repositories that may have the base commit."""

    def code_owners(self) -> str | None:
        """Return the CODEOWNERS of the base commit; None if no repository has the commit."""
        from draftsman.agent_runs.policies.code_owners import FILES, MAX_SIZE

        for repository in self.folders:
            if repository.commit_of(self.base) is None:
                continue
            for path in FILES:
                done = repository.attempt("cat-file", "blob", f"{self.base}:{path}")
                if done.returncode == 0:
                    small = len(done.stdout) <= MAX_SIZE
                    return done.stdout.decode(errors="replace") if small else ""
            return ""
        return None


async def job_changes(rt: Runtime, number: int, folder: Path) -> TestedChanges:
    """Return the changes of a job; raises Refused without any."""
    job, runs = await rt.read_model.job(number), await rt.read_model.runs(number)
    patch = await rt.checkpoints.patch(number)
    started = [run.params_snapshot for run in runs if "base_sha" in run.params_snapshot]
    if patch is None or not started:
        raise Refused(await no_diff_reason(rt, job.name, number, missing=False))
    content = await rt.checkpoints.content(patch)
    source, base = str(started[-1]["repo"]), str(started[-1]["base_sha"])
    for event in await rt.read_model.latest_job_events(number):
        if event.kind == "base_updated":
            base = str(event.payload["to"])
    pinned = {step.key: step.result for step in await rt.checkpoints.steps(number)}
    resolved = pinned.get("agent:repository") or job.payload.get("repo") or {}
    location = await _location(rt, [source], str(resolved.get("path") or ""))
    folders = []
    for place in (Path(source), folder):
        try:
            folders.append(UserRepository.at(place))
        except UsageError:
            continue
    text = content.decode("utf-8", "surrogateescape")
    return TestedChanges(job.name, text, base, location, job.invoker_id, tuple(folders))


async def branch_changes(
    rt: Runtime, repository: UserRepository, branch: str, base: str | None
) -> TestedChanges:
    """Return the changes of a branch since it left its base; raises UsageError."""
    head = repository.commit_of(branch)
    if head is None:
        raise UsageError(f"{branch}: no such branch in {repository.top}, and not a job")
    names = BRANCHES if base is None else (base,)
    other = next((name for name in names if repository.commit_of(name)), None)
    if other is None:
        raise UsageError(f"{base or 'no default branch'} in {repository.top}; use --base REF")
    start = repository.git("merge-base", other, head)
    done = repository.attempt(*DIFF, start, head)
    remotes = repository.git("remote").splitlines()
    urls = [repository.git("remote", "get-url", remote) for remote in remotes]
    location = await _location(rt, [str(repository.top), *urls], "")
    patch = done.stdout.decode("utf-8", "surrogateescape")
    return TestedChanges(branch, patch, start, location, "", (repository,))


async def _location(rt: Runtime, sources: list[str], path: str) -> RepoLocation | None:
    """Return the registered repository of the first source that has any."""
    from draftsman.repos.repo_catalog import RepoLocation

    for source in sources:
        try:
            repo = await rt.repos.known(source)
        except UsageError:
            continue
        if repo is not None:
            return RepoLocation(repo, path)
    return None
