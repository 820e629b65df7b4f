"""Checks of a request against the configuration, the repositories and the live workers.

Every front end passes them before it submits. A RejectedField has data only, and each front end
words its own message.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from draftsman.channels import LOG, WEBHOOK, ChannelName, registry
from draftsman.database.database import Database
from draftsman.deliveries.target import NONE, parse
from draftsman.errors import CommandHint, NotFound, RejectedField, UnknownRepo
from draftsman.forges.issue_target import CHANNEL, IssueTarget
from draftsman.formats.near_names import near_or_all
from draftsman.formats.truncation import truncate
from draftsman.job_types.published.description import TypeDescription
from draftsman.job_types.published.service import PublishedTypes
from draftsman.jobs.job import AGENT_TYPE
from draftsman.jobs.requests import payloads as job_payloads
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.jobs.requests.invocation import Invocation, RepoResolution
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.job_limits import check_override_names
from draftsman.repos.repo_catalog import AmbiguousRepo, RepoLocation
from draftsman.repos.repo_url import MAX_URL_LENGTH, is_repo_url, repository_top
from draftsman.repos.service import CATALOG_AGE, Repos
from draftsman.worker.registry.service import live_workers

if TYPE_CHECKING:
    from draftsman.settings import Settings

MAX_SHOWN: Final = 60
"""Characters of a rejected value in a message."""


def require_instructions(fields: Mapping[str, Any]) -> None:
    """Raise RejectedField if a request to an agent has no instructions."""
    if "text" in fields or "title" in fields or fields.get("type", AGENT_TYPE) != AGENT_TYPE:
        return
    raise RejectedField("instructions are required", field="text", rule="required")


def build_request(fields: Mapping[str, Any], settings: Settings) -> Invocation:
    """Build the request, with an absolute path; raises UsageError."""
    fields = dict(fields)
    has_agent = fields.get("agent") or fields.get("repo")  # a repository may set the agent
    if fields.get("type", AGENT_TYPE) == AGENT_TYPE and not has_agent:
        default_agent(settings)
    if isinstance(repo := fields.get("repo"), str):
        fields["repo"] = absolute_repo(repo)
    request = invocation(**fields)
    if request.type in job_payloads.MODELS and request.type not in settings.handlers:
        job_payloads.parse(request.type, request.payload)
    check_override_names(request.type, request.overrides, settings.handlers)
    return request


def default_agent(settings: Settings) -> str:
    """Return the default agent; raises RejectedField if it has to be named."""
    if (name := settings.agent_by_default) is not None:
        return name
    known = tuple(sorted(settings.agents))
    raise RejectedField(
        f"agent is required: {', '.join(known)}", field="agent", rule="required", known=known
    )


def check_agent(name: str, settings: Settings) -> None:
    """Reject an agent that is not configured."""
    if name not in settings.agents:
        known = tuple(sorted(settings.agents))
        problem = f"unknown agent {name[:MAX_SHOWN]!r}; available: {', '.join(known)}"
        raise RejectedField(problem, field="agent", rule="unknown", value=name, known=known)


def notified(request: Invocation, settings: Settings) -> list[str]:
    """Return the targets of a request, also those of its own message."""
    targets = [text for text in request.notify if text != NONE]
    if request.type == "send_notification" and request.type not in settings.handlers:
        targets += job_payloads.notification_targets(request.payload)
    return targets


def check_channels(
    request: Invocation, settings: Settings, origin: ChannelName | None = None
) -> None:
    """Reject a target in a chat service that is not configured, except that of the request."""
    for text in notified(request, settings):
        target = parse(text)
        if target.channel in (origin, LOG, WEBHOOK):
            continue
        channel = registry.channel(target.channel)
        if (setup := channel.setup(settings, target.target)) is None:
            continue
        problem = f"not configured; add {setup}"
        message = f"notify {text[:MAX_SHOWN]}: {problem}"
        raise RejectedField(
            message,
            field="notify",
            rule="not_configured",
            problem=problem,
            value=text,
            skippable=True,
        )


def check_llm(request: Invocation, settings: Settings) -> None:
    """Reject a request to a language model if none is configured, or several and none is named."""
    if request.type != "llm_generate" or request.type in settings.handlers:
        return
    if not settings.llm:
        problem = "[llm.NAME] is not configured; see config/draftsman.toml"
        message = f"no language model: {problem}"
        raise RejectedField(
            message, field="type", rule="not_configured", problem=problem, skippable=True
        )
    if len(settings.llm) > 1 and request.payload.get("llm") is None:
        known = tuple(sorted(settings.llm))
        problem = f"payload field llm is required: {', '.join(known)}"
        raise RejectedField(problem, field="payload", rule="required", known=known)


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
    key, table = tables[request.type]
    name = request.payload.get(key)
    if name is not None and name not in table:
        known = tuple(sorted(table))
        names = ", ".join(known) or "none, see config/draftsman.toml"
        problem = f"unknown {key} {name!r}; configured: {names}"
        raise RejectedField(problem, field="payload", rule="unknown", value=name, known=known)


@dataclass(frozen=True, slots=True)
class UnknownType:
    """A job type without a handler in the configuration or on a live worker; `known` have one."""

    type: str
    known: tuple[str, ...]
    has_workers: bool
    app: str | None
    """The app whose worker served it last; None for a type that no worker has published."""

    @property
    def problem(self) -> str:
        """The problem, with near names; for a known type, with the command of its worker."""
        if self.app is not None:
            problem = "no live worker handles it" if self.has_workers else "no worker is running"
            arguments = f"--app {self.app}" if self.app else ""
            return f"{problem}; {CommandHint('worker', arguments, lead='to start one')}"
        problem = "no handler in [handlers], and no worker is running"
        if self.has_workers:
            problem = "no handler in [handlers] or on a live worker"
        return problem + near_or_all(self.type, self.known, "known types")

    @property
    def warning(self) -> str:
        """What to say to the person who submits a job of the type."""
        waits = f"the job waits for a worker that handles the type {self.type!r}"
        described = "; no worker has published the type yet" if self.app is None else ""
        return f"{waits}: {self.problem}{described}"


class RequestChecks:
    """Resolution and checks of requests that a person or a program makes."""

    def __init__(
        self,
        *,
        db: Database,
        settings: Settings,
        repos: Repos,
        embedded: bool,
        published: PublishedTypes,
    ) -> None:
        """Take whether the database is embedded: then all workers have this configuration."""
        self._settings = settings
        self._repos = repos
        self._db = db
        self._embedded = embedded
        self._published = published

    async def resolve(
        self,
        request: Invocation,
        *,
        unchecked: bool = False,
        chats: bool = True,
    ) -> Invocation:
        """Resolve the repository and agent of a request, and check that a worker can run it.

        Raises UsageError. `unchecked` skips the checks of chats and models; without `chats`, its
        targets may be in chats that only other processes configure. A type that no worker handles
        passes: its job waits (`type_warnings`).
        """
        request = await self._resolve_repo(request)
        await self.check(request, unchecked=unchecked, chats=chats)
        if not (request.repo or request.type != AGENT_TYPE or self._is_replaced(request)):
            await self._require_repos()
        return request

    async def of_type(
        self,
        type: TypeDescription,
        form: EnteredForm,
    ) -> Invocation:
        """Return the checked request of a described type.

        Raises UsageError for a name that is no parameter; the values are checked when the request
        is submitted.
        """
        type.inputs.check_names(form.values)
        payload = type.inputs.parsed(form.values) if form.typed else dict(form.values)
        fields = form.request_fields | {"type": type.name, "payload": payload}
        request = await self.resolve(build_request(fields, self._settings), chats=form.chats)
        return form.addressed(request)

    @property
    def queue_names(self) -> set[str]:
        """The names of the queues of the configuration."""
        return self._settings.queue_names

    async def check(
        self,
        request: Invocation,
        *,
        origin: ChannelName | None = None,
        unchecked: bool = False,
        chats: bool = True,
    ) -> None:
        """Check a request whose repository and agent are resolved; raises UsageError.

        `origin` is the chat service of the request. A request without a repository passes: a job
        from chat asks for it.
        """
        if self._embedded:
            self._check_local(request)
        if unchecked:
            return
        if chats:
            check_channels(request, self._settings, origin)
            await self._check_issues(request)
        check_llm(request, self._settings)

    async def _check_issues(self, request: Invocation) -> None:
        """Reject an issue or pull request of a repository that is not registered."""
        issues = {
            text: IssueTarget.of(parse(text).target)
            for text in notified(request, self._settings)
            if parse(text).channel == CHANNEL
        }
        if not issues:
            return
        for text, issue in issues.items():
            table = self._settings.forges.get(issue.forge)
            if table is None or await self.registered_source(table.url, issue.path):
                continue
            problem = f"{issue.path} is not a registered repository of [forges.{issue.forge}]"
            raise RejectedField(
                f"notify {text[:MAX_SHOWN]}: {problem}",
                field="notify",
                rule="not_registered",
                problem=problem,
                value=text,
                skippable=True,
            )

    async def registered_source(self, forge_url: str, path: str) -> str | None:
        """Return the URL of the registered repository that is `acme/pay` on this forge."""
        from draftsman.forges.project import source_of

        for age in (CATALOG_AGE, 0):
            named = (await self._repos.catalog(age=age)).named(path.rpartition("/")[2])
            source = source_of(forge_url, path, [repo.remote_url for repo in named])
            if source is not None:
                return source
        return None

    def _is_replaced(self, request: Invocation) -> bool:
        """Return whether a handler of the configuration replaces the built-in type."""
        return request.type in self._settings.handlers

    def _check_local(self, request: Invocation) -> None:
        """Check paths and names on this machine, where the embedded database has all workers."""
        repo = request.repo
        if repo and repo.startswith("/") and not Path(repo).is_dir():
            raise _repo_error(repo, "not_found", "directory not found; use a path or a URL")
        if repo and repo.startswith("/") and request.type == AGENT_TYPE:
            _check_repository(repo)
        if request.agent and request.type == AGENT_TYPE:
            check_agent(request.agent, self._settings)
        check_configured(request, self._settings)

    async def check_type(self, type: str) -> None:
        """Reject a type without a handler in the configuration or on a live worker."""
        for unknown in await self.unknown_types([type]):
            raise RejectedField(
                f"unknown job type {type!r}: {unknown.problem}",
                field="type",
                rule="unknown",
                problem=unknown.problem,
                value=type,
                known=unknown.known,
                skippable=True,
            )

    async def type_warnings(self, types: Collection[str]) -> dict[str, str]:
        """Return what to say of each of the types that no handler is known for."""
        return {unknown.type: unknown.warning for unknown in await self.unknown_types(types)}

    async def unknown_types(self, types: Collection[str]) -> list[UnknownType]:
        """Return those of the types that have no handler in the configuration or on a worker."""
        settings = self._settings
        known = {AGENT_TYPE, *job_payloads.MODELS, *settings.handlers, *settings.types}
        if known.issuperset(types):
            return []
        workers = await live_workers(self._db, settings.worker.lease)
        known |= {name for worker in workers for name in worker.types}
        if known.issuperset(types):
            return []
        apps = {
            name: type.app
            for type in await self._published.all()
            for name in (type.name, *type.aliases)
        }
        names = tuple(sorted(known | apps.keys()))
        return [
            UnknownType(
                type=type,
                known=names,
                has_workers=bool(workers),
                app=apps.get(type),
            )
            for type in types
            if type not in known
        ]

    async def live_types(self) -> set[str]:
        """Return the types that live workers handle; empty when no worker is live."""
        workers = await live_workers(self._db, self._settings.worker.lease)
        return {name for worker in workers for name in worker.types}

    async def _require_repos(self) -> None:
        """Reject an agent's request without a repository if none is known."""
        catalog = await self._repos.catalog()
        if not catalog.repos and not (await self._repos.catalog(age=0)).repos:
            raise RejectedField(
                "no repositories yet; use a path or URL", field="repo", rule="no_repos"
            )

    async def _resolve_repo(self, request: Invocation) -> Invocation:
        location = None
        if request.repo and not is_repo_url(request.repo):
            location = await self._find_repo(request.repo)
            resolution = RepoResolution(path=location.path)
            fields = {"repo": location.repo.remote_url, "resolution": resolution}
            request = request.model_copy(update=fields)
        if request.agent or request.type != AGENT_TYPE:
            return request
        return request.model_copy(update={"agent": await self.agent(request, location)})

    async def agent(self, request: Invocation, location: RepoLocation | None = None) -> str | None:
        """Return the agent of a request that names none: that of its repository, else the default.

        `location` is its repository, if it is known by name. None: the run will find the
        repository, by an answer. Raises RejectedField if the agent has to be named.
        """
        if location is None and request.repo:
            repo = await self._repos.known(request.repo)
            location = RepoLocation(repo) if repo else None
        elif location is None:
            text = "\n".join(filter(None, (request.title, request.text)))
            resolved = await self._repos.resolve(labels=request.labels, text=text)
            if isinstance(resolved, AmbiguousRepo):
                agent = default_agent(self._settings)
                return None if resolved.choices else agent
            location = RepoLocation(resolved.repo, resolved.path)
        saved = await self._repos.profile(location) if location else None
        return (saved and saved.profile.agent) or default_agent(self._settings)

    async def _find_repo(self, repo: str) -> RepoLocation:
        try:
            return await self._repos.place(repo)
        except NotFound as error:
            known = error.known if isinstance(error, UnknownRepo) else None
            problem = "no directory or repository with this name"
            raise RejectedField(
                f"repo {repo}: {problem}",
                field="repo",
                rule="unknown",
                problem=problem,
                value=repo,
                known=known,
                hint=error.hint,
            ) from None


def absolute_repo(repo: str) -> str:
    """Make a path absolute, and that of the repository's top; a URL or a name stays as it is."""
    if len(repo) > MAX_URL_LENGTH:
        shown = truncate(repo, MAX_SHOWN)
        raise _repo_error(shown, "too_long", f"must have at most {MAX_URL_LENGTH} characters")
    if is_repo_url(repo) and not repo.startswith(("/", "~", ".")) and not Path(repo).exists():
        return repo
    path = Path(repo).expanduser()
    if path.is_dir():
        path = path.resolve()
        path = repository_top(path) or path
    if not path.is_absolute() and repo.startswith("."):
        raise _repo_error(repo, "not_found", "directory not found; use a path, a URL or a name")
    return str(path)


def _check_repository(repo: str) -> None:
    """Reject a folder that is in no repository, before its job fails."""
    if repository_top(Path(repo)) is None:
        text = "not in a git repository; use a folder of one, or a URL"
        raise _repo_error(repo, "not_a_repository", text)


def _repo_error(repo: str, rule: str, problem: str) -> RejectedField:
    return RejectedField(
        f"repo {repo}: {problem}", field="repo", rule=rule, problem=problem, value=repo
    )
