"""The coding agent and the configuration of a demo."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import Failure, SchemaOutdated, UsageError
from draftsman.text import text_digest
from draftsman_tui.cli.demo.scripted_model import ScriptedModel, Turn, scripted_model
from draftsman_tui.terminal.extras import source_folder

if TYPE_CHECKING:
    from draftsman.settings import Settings

REQUEST: Final = "Remove the unused import of inventory/report.py"
COMMAND: Final = "sed -i '/^import textwrap$/d' inventory/report.py"
SUMMARY: Final = "Removed the unused import of textwrap from inventory/report.py."
UNCHANGED: Final = "The change was denied. The files are as they were."
DENIED: Final = "denied by "
"""Part of the decision that an agent gets, in the result of its call or in a later prompt."""
EDIT: Final = """inventory/report.py
```python
<<<<<<< SEARCH
import textwrap
=======
>>>>>>> REPLACE
```
"""
"""The edit in the text of an agent that has no tools."""
AGAIN: Final = "Make exactly this call"
"""Part of the prompts by which an adapter asks for a call again."""
DECISION: Final = 3
"""The last messages of a conversation, of which one has the decision."""
MODEL: Final = "scripted"
GATEWAY: Final = "demo"


class DemoModel(ScriptedModel):
    """A model that makes its call again when the adapter asks for it, as after a kill."""

    def turn(self, results: int, conversation: list[dict[str, Any]]) -> Turn:
        """Return the call if the last message asks for it, else the turn of the script."""
        if AGAIN in json.dumps(conversation[-1]):
            return self.script[0]
        if DENIED in json.dumps(conversation[-DECISION:]):
            return {"text": UNCHANGED}
        return super().turn(results, conversation)


def find_agent(settings: Settings) -> str:
    """Return the first coding agent whose program is installed; raises UsageError."""
    from draftsman.settings.agents import demo_calls

    calls = demo_calls()
    for name in calls:
        if _problem(settings, name) is None:
            return name
    names = ", ".join(calls)
    raise UsageError(f"no coding agent is installed here; install one of them: {names}")


@contextmanager
def demo_agent(settings: Settings, name: str) -> Iterator[dict[str, str]]:
    """Yield the environment of the worker of a demo with this agent.

    A scripted model serves an agent without a gateway. Raises UsageError for an agent that is not
    installed, or has neither.
    """
    if (problem := _problem(settings, name)) is not None:
        raise UsageError(f"the agent {name} cannot run here: {problem}")
    from draftsman.settings.agents import demo_calls

    configured = settings.agents.get(name)
    if configured is not None and configured.gateway is not None:
        yield {}
        return
    calls = demo_calls()
    if name not in calls:
        names = ", ".join(calls)
        raise UsageError(
            f"there is no scripted model for the agent {name}, only for {names};"
            f" set [agents.{name}] gateway to use a model"
        )
    agent = _agent(settings, name)
    call = calls[name]
    turn: Turn = {"tool": call.tool, "args": filled(call.arguments)}
    script = [{"text": f"{SUMMARY}\n\n{EDIT}"}] if call.tool is None else [turn, {"text": SUMMARY}]
    with scripted_model(script, DemoModel) as model:
        base = model.url if call.provider == "openai" else model.url.removesuffix("/v1")
        gateway = {"provider": call.provider, "base_url": base}
        table: dict[str, Any] = {
            "command": [*agent.command, *filled(call.command)],
            "env": {**agent.env, **filled(call.env)},
            "gateway": GATEWAY,
            "network": False,
        }
        price = {"input": 0, "output": 0, "date": "2026-01-01", "source": "a scripted model"}
        yield {
            "DRAFTSMAN_AGENTS": json.dumps({name: table}),
            "DRAFTSMAN_GATEWAYS": json.dumps({GATEWAY: gateway}),
            "DRAFTSMAN_PRICES": json.dumps({"*": price}),
        }


def filled(value: Any) -> Any:
    """Return a part of a call with the command of the demo and the name of its model."""
    match value:
        case str():
            return value.replace("{command}", COMMAND).replace("{model}", MODEL)
        case Mapping():
            return {key: filled(item) for key, item in value.items()}
        case tuple():
            return tuple(map(filled, value))
    return value


def _agent(settings: Settings, name: str) -> Any:
    """Return the settings of an agent of the configuration, or those that draftsman knows."""
    from draftsman.settings.agents import AgentSettings, with_known_agents

    if name in settings.agents:
        return settings.agents[name]
    return AgentSettings.of(with_known_agents({name: {}})[name])


def _problem(settings: Settings, name: str) -> str | None:
    """Return why a run could not start the agent; None if it could."""
    from draftsman.sandbox import mode_detection
    from draftsman.sandbox.processes.agent_check import check_agent
    from draftsman.settings.agents import demo_calls

    if name not in settings.agents and name not in demo_calls():
        return f"it is not configured; add [agents.{name}] to the configuration"
    try:
        mode = mode_detection.choose_mode(settings.sandbox)
    except Failure as error:
        return str(error)
    check = check_agent(name, _agent(settings, name), mode)
    return check.problem and "; ".join(filter(None, (check.problem, check.hint)))


def _own_folder(chat: str | None) -> Path:
    """Return the folder of the demo's data, in `DRAFTSMAN_DATA_DIR` or for this checkout.

    Each chat has its own: the bot of another would take its jobs and messages.
    """
    from draftsman.basic_settings import default_data_dir, expand_user

    demo = "demo" if chat is None else f"demo-{chat}"
    if chosen := os.environ.get("DRAFTSMAN_DATA_DIR"):
        return Path(expand_user(chosen)).absolute() / demo
    folder = default_data_dir()
    source = source_folder()
    checkout = "" if source is None else f"-{text_digest(str(source))[:8]}"
    return folder.with_name(f"{folder.name}-{demo}{checkout}")


def own_configuration(chat: str | None) -> Path:
    """Return a configuration with data of its own, and remove variables of the user's."""
    folder = _own_folder(chat)
    for name in [name for name in os.environ if name.startswith("DRAFTSMAN_")]:
        del os.environ[name]
    os.environ.pop("DATABASE_URL", None)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        config = folder / "draftsman.toml"
        config.write_text(f"data_dir = {json.dumps(str(folder))}\n", "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}; use --config FILE") from None
    return config


def unusable_database(config: Path, error: SchemaOutdated) -> SchemaOutdated:
    """Return the error about the demo's own database, with its folder and the deletion."""
    from draftsman.database.embedded.layout import locate

    cluster = locate(config.parent).cluster
    folder = config.parent
    folders = [folder] if cluster.is_relative_to(folder) else [cluster, folder]
    stop = shlex.join(["draftsman", "--config", str(config), "db", "stop"])
    return SchemaOutdated(
        f"the demo's database in {cluster} is of another version of draftsman ({error}); it has"
        f" only earlier demos; to delete it: {stop}; rm -r {shlex.join(map(str, folders))}"
    )
