"""Resolution of a job's repository, by name, by labels and text, or by a question.

The result is recorded as a step, so that all runs of the job use the same repository even if the
mapping of labels changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from draftsman.errors import CommandHint, Failure, NotFound, OptionHint, UsageError
from draftsman.handlers.worker_run import WorkerRun, build_ask
from draftsman.jobs.requests.invocation import RepoResolution
from draftsman.jobs.reserved_names import Owner
from draftsman.questions.choice_matching import matching_key
from draftsman.questions.question import Answered
from draftsman.questions.question_spec import Choice
from draftsman.repos.repo_catalog import (
    CONFIDENCE,
    EMPTY,
    AmbiguousRepo,
    Label,
    Repo,
    RepoLocation,
    ResolvedRepo,
)
from draftsman.repos.repo_profile import SavedProfile
from draftsman.repos.service import Repos
from draftsman.text import capitalized

T = TypeVar("T")
STEP: Final = "agent:repository"
"""Step that pins the repository, and key of the question."""
MAX_ROUNDS: Final = 5
"""Maximum number of answers that name no repository before the job fails."""
QUESTION: Final = "Which repository is this job for?"
MAX_CHOICE_LENGTH: Final = 150
"""Maximum characters of a choice."""
MAX_CHOICES: Final = 500
"""Maximum choices of a question."""


@dataclass(frozen=True, slots=True)
class JobRepository:
    """The repository of a job, and how it was resolved."""

    source: str
    ref: str | None
    location: RepoLocation
    method: str
    confidence: float
    saved: SavedProfile | None

    @property
    def pinned(self) -> dict[str, Any]:
        """The record of the repository for later runs and for retries of the job."""
        record = {"source": self.source, "method": self.method, "confidence": self.confidence}
        return record | {"path": self.location.path}

    def as_event(self, base_sha: str) -> dict[str, Any]:
        """Return the payload of `repo_resolved`."""
        repo = self.location.repo
        path = self.location.path
        resolution: dict[str, Any] = {"method": self.method, "confidence": self.confidence}
        payload = {"source": self.source, "base_sha": base_sha, **resolution}
        payload |= {"owner": repo.owner, "name": repo.name}
        return payload | ({"path": path} if path else {})


async def resolve_repository(run: WorkerRun, checkpoint: dict[str, Any] | None) -> JobRepository:
    """Return the repository of the job; parks the job to ask people.

    `checkpoint` is the record in the latest checkpoint, which a retry of the job uses. Raises
    Failure if no repository is registered.
    """
    request = run.job.payload.get("repo")
    request = request if isinstance(request, dict) else {}
    ref = request.get("ref")
    if source := request.get("source"):
        resolution = RepoResolution.model_validate(
            {k: request[k] for k in RepoResolution.model_fields if k in request}
        )
        pinned = {"source": str(source), **resolution.model_dump()}
        return await _load(run, pinned, ref)
    repository = await _load(run, checkpoint or await _pinned_record(run), ref)
    if run.job.agent_request.repo_name is None:
        await assign(run, repository.location.repo)
    return repository


async def assign(run: WorkerRun, repo: Repo) -> None:
    """Record the repository of the job; raises LeaseLost."""
    await run.wait(run.repos.assign, run.job.lease, repo)


async def _pinned_record(run: WorkerRun) -> dict[str, Any]:
    """Return the recorded repository; the first run that resolves it writes the record."""
    steps = await run.steps(Owner.WORKER)
    if STEP in steps and steps[STEP].status == "done":
        return dict(steps[STEP].result)
    repository = await _resolve(run)
    resolution: dict[str, Any] = {"method": repository.method, "confidence": repository.confidence}
    record = {"source": repository.repo.remote_url, **resolution, "path": repository.path}
    return dict(await run.step(STEP, lambda _: record, owner=Owner.WORKER))


async def _resolve(run: WorkerRun) -> ResolvedRepo:
    text = "\n".join(filter(None, (run.job.own_title, run.job.agent_request.text)))
    labels = list(_labels(run.job.payload.get("labels")))
    resolved = await run.wait(run.repos.resolve, labels=labels, text=text)
    if isinstance(resolved, ResolvedRepo):
        return resolved
    if not resolved.choices:
        raise Failure(
            "no repository for this job; submit it with a repository",
            origin="agent",
            declared="PERMANENT",
            hint=CommandHint("repos add", "PATH|URL", lead="to register a repository"),
        )
    return await _ask(run, resolved)


async def _ask(run: WorkerRun, ambiguous: AmbiguousRepo) -> ResolvedRepo:
    """Ask until an answer names a repository; an answer is valid even if the choices changed."""
    problem = ""
    for attempt in range(1, MAX_ROUNDS + 1):
        key = STEP if attempt == 1 else f"{STEP}:{attempt}"
        answer = (await run.answers()).get(key)
        if answer is None:
            choices = tuple(_choices(ambiguous.choices))
            question = build_ask(
                key=key, text=f"{problem}{QUESTION}", choices=choices, freeform=True
            )
            answer = await run.ask_or_park(question)
        if not isinstance(answer, Answered):
            break
        resolved = await _resolve_answer(run, answer.value or answer.text or "")
        if isinstance(resolved, ResolvedRepo):
            return resolved
        problem = f"{capitalized(resolved)}\n\n"
    raise Failure(
        f"none of {MAX_ROUNDS} answers named a repository",
        origin="agent",
        declared="PERMANENT",
        hint=OptionHint("repo", lead="submit the job again with"),
    )


async def _resolve_answer(run: WorkerRun, name: str) -> ResolvedRepo | str:
    """Return the repository that an answer names, or an error message."""
    try:
        resolved = await run.wait(run.repos.resolve, explicit=name.strip() or "-")
    except (NotFound, UsageError) as error:
        return str(error)
    if isinstance(resolved, AmbiguousRepo):
        names = ", ".join(_choice_value(location, qualified=True) for location in resolved.choices)
        return f"more than one repository matches: {names}."
    if resolved.repo.id is None and not resolved.repo.host:
        return "an answer cannot be a folder on the worker; use a registered repository or a URL."
    return ResolvedRepo(resolved.repo, CONFIDENCE["asked"], "asked", resolved.path)


async def _load(run: WorkerRun, pinned: dict[str, Any], ref: str | None) -> JobRepository:
    """Return the recorded repository with its location and profile."""
    source = str(pinned["source"])
    path = str(pinned.get("path") or "")
    repo = await run.wait(_find_registered, run.repos, source)
    if repo is None:
        repo = _unregistered(source)
    location = RepoLocation(repo, path)
    profile = await run.wait(run.repos.profile, location)
    method = str(pinned["method"])
    confidence = float(pinned["confidence"])
    return JobRepository(
        source=source,
        ref=ref or repo.default_branch,
        location=location,
        method=method,
        confidence=confidence,
        saved=profile,
    )


def _unregistered(source: str) -> Repo:
    _, owner, name = EMPTY.names_of([source])[source]
    return Repo(None, "", owner or "", name or "", source)


async def _find_registered(repos: Repos, source: str) -> Repo | None:
    try:
        return await repos.known(source)
    except UsageError:  # a URL that git accepts and draftsman does not
        return None


def _choices(locations: Iterable[RepoLocation]) -> Iterable[Choice]:
    """Yield a choice for each location; equal names are qualified by their host."""
    locations = list(locations)
    names = [location.name.casefold() for location in locations]
    seen: set[str] = set()
    for location in locations:
        value = _choice_value(location, qualified=names.count(location.name.casefold()) > 1)
        if (
            len(value) <= MAX_CHOICE_LENGTH
            and (key := matching_key(value)) not in seen
            and len(seen) < MAX_CHOICES
        ):
            seen.add(key)
            url = None if location.repo.remote_url.startswith("/") else location.repo.remote_url
            yield Choice(value=value, description=url and url[:500])


def _choice_value(location: RepoLocation, *, qualified: bool) -> str:
    return f"{location.repo.host}/{location.name}".lstrip("/") if qualified else location.name


def _labels(labels: Any) -> Iterable[Label]:
    for label in labels if isinstance(labels, list) else ():
        if isinstance(label, list) and len(label) == 2:
            yield str(label[0]), str(label[1])
