"""The `policy` command group: the policy of a repository, and its decision about changes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.actions.changes import no_diff_reason
from draftsman.agent_runs.changes.user_repository import UserRepository
from draftsman.errors import Refused, UsageError
from draftsman.formats.amounts import counted
from draftsman.ids import parse_job
from draftsman_tui.cli.app import App, command_group, number_of
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from draftsman.agent_runs.policies.code_owners import ApprovalGroup, OwnerRules
    from draftsman.agent_runs.policies.repo_policy import PolicyFinding, RepoPolicy
    from draftsman.repos.repo_catalog import RepoLocation
    from draftsman.runtime import Runtime

DIFF: Final = (
    "diff",
    "--binary",
    "--full-index",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--find-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
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
    job = await rt.read_model.job(number)
    runs = await rt.read_model.runs(number)
    patch = await rt.changes.patch(number)
    started = [run.params_snapshot for run in runs if "base_sha" in run.params_snapshot]
    if patch is None or not started:
        raise Refused(await no_diff_reason(rt, job.name, number, missing=False))
    content = await rt.checkpoints.content(patch)
    source = str(started[-1]["repo"])
    base = str(started[-1]["base_sha"])
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


FOLDER: Final = click.Path(file_okay=False, path_type=Path)
JOB: Final = re.compile(r"(D-)?\d+", re.IGNORECASE)
DENIED: Final = 1
STYLES: Final = {"deny": "red", "ask": "yellow", "allow": ""}


@command_group(
    "policy",
    section="Setup",
    examples=("draftsman policy show acme/pay", "draftsman policy test D-142"),
)
def policy() -> None:
    """Show and test the policy of a repository.

    The configuration of this machine is used; that of the workers decides about jobs.
    """


@policy.subcommand("show", examples=("draftsman policy show acme/pay", "draftsman policy show"))
@click.argument("repo", type=params.TEXT, required=False)
async def show(app: App, repo: str | None) -> None:
    """Show the policy of a repository; without a name, that of the configuration."""
    from draftsman.agent_runs.policies.repo_policy import RepoPolicy

    if repo is None:
        name = "the configuration"
        profile_keys = set[str]()
        repo_policy = RepoPolicy(app.settings.policy)
    else:
        async with app.runtime(read_only=True) as rt:
            location = await rt.repos.place(repo)
            name = location.name
            profile_keys, repo_policy = await _policy_of(app, rt, location)
    if app.json:
        data = repo_policy.as_json()
        origin = {"sha256": repo_policy.digest, "own": sorted(profile_keys)}
        app.out.document(data.pop("settings") | data | origin)
        return
    app.out.print(line(styled(f"policy {repo_policy.version}", "bold"), f" of {name}"))
    for key, value in _shown(repo_policy):
        note = "  (profile)" if key in profile_keys else ""
        app.out.print(f"{key:<20} {value}{note}")


@policy.subcommand(
    "test",
    examples=(
        "draftsman policy test D-142",
        "draftsman policy test my-branch --base origin/main",
        "draftsman policy test D-142 --json",
    ),
)
@click.argument("target", metavar="JOB|BRANCH", type=params.TEXT)
@click.option("--base", type=params.TEXT, help="Base of the branch; default: the default branch.")
@click.option("-C", "folder", type=FOLDER, default=".", help="A folder of your repository.")
async def test(app: App, target: str, base: str | None, folder: Path) -> None:
    """Show which rules of the policy a job or a branch meets, and change nothing.

    The exit code is 1 if a rule denies the changes.
    """
    from draftsman.agent_runs.policies.code_owners import approval_groups

    is_job = JOB.fullmatch(target) is not None
    if is_job and base is not None:
        raise UsageError("--base is for a branch; a job has its own base")
    async with app.runtime(read_only=True) as rt:
        if is_job:
            ref = parse_job(target)
            changes = await job_changes(rt, await number_of(rt, ref), folder)
        else:
            changes = await branch_changes(rt, UserRepository.at(folder), target, base)
        _, repo_policy = await _policy_of(app, rt, changes.location)
        eligible = partial(rt.policy.eligible_approvers, invoker=changes.invoker)
    findings = repo_policy.decide(changes.patch)
    to_approve = [finding for finding in findings if finding.effect == "ask"]
    rules = _owner_rules(app, repo_policy, changes, to_approve)
    groups = approval_groups(to_approve, rules, eligible)
    _print(app, changes, repo_policy, findings, groups)
    if any(item.effect == "deny" for item in findings):
        click.get_current_context().exit(DENIED)


async def _policy_of(
    app: App, rt: Runtime, location: RepoLocation | None
) -> tuple[set[str], RepoPolicy]:
    """Return the keys that the profile sets, and the policy."""
    from draftsman.agent_runs.policies.repo_policy import RepoPolicy

    saved = None if location is None else await rt.repos.profile(location)
    profile = None if saved is None else saved.profile
    settings = None if profile is None else profile.policy
    keys = set() if settings is None else set(settings.model_fields_set)
    return keys, RepoPolicy.of(app.settings.policy, profile)


def _owner_rules(
    app: App, repo_policy: RepoPolicy, changes: TestedChanges, to_approve: list[PolicyFinding]
) -> OwnerRules | None:
    """Return the CODEOWNERS of the base commit; None if the policy does not use them."""
    from draftsman.agent_runs.policies.code_owners import OwnerRules

    if repo_policy.settings.owners != "codeowners":
        return None
    if not any(finding.path for finding in to_approve):
        return None
    text = changes.code_owners()
    if text is None:
        raise Refused(
            f"the code owners of {changes.base[:12]} decide, and no repository here has that"
            " commit; use -C DIRECTORY with a clone that has it"
        )
    return OwnerRules(text, app.settings.codeowners)


def _print(
    app: App,
    changes: TestedChanges,
    repo_policy: RepoPolicy,
    findings: list[PolicyFinding],
    groups: list[ApprovalGroup],
) -> None:
    approvers = {item: group.approvers for group in groups for item in group.findings}
    denied = any(item.effect == "deny" for item in findings)
    if app.json:
        data = [
            item.as_json() | ({"approvers": approvers[item]} if item in approvers else {})
            for item in findings
        ]
        unmapped = [path for group in groups for path in group.unmapped]
        document: dict[str, Any] = {"target": changes.name, "base": changes.base}
        document |= {"policy": repo_policy.digest, "denied": denied}
        app.out.document(document | {"findings": data, "unmapped": unmapped})
        return
    count = counted(len(findings), "finding")
    owner = "the configuration" if changes.location is None else changes.location.name
    app.out.print(f"{changes.name}: {count} by policy {repo_policy.version} of {owner}")
    if not findings:
        return
    rows = [
        (
            styled(item.effect, STYLES[item.effect]),
            item.rule,
            item.place,
            _approver_text(approvers.get(item)) if item.effect == "ask" else "",
        )
        for item in findings
    ]
    app.out.table(("EFFECT", "RULE", "CHANGE", "APPROVERS"), rows, flexible=(2, 3))
    for group in groups:
        for path in group.unmapped:
            app.out.info(f"no code owner may approve {path}")


def _approver_text(names: tuple[str, ...] | None) -> str:
    return "any approver" if names is None else ", ".join(names)


def _shown(repo_policy: RepoPolicy) -> list[tuple[str, str]]:
    """Return the keys of a policy with their values as text."""
    rows: list[tuple[str, str]] = []
    data = repo_policy.as_json()
    settings: dict[str, Any] = data.pop("settings")
    for key, value in (settings | data).items():
        if key == "paths":
            rows += [(key, f"{rule['path']} {rule['effect']}") for rule in value]
        elif isinstance(value, (list, tuple)):
            rows += [(key, ", ".join(value) or "none")]
        else:
            rows.append((key, "unlimited" if value is None else f"{value}"))
    return [row for row in rows if row != ("path_allowlist", "unlimited")]
