"""Validation and resolution of job requests, for `submit` and the dashboard's form."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain import job_payloads
from draftsman.domain.invocation import Invocation, RepoResolution
from draftsman.domain.messages.delivery import ChannelName
from draftsman.domain.messages.target import NONE, parse
from draftsman.domain.repos.repo_catalog import RepoLocation
from draftsman.domain.repos.repo_url import MAX_URL_LENGTH, is_repo_url
from draftsman.errors import NotFound, UnknownRepo, UsageError
from draftsman_tui.common.worker_health import health_of

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings

AGENT_TYPE: Final = "run_agent"
UNCHECKED: Final = "to submit it anyway, use --unchecked"


class InvalidField(UsageError):
    """An invalid field; `problem` describes the error without the field's name."""

    def __init__(self, field: str, problem: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.problem = problem


def require_instructions(fields: Mapping[str, Any]) -> None:
    """Raise InvalidField if a request to an agent has no instructions."""
    if "text" in fields or "title" in fields or fields.get("type", AGENT_TYPE) != AGENT_TYPE:
        return
    problem = "instructions are required"
    raise InvalidField("text", problem, f"{problem}, e.g. draftsman submit 'Tidy up'; see --help")


def build_request(fields: Mapping[str, Any], settings: Settings) -> Invocation:
    """Build the request, with default agent and absolute path; raises UsageError."""
    from draftsman.services.jobs.submissions import invocation

    fields = dict(fields)
    has_agent = fields.get("agent") or fields.get("repo")  # a repository may set the agent
    if fields.get("type", AGENT_TYPE) == AGENT_TYPE and not has_agent:
        fields["agent"] = _default_agent(settings)
    if isinstance(repo := fields.get("repo"), str):
        fields["repo"] = _absolute(repo)
    request = invocation(**fields)
    if request.type in job_payloads.MODELS and request.type not in settings.handlers:
        job_payloads.parse(request.type, request.payload)
    return request


async def resolve_request(
    request: Invocation, rt: Runtime, *, unchecked: bool = False, types: set[str] | None = None
) -> Invocation:
    """Resolve the repository and agent of a request, and check that a worker can run it.

    Raises UsageError. `unchecked` skips the checks against this configuration; `types` caches known
    types across the requests of a batch.
    """
    request = await _resolve_repo(request, rt)
    check_local_path(request, rt)
    if not unchecked:
        types = set() if types is None else types
        if request.type not in types:
            await check_type(request.type, rt)
            types.add(request.type)
        check_channels(request, rt.settings)
        check_llm(request, rt.settings)
    await check_repo(request, rt)
    return request


async def check_type(type: str, rt: Runtime) -> None:
    """Reject a type without a handler in the configuration or on a live worker."""
    settings = rt.settings
    known = {AGENT_TYPE, *job_payloads.MODELS, *settings.handlers, *settings.types}
    if type in known:
        return
    workers = await rt.read_model.workers()
    live = [worker for worker in workers if health_of(worker, settings) != "lost"]
    known |= {name for worker in live for name in worker.types}
    if type in known:
        return
    near = get_close_matches(type, sorted(known), 3)
    problem = "no handler in [handlers] or on a live worker"
    if not live:
        problem = "no handler in [handlers], and no worker is running"
    if near:
        problem += f"; did you mean {' or '.join(near)}?"
    if not (near and live):
        problem += f"; known types: {', '.join(sorted(known))}"
    raise InvalidField("type", problem, f"unknown job type {type!r}: {problem}; {UNCHECKED}")


def check_channels(request: Invocation, settings: Settings) -> None:
    """Reject a target in a chat service that is not configured."""
    targets = [text for text in request.notify if text != NONE]
    if request.type == "send_notification" and request.type not in settings.handlers:
        targets += job_payloads.notification_targets(request.payload)
    for text in targets:
        channel = parse(text).channel
        if (channel is ChannelName.SLACK and settings.slack is None) or (
            channel is ChannelName.TRELLO and settings.trello is None
        ):
            problem = f"[{channel}] is not configured; see docs/{channel}.md"
            raise InvalidField("notify", problem, f"--notify {text[:60]}: {problem}; {UNCHECKED}")


def check_llm(request: Invocation, settings: Settings) -> None:
    """Reject a request to a language model if none is configured, or several and none is named."""
    if request.type != "llm_generate" or request.type in settings.handlers:
        return
    if not settings.llm:
        problem = "[llm.NAME] is not configured; see config/draftsman.toml"
        raise InvalidField("type", problem, f"no language model: {problem}; {UNCHECKED}")
    if len(settings.llm) > 1 and request.payload.get("llm") is None:
        names = ", ".join(sorted(settings.llm))
        problem = f"payload field llm is required: {names}"
        raise InvalidField("payload", problem, problem)


async def check_repo(request: Invocation, rt: Runtime) -> None:
    """Reject an agent's request without a repository if none is known."""
    if request.repo or request.type != AGENT_TYPE or AGENT_TYPE in rt.settings.handlers:
        return
    if not (await rt.repos.catalog()).repos:
        problem = "no repositories yet; use a path or URL, or first run: draftsman repos add"
        text = "no repositories yet; use --repo PATH or URL, or first run: draftsman repos add"
        raise InvalidField("repo", problem, text)


async def _resolve_repo(request: Invocation, rt: Runtime) -> Invocation:
    location = None
    if request.repo and not is_repo_url(request.repo):
        location = await _find_repo(request.repo, rt)
        resolution = RepoResolution(path=location.path)
        fields = {"repo": location.repo.remote_url, "resolution": resolution}
        request = request.model_copy(update=fields)
    if request.agent or request.type != AGENT_TYPE:
        return request
    if location is None and request.repo:
        repo = await rt.repos.known(request.repo)
        location = RepoLocation(repo) if repo else None
    saved = await rt.repos.profile(location) if location else None
    agent = (saved and saved.profile.agent) or _default_agent(rt.settings)
    return request.model_copy(update={"agent": agent})


def check_local_path(request: Invocation, rt: Runtime) -> None:
    """Check paths and agents on this machine, where the embedded database has all its workers."""
    if not rt.embedded:
        return
    repo, agents = request.repo, rt.settings.agents
    if repo and repo.startswith("/") and not Path(repo).is_dir():
        raise _repo_error(repo, "directory not found; use a path or a URL")
    if request.agent and request.type == AGENT_TYPE and request.agent not in agents:
        text = f"unknown agent {request.agent!r}; one of: {', '.join(sorted(agents))}"
        raise InvalidField("agent", text, text)
    check_configured(request, rt.settings)


def check_configured(request: Invocation, settings: Settings) -> None:
    """Reject a tool, model, webhook or credential that is not configured."""
    tables: dict[str, tuple[str, Mapping[str, object]]] = {
        "execute_tool": ("tool", settings.tools),
        "llm_generate": ("llm", settings.llm),
        "webhook_dispatch": ("webhook", settings.webhooks),
        "http_request": ("credential", settings.http.credentials),
    }
    if request.type not in tables or request.type in settings.handlers:
        return
    key, known = tables[request.type]
    name = request.payload.get(key)
    if name is not None and name not in known:
        names = ", ".join(sorted(known)) or "none, see config/draftsman.toml"
        text = f"unknown {key} {name!r}; configured: {names}"
        raise InvalidField("payload", text, text)


def _absolute(repo: str) -> str:
    """Make a path absolute; a URL or a name stays as it is."""
    if len(repo) > MAX_URL_LENGTH:
        raise _repo_error(f"{repo[:60]}…", f"must have at most {MAX_URL_LENGTH} characters")
    if is_repo_url(repo) and not repo.startswith(("/", "~", ".")) and not Path(repo).exists():
        return repo
    path = Path(repo).expanduser()
    path = path.resolve() if path.is_dir() else path
    if not path.is_absolute() and repo.startswith("."):
        raise _repo_error(repo, "directory not found; use a path, a URL or a name")
    return str(path)


async def _find_repo(repo: str, rt: Runtime) -> RepoLocation:
    try:
        return await rt.repos.place(repo)
    except NotFound as error:
        problem = "no directory or repository with this name"
        hint = str(error.hint or "")
        if isinstance(error, UnknownRepo):
            hint = f"known repositories: {', '.join(error.known) or 'none'}; {hint}"
        raise InvalidField("repo", problem, f"--repo {repo}: {problem}; {hint}") from None


def _repo_error(repo: str, problem: str) -> InvalidField:
    return InvalidField("repo", problem, f"--repo {repo}: {problem}")


def _default_agent(settings: Settings) -> str:
    if (name := settings.agent_by_default) is not None:
        return name
    known = ", ".join(sorted(settings.agents))
    text = f"--agent is required: {known}; or set default_agent in the configuration"
    raise InvalidField("agent", f"agent is required: {known}", text)


OTHER_TEXT_IGNORED = "your request was added to its history"
"""Note on a request that joined a live job."""
