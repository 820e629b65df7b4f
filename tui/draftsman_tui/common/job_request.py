"""What a person asks for becomes a request: `submit` and the form of the dashboard share it."""

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
UNCHECKED: Final = "--unchecked submits it all the same"


class InvalidField(UsageError):
    """A field cannot be meant: `field` is its name, `said` what is wrong with it, without that."""

    def __init__(self, field: str, said: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.problem = said


def require_instructions(fields: Mapping[str, Any]) -> None:
    """Raise Wrong where nobody says what an agent is to do."""
    if "text" in fields or "title" in fields or fields.get("type", AGENT_TYPE) != AGENT_TYPE:
        return
    text = "say what is to be done"
    raise InvalidField("text", text, f"{text}: draftsman submit 'Tidy up', or see --help")


def build_request(fields: Mapping[str, Any], settings: Settings) -> Invocation:
    """Return the request, its agent chosen and its repository found; raises UsageError."""
    from draftsman.services.jobs.submissions import invocation

    fields = dict(fields)
    named = fields.get("agent") or fields.get("repo")  # which may have an agent of its own
    if fields.get("type", AGENT_TYPE) == AGENT_TYPE and not named:
        fields["agent"] = _default_agent(settings)
    if isinstance(repo := fields.get("repo"), str):
        fields["repo"] = _place(repo)
    made = invocation(**fields)
    if made.type in job_payloads.MODELS and made.type not in settings.handlers:
        job_payloads.parse(made.type, made.payload)
    return made


async def resolve_request(
    request: Invocation, rt: Runtime, *, unchecked: bool = False, types: set[str] | None = None
) -> Invocation:
    """Return the request with the repository that it names, and its agent, which that may have.

    Raises UsageError, also for what no worker can have. `unchecked` accepts what another process
    may be configured for; `types` keeps the types that were found, for the requests of a batch.
    """
    request = await _found(request, rt)
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
    """Refuse a type that neither the configuration nor a live worker has a handler for."""
    settings = rt.settings
    known = {AGENT_TYPE, *job_payloads.MODELS, *settings.handlers, *settings.types}
    if type in known:
        return
    workers = await rt.read_model.workers()
    live = [one for one in workers if health_of(one, settings) != "lost"]
    known |= {name for one in live for name in one.types}
    if type in known:
        return
    near = get_close_matches(type, sorted(known), 3)
    said = "neither [handlers] nor a live worker has it"
    if not live:
        said = "[handlers] does not have it, and no worker is running"
    if near:
        said += f"; did you mean {' or '.join(near)}"
    if not (near and live):
        said += f"; known are: {', '.join(sorted(known))}"
    raise InvalidField("type", said, f"there is no job type {type!r}: {said}; {UNCHECKED}")


def check_channels(request: Invocation, settings: Settings) -> None:
    """Refuse a message to a chat that this configuration has no bot for."""
    named = [text for text in request.notify if text != NONE]
    if request.type == "send_notification" and request.type not in settings.handlers:
        named += job_payloads.notification_targets(request.payload)
    for text in named:
        channel = parse(text).channel
        if (channel is ChannelName.SLACK and settings.slack is None) or (
            channel is ChannelName.TRELLO and settings.trello is None
        ):
            said = f"the configuration has no [{channel}]; see docs/{channel}.md"
            raise InvalidField("notify", said, f"--notify {text[:60]}: {said}; {UNCHECKED}")


def check_llm(request: Invocation, settings: Settings) -> None:
    """Refuse a request to a model where none is configured, or where it has to name one."""
    if request.type != "llm_generate" or request.type in settings.handlers:
        return
    if not settings.llm:
        said = "the configuration has no [llm.NAME]; see config/draftsman.toml"
        raise InvalidField("type", said, f"no model can be asked: {said}; {UNCHECKED}")
    if len(settings.llm) > 1 and request.payload.get("llm") is None:
        names = ", ".join(sorted(settings.llm))
        said = f"name one of the models in the payload, as llm: {names}"
        raise InvalidField("payload", said, said)


async def check_repo(request: Invocation, rt: Runtime) -> None:
    """Refuse what the agent would fail at once for: it names no repository, and none is known."""
    if request.repo or request.type != AGENT_TYPE or AGENT_TYPE in rt.settings.handlers:
        return
    if not (await rt.repos.catalog()).repos:
        said = "no repository is known; give a path or URL, or first: draftsman repos add"
        text = "no repository is known; give --repo PATH or URL, or first: draftsman repos add"
        raise InvalidField("repo", said, text)


async def _found(request: Invocation, rt: Runtime) -> Invocation:
    place = None
    if request.repo and not is_repo_url(request.repo):
        place = await _named(request.repo, rt)
        how = RepoResolution(path=place.path)
        found = {"repo": place.repo.remote_url, "resolution": how}
        request = request.model_copy(update=found)
    if request.agent or request.type != AGENT_TYPE:
        return request
    if place is None and request.repo:
        repo = await rt.repos.known(request.repo)
        place = RepoLocation(repo) if repo else None
    saved = await rt.repos.profile(place) if place else None
    agent = (saved and saved.profile.agent) or _default_agent(rt.settings)
    return request.model_copy(update={"agent": agent})


def check_local_path(request: Invocation, rt: Runtime) -> None:
    """Refuse what no worker can have: the embedded database serves this machine alone."""
    if not rt.embedded:
        return
    repo, agents = request.repo, rt.settings.agents
    if repo and repo.startswith("/") and not Path(repo).is_dir():
        raise _repo(repo, "no such directory here; give a path or a URL")
    if request.agent and request.type == AGENT_TYPE and request.agent not in agents:
        text = f"there is no agent {request.agent!r}; choose: {', '.join(sorted(agents))}"
        raise InvalidField("agent", text, text)
    check_configured(request, rt.settings)


def check_configured(request: Invocation, settings: Settings) -> None:
    """Refuse a tool, a model or a receiver that the only configuration there is does not have."""
    tables: dict[str, tuple[str, Mapping[str, object]]] = {
        "execute_tool": ("tool", settings.tools),
        "llm_generate": ("llm", settings.llm),
        "webhook_dispatch": ("webhook", settings.webhooks),
        "http_request": ("credential", settings.http.credentials),
    }
    if request.type not in tables or request.type in settings.handlers:
        return
    key, known = tables[request.type]
    wanted = request.payload.get(key)
    if wanted is not None and wanted not in known:
        names = ", ".join(sorted(known)) or "none, see config/draftsman.toml"
        text = f"there is no {key} {wanted!r}; configured are: {names}"
        raise InvalidField("payload", text, text)


def _place(repo: str) -> str:
    """Return a URL or a name as it is, and a path made absolute."""
    if len(repo) > MAX_URL_LENGTH:
        raise _repo(
            f"{repo[:60]}…", f"a path, a URL or a name has {MAX_URL_LENGTH} characters at most"
        )
    if is_repo_url(repo) and not repo.startswith(("/", "~", ".")) and not Path(repo).exists():
        return repo
    path = Path(repo).expanduser()
    found = path.resolve() if path.is_dir() else path
    if not found.is_absolute() and repo.startswith("."):
        raise _repo(repo, "no such directory here; give a path, a URL or a name")
    return str(found)


async def _named(repo: str, rt: Runtime) -> RepoLocation:
    try:
        return await rt.repos.place(repo)
    except NotFound as error:
        what = "no such directory here, nor a repository of that name"
        then = str(error.hint or "")
        if isinstance(error, UnknownRepo):
            then = f"known are: {', '.join(error.known) or 'none'}; {then}"
        raise InvalidField("repo", what, f"--repo {repo}: {what}; {then}") from None


def _repo(repo: str, said: str) -> InvalidField:
    return InvalidField("repo", said, f"--repo {repo}: {said}")


def _default_agent(settings: Settings) -> str:
    if (name := settings.agent_by_default) is not None:
        return name
    known = ", ".join(sorted(settings.agents))
    then = f"which agent? give --agent: {known}; or set default_agent in the configuration"
    raise InvalidField("agent", f"which agent? there are: {known}", then)


OTHER_TEXT_IGNORED = "your request is kept in its history"
"""What a request that joined a live job is told."""
