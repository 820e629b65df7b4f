"""The `init` command: a configuration from a few questions, checked, and the first job."""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from draftsman.basic_settings import config_path, read_url, user_config_path
from draftsman.errors import ConfigError, DraftsmanError, Refused, UsageError
from draftsman.formats.near_names import did_you_mean
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.processes.process_setup import child
from draftsman_tui.cli.setup.init_answers import (
    ROLES,
    Answers,
    NewPerson,
    as_file,
    asked_channels,
    has_password,
)

NOTHING: Final = "-"
"""The answer that skips a step."""
OTHERS_ROLES: Final = "invoker, responder"
"""The roles of a person who is added, by default: neither approves work nor operates draftsman."""
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]")
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks questions on the terminal, or takes the default of each."""

    app: App
    asks: bool

    def text(self, question: str, default: str, check: Callable[[str], str] = str) -> str | None:
        """Return an answer that passes a check; None if the step is skipped."""
        if not self.asks:
            return None if default == NOTHING else check(default)
        while True:
            answer = prompts.prompt(question, default=default).strip()
            if answer == NOTHING:
                return None
            try:
                return check(answer)
            except (ValueError, DraftsmanError) as error:
                self.app.out.info(str(error))

    def yes(self, question: str, *, default: bool) -> bool:
        """Return whether the answer is yes."""
        return prompts.is_confirmed(question, default=default) if self.asks else default


@command(
    "init",
    section="Setup",
    examples=(
        "draftsman init",
        "draftsman init --yes",
        "draftsman --config team.toml init",
    ),
)
@click.option("-y", "--yes", is_flag=True, help="Take the default of each question.")
async def init(app: App, yes: bool) -> None:
    """Ask for a configuration, check it, and submit the first job.

    Asks for the database, the agents that are installed, chats, people and a repository;
    `-` skips a step. Secrets stay where they are: the file gets the names of their variables or
    files. It is the configuration of this user, ~/.config/draftsman/draftsman.toml, or that of
    --config; an existing file is overwritten only after a question.
    """
    if app.json:
        raise UsageError("init has no --json; to read the configuration: draftsman config --json")
    if not yes and not app.out.interactive:
        raise UsageError("init asks questions; in a script use --yes, which takes the defaults")
    asker = Asker(app, not yes)
    path = config_path(app.config) or user_config_path()
    if path.exists():
        if yes:
            raise Refused(f"{path} exists; move it away, or name a new file: --config FILE")
        prompts.confirm(f"{path} exists. Overwrite it?")
    elif not yes:
        app.out.info(f"the answers are written to {path}")
    answers = collect(asker, await ask_database(asker))
    if not yes:
        app.out.print("", as_file(answers))
        prompts.confirm(f"Write this to {path}?", default=True)
    write(path, answers)
    app.out.print(f"wrote {path}")
    if answers.database_url is not None and has_password(answers.database_url):
        os.environ["DRAFTSMAN_DATABASE_URL"] = answers.database_url  # of the checks
        app.out.info("the URL of the database has a password: export DRAFTSMAN_DATABASE_URL=…")
    for name, sources in answers.channels.items():
        for source in sources.values():
            if (variable := source.get("env")) and not os.environ.get(variable):
                app.out.info(f"[{name}] needs the variable {variable}: export {variable}=…")
    repo = await _add_repository(app, asker)
    app.out.print("", "checks (draftsman doctor):")
    healthy = await _run(app, "doctor") == 0
    _print_next(app, repo, healthy=healthy)
    if healthy and repo and asker.yes(f"Submit a first job, that tidies {repo}?", default=False):
        await _run(app, "submit", "--agent", "tidy", "--repo", repo, "Tidy up")


async def ask_database(asker: Asker) -> str | None:
    """Return the URL of a database that can be reached, None for the embedded server.

    Without questions it is that of the variables, which is checked, too: raises DraftsmanError.
    """
    from draftsman.database import migrate

    if not asker.asks:
        if url := os.environ.get("DRAFTSMAN_DATABASE_URL") or os.environ.get("DATABASE_URL"):
            await migrate.reach(read_url(url))
        return None
    while True:
        url = asker.text(
            f"PostgreSQL URL ({NOTHING}: an embedded server is started for you)", NOTHING, read_url
        )
        if url is None:
            return None
        try:
            await migrate.reach(url)
        except DraftsmanError as error:
            asker.app.out.info(str(error))
        else:
            return url


def collect(asker: Asker, url: str | None) -> Answers:
    """Ask for everything else that the file has."""
    answers = Answers(database_url=url)
    installed = installed_agents()
    answers.agents = tuple(
        name for name in installed if asker.yes(f"{name} is installed. Use it?", default=True)
    )
    if answers.agents:
        known = (*answers.agents, "tidy")
        question = f"Default agent ({', '.join(known)})"
        check = _one_of(known)
        answers.default_agent = asker.text(question, answers.agents[0], check)
    for name, (channel, questions) in asked_channels().items():
        secrets = questions.secrets
        is_set = all(os.environ.get(variable) for variable in secrets.values())
        if asker.yes(f"Use {channel.label}?", default=is_set):
            found = {
                key: _source(asker, channel.table, key, variable)
                for key, variable in secrets.items()
            }
            sources = {key: source for key, source in found.items() if source is not None}
            if len(sources) == len(secrets):
                answers.channels[name] = sources
    _collect_people(asker, answers)
    return answers


def installed_agents() -> tuple[str, ...]:
    """Return the known coding agents whose program is on the PATH."""
    from draftsman.settings.agents import demo_calls, known_table

    commands = {name: known_table(name).get("command", (name,)) for name in demo_calls()}
    return tuple(name for name, command in commands.items() if shutil.which(command[0]))


def _source(asker: Asker, table: str, key: str, default: str) -> dict[str, str] | None:
    question = f"[{table}] {key}: name of its variable, or path of its file"
    name = asker.text(question, default, secret_place)
    if name is None:
        return None
    return {"file" if "/" in name else "env": name}


def secret_place(text: str) -> str:
    """Return the name of a variable or an absolute path; raises ValueError for a secret itself."""
    if text.startswith(("/", "~/")):
        return str(Path(text).expanduser())
    if not VARIABLE.fullmatch(text) or len(text) > 64 or _is_secret(text):
        raise ValueError("the file gets no secret: give the name of a variable, or a path with /")
    return text


def _is_secret(text: str) -> bool:
    """Return whether a text that could be a name looks like a value: no capitals, and digits."""
    return len(text) >= 24 and any(char.isdigit() for char in text) and not text.isupper()


def _one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in names:
            raise ValueError(f"{text!r} is none of them; choose: {', '.join(names)}")
        return text

    return check


def _collect_people(asker: Asker, answers: Answers) -> None:
    """Ask for yourself, and then for others until a name is skipped."""
    me = getpass.getuser()
    known = asked_channels()

    def new_name(text: str) -> str:
        if text in {person.name for person in answers.people}:
            raise ValueError(f"{text} is there already; give another name")
        return person_name(text)

    own_name = _NOT_IN_NAMES.sub("", me).lstrip("._-") or NOTHING
    name = asker.text(f"Your name in draftsman ({NOTHING}: no people)", own_name, new_name)
    while name is not None:
        accounts = {} if answers.people else {"login": me}
        for channel in answers.channels:
            _, questions = known[channel]
            question = f"{name}: {questions.account}, {NOTHING} for none"
            check = _matching(questions.account_form)
            if (account := asker.text(question, NOTHING, check)) is not None:
                accounts[channel] = account
        roles: tuple[str, ...] = ROLES
        if answers.people:
            text = asker.text(
                f"{name}: roles, of {', '.join(ROLES)}; {NOTHING} for none",
                OTHERS_ROLES,
                role_names,
            )
            roles = () if text is None else tuple(text.split(", "))
        answers.people.append(NewPerson(name, accounts, roles))
        if not asker.asks:
            return
        name = asker.text(f"Another person ({NOTHING}: no more)", NOTHING, new_name)


def person_name(text: str) -> str:
    """Return the name of a person; raises ValueError."""
    if _NOT_IN_NAMES.search(text) or not text[:1].isalnum():
        raise ValueError(
            f"{text!r} is no name: it has letters, digits, '.', '_' and '-', and begins with a"
            " letter or digit"
        )
    return text


def role_names(text: str) -> str:
    """Return roles in their order, separated by commas; raises ValueError."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in ROLES:
            near = did_you_mean(name, ROLES) or f"; roles: {', '.join(ROLES)}"
            raise ValueError(f"{name!r} is no role{near}")
    return ", ".join(role for role in ROLES if role in names)


def _matching(form: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not re.fullmatch(form, text):
            raise ValueError(f"{text!r} is not such an id; it has the form {form}")
        return text

    return check


def write(path: Path, answers: Answers) -> None:
    """Write the configuration, readable by this user; raises ConfigError, also if it is invalid."""
    from draftsman.settings import settings_model

    text = as_file(answers)
    try:
        settings_model().model_validate(tomllib.loads(text))
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.new")
        new.write_text(text, "utf-8")
        new.chmod(0o600)
        new.replace(path)
    except ValueError as error:
        raise ConfigError(f"these answers make no configuration: {error}") from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; use --config FILE") from None


async def _add_repository(app: App, asker: Asker) -> str | None:
    """Register the repository of the current folder, or another; return its path or URL."""
    default = default_repository(app)
    place = asker.text(f"A repository to work on: path or URL ({NOTHING}: later)", default)
    if place is None or await _run(app, "repos", "add", place, "--yes") != 0:
        return None
    return place


def default_repository(app: App) -> str:
    """Return the current folder if it is a repository with a commit, else the skipped step."""
    here = Path.cwd()
    if not (here / ".git").exists():
        return NOTHING
    has_commit = ("git", "-C", str(here), "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    if subprocess.run(has_commit, capture_output=True, check=False).returncode == 0:
        return str(here)
    later = f"{_program(app)} repos add {shlex.quote(str(here))}"
    app.out.info(f"{here} has no commit yet, and was not added; after its first: {later}")
    return NOTHING


def _program(app: App) -> str:
    """Return the program with the configuration that was named."""
    return f"draftsman --config {shlex.quote(str(app.config))}" if app.config else "draftsman"


async def _run(app: App, *arguments: str) -> int:
    """Run a command on this terminal; return its exit code."""
    name, *others = arguments
    process = await asyncio.create_subprocess_exec(*child(app, name), *others)
    return await process.wait()


def _print_next(app: App, repo: str | None, *, healthy: bool) -> None:
    program = _program(app)
    lines = ["", "Next steps:"]
    if not healthy:
        lines.append(f"  {program} doctor             again, when the failed checks are mended")
    if repo is None:
        lines.append(f"  {program} repos add PATH     a repository")
    lines.append(f"  {program} up                 a worker, the dashboard and the bots")
    target = shlex.quote(repo) if repo else "NAME"
    lines.append(f"  {program} submit --agent tidy --repo {target} 'Tidy up'    the first job")
    app.out.print("\n".join(lines))
