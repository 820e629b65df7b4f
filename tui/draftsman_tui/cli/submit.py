"""`submit`: a request becomes a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.domain import payload
from draftsman.domain.address import is_address
from draftsman.domain.invocation import Invocation, Resolution
from draftsman.domain.repo import Place
from draftsman.errors import NotFound, UsageError
from draftsman_tui.cli import params, waiting
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.output import line, words

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.services.intake import Submitted
    from draftsman.settings import Settings

CHUNK: Final = 1000
"""Requests of a batch that go in one statement."""
_AGENT_TYPE: Final = "run_agent"


@command(
    "submit",
    examples=(
        "draftsman submit --agent tidy --repo . 'Tidy up the tests'",
        "draftsman submit --type report:weekly --payload @week.json --key week-31",
        "draftsman submit --notify log --notify webhook:ops 'Tidy up'",
        """draftsman submit --type http_request --payload '{"url": "https://example.org/"}'""",
        "draftsman submit --type report:weekly --max-retries 0 --on-lost fail --run-timeout 10m",
        "draftsman submit --batch requests.jsonl",
    ),
)
@click.argument("text", nargs=-1, type=params.TEXT)
@click.option("--type", default=_AGENT_TYPE, show_default=True, help="Which handler runs it.")
@click.option("--agent", help="Which agent of the configuration.")
@click.option("--repo", type=params.TEXT, help="Path, URL or known name of a repository.")
@click.option("--ref", type=params.TEXT, help="Branch, tag or commit to start from.")
@click.option("--mode", help="fix, or investigate: looks and changes nothing.")
@click.option("--title", type=params.TEXT, help="Default: the first line of the text.")
@click.option("--key", type=params.TEXT, help="Idempotency key: the same makes no second job.")
@click.option("--subject", type=params.TEXT, help="What it is about; a live job of it is joined.")
@click.option("--queue", type=params.TEXT, help="Default: default.")
@click.option("--priority", type=int, help="Higher runs first; -1000 to 1000.")
@click.option("--at", type=params.INSTANT, help="Not before this time: 2030-12-31T18:00.")
@click.option("--in", "delay", type=params.DURATION, help="Not before this has passed: 10m.")
@click.option("--payload", type=params.JSON, help="JSON object, @file, or @- for stdin.")
@click.option("--override", type=params.PAIR, multiple=True, help="key=value; repeatable.")
@click.option("--skill", type=params.TEXT, multiple=True, help="A skill it asks for; repeatable.")
@click.option("--tag", type=params.TEXT, multiple=True, help="Repeatable.")
@click.option(
    "--notify",
    type=params.TEXT,
    multiple=True,
    metavar="TARGET",
    help="Who is told: log, webhook:NAME, slack:CHANNEL, trello:CARD, or none; repeatable.",
)
@click.option("--max-attempts", type=int, help="Lost runs and failures of machines it survives.")
@click.option("--max-retries", type=int, help="Failures of the work it survives.")
@click.option("--run-timeout", type=params.DURATION, help="Running time in all: 10m, 2h.")
@click.option("--on-lost", help="When its worker dies: retry, resume, fail or new_job.")
@click.option("--batch", metavar="FILE", help="One JSON object a line; - is stdin.")
@click.option("--wait", is_flag=True, help="Show what happens until it ends.")
@click.option("--timeout", type=params.DURATION, help="With --wait: give up after this.")
async def submit(
    app: App,
    text: tuple[str, ...],
    batch: str | None,
    wait: bool,
    timeout: float | None,
    **options: Any,
) -> None:
    """Make a job of a request.

    TEXT is what is asked, in as many words as it takes; - reads it from stdin. With --batch each
    line holds the fields of one request (type, key, agent, repo, title, text, payload, …); what
    is given as options counts for every line that does not say otherwise.

    With --wait it exits with 0 when the job completed, with 1 when it ended otherwise, and with 5
    when nobody answered its question within --timeout.
    """
    if timeout is not None and not wait:
        raise UsageError("--timeout goes with --wait")
    if options["at"] is not None and options["delay"] is not None:
        raise UsageError("give --at or --in, not both")
    fields = _fields(text, options)
    if batch is not None:
        await _submit_batch(app, batch, text, wait, fields)
        return
    if "text" not in fields and fields["type"] == _AGENT_TYPE and "title" not in fields:
        raise UsageError("say what is to be done: draftsman submit 'Tidy up', or see --help")
    request = _invocation(fields, app.settings)
    async with app.runtime() as rt:
        request = await _settled(request, rt)
        _on_this_machine(request, rt)
        made = await rt.intake.submit(request, await rt.actor())
        if not wait:
            await _print(app, rt, made)
            return
        app.out.say(f"{made.name} {made.how}")
        await waiting.narrate(app, rt, made.number, timeout)
        await waiting.conclude(app, rt, made.number, timeout, how=made.how)


async def _submit_batch(
    app: App, file: str, text: tuple[str, ...], wait: bool, fields: dict[str, Any]
) -> None:
    if text or wait or "key" in fields:
        raise UsageError("--batch takes no TEXT, --key or --wait: each line is its own request")
    lines = list(_lines(params.read_text(Path(file)), file, fields, app.settings))
    if not lines:
        raise UsageError(f"{file}: no request in it; write one JSON object a line")
    made: list[Submitted] = []
    async with app.runtime() as rt:
        requests = [await _settled_line(*one, rt) for one in lines]
        for request in requests:
            _on_this_machine(request, rt)
        actor = await rt.actor()
        try:
            for start in range(0, len(requests), CHUNK):
                some = await rt.intake.submit_many(requests[start : start + CHUNK], actor)
                made += some
                if not app.json:
                    app.out.write("".join(f"{one.name} {one.how}\n" for one in some))
        finally:  # what was made before a conflict is told too
            if app.json:
                app.out.document(made)


def _fields(text: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the invocation that the command line gives."""
    said = params.from_stdin() if text == ("-",) else " ".join(text)
    overrides = dict(options.pop("override"))
    if (most := options.pop("run_timeout")) is not None:
        overrides["timeout"] = most
    renamed = {
        "text": said,
        "subject_key": options.pop("subject"),
        "run_at": options.pop("at"),
        "skills": options.pop("skill"),
        "tags": options.pop("tag"),
        "overrides": overrides,
    }
    return {
        name: value
        for name, value in (options | renamed).items()
        if value not in (None, "", (), {})
    }


def _lines(
    text: str, file: str, fields: dict[str, Any], settings: Settings
) -> Iterator[tuple[str, Invocation]]:
    for place, one in enumerate(text.splitlines(), 1):
        if not one.strip():
            continue
        origin = f"{'stdin' if file == '-' else file}:{place}"
        given = params.json_object(one, origin)
        if unknown := sorted(given.keys() - Invocation.model_fields.keys()):
            allowed = ", ".join(Invocation.model_fields)
            raise UsageError(f"{origin}: unknown field {unknown[0]!r}; allowed: {allowed}")
        try:
            yield origin, _invocation(fields | given, settings)
        except UsageError as error:
            raise UsageError(f"{origin}: {error}") from None


def _invocation(fields: dict[str, Any], settings: Settings) -> Invocation:
    """Return the request, its agent chosen and its repository found; raises UsageError."""
    from draftsman.services.intake import invocation

    fields = dict(fields)
    if fields.get("type", _AGENT_TYPE) == _AGENT_TYPE and not fields.get("agent"):
        if len(settings.agents) == 1:
            fields["agent"] = next(iter(settings.agents))
        elif not fields.get("repo"):
            raise _which_agent(settings)
    if isinstance(repo := fields.get("repo"), str):
        fields["repo"] = _place(repo)
    made = invocation(**fields)
    if made.type in payload.MODELS and made.type not in settings.handlers:
        payload.parse(made.type, made.payload)
    return made


def _place(repo: str) -> str:
    """Return a URL or a name as it is, and a path made absolute."""
    if is_address(repo) and not repo.startswith(("/", "~", ".")) and not Path(repo).exists():
        return repo
    path = Path(repo).expanduser()
    found = path.resolve() if path.is_dir() else path
    if not found.is_absolute() and repo.startswith("."):
        raise UsageError(f"--repo {repo}: no such directory here; give a path, a URL or a name")
    return str(found)


async def _settled(request: Invocation, rt: Runtime) -> Invocation:
    """Return the request with the repository that it names, and its agent, which that may have."""
    place = None
    if request.repo and not is_address(request.repo):
        place = await _named(request.repo, rt)
        how = Resolution(path=place.path)
        found = {"repo": place.repo.remote_url, "resolution": how}
        request = request.model_copy(update=found)
    if request.agent or request.type != _AGENT_TYPE:
        return request
    if place is None and request.repo:
        repo = await rt.repos.known(request.repo)
        place = Place(repo) if repo else None
    saved = await rt.repos.profile(place) if place else None
    if saved is None or saved.profile.agent is None:
        raise _which_agent(rt.settings)
    return request.model_copy(update={"agent": saved.profile.agent})


async def _settled_line(origin: str, request: Invocation, rt: Runtime) -> Invocation:
    try:
        return await _settled(request, rt)
    except UsageError as error:
        raise UsageError(f"{origin}: {error}") from None


async def _named(repo: str, rt: Runtime) -> Place:
    try:
        return await rt.repos.place(repo)
    except NotFound as error:
        said = str(error).partition("; ")[2]
        text = f"--repo {repo}: no such directory here, nor a repository of that name; {said}"
        raise UsageError(text) from None


def _which_agent(settings: Settings) -> UsageError:
    return UsageError(f"which agent? give --agent: {', '.join(sorted(settings.agents))}")


def _on_this_machine(request: Invocation, rt: Runtime) -> None:
    """Refuse what no worker can have: the embedded database serves this machine alone."""
    if not rt.embedded:
        return
    repo, agents = request.repo, rt.settings.agents
    if repo and repo.startswith("/") and not Path(repo).is_dir():
        raise UsageError(f"--repo {repo}: no such directory here; give a path or a URL")
    if request.agent and request.type == _AGENT_TYPE and request.agent not in agents:
        known = ", ".join(sorted(agents))
        raise UsageError(f"there is no agent {request.agent!r}; choose: {known}")
    _is_configured(request, rt.settings)


def _is_configured(request: Invocation, settings: Settings) -> None:
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
        raise UsageError(f"there is no {key} {wanted!r}; configured are: {names}")


async def _print(app: App, rt: Runtime, made: Submitted) -> None:
    if app.json:
        app.out.document(made)
        return
    why = {"joined": ": a live job has the same subject"}.get(made.how, "")
    app.out.print(line(words(made.name, "bold"), f" {made.how}{why}"))
    if app.out.on_screen:
        found = await rt.inspect.why(made.number)
        if found.reason == "no_worker":
            app.out.say("no worker is running; start one: draftsman up")
        else:
            app.out.say(f"follow it: draftsman events -f {made.name}")
