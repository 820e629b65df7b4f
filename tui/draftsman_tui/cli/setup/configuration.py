"""`config` and `completion`: what is set, and a shell that helps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.errors import NotFound
from draftsman_tui.cli.app import App, command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from draftsman.settings import Settings

_SECRET: Final = re.compile(
    r"(?:^|[-_])(?:\w*token|\w*secret|\w*passw(?:or)?d|pass(?:phrase)?|pwd|\w*key|\w*auth"
    r"|credentials?|cookie|dsn|jwt)(?:$|[-_])",
    re.IGNORECASE,
)
"""Names of variables and options whose values are not shown."""


@command("config", examples=("draftsman config", "draftsman config --path"))
@click.option("--path", is_flag=True, help="Print which file is read.")
def config(app: App, path: bool) -> None:
    """Print the configuration in effect, without secrets.

    It is TOML that a draftsman.toml may hold; what is unset is a comment.
    """
    if path:
        _print_path(app)
        return
    data = without_secrets(app.settings)
    if app.json:
        app.out.document(data)
    else:
        app.out.write("".join(f"{one}\n" for one in as_toml(data)))


@command(
    "completion",
    examples=(
        "draftsman completion bash > ~/.local/share/bash-completion/completions/draftsman",
        "draftsman completion fish > ~/.config/fish/completions/draftsman.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, app: App, shell: str) -> None:
    """Print a completion script for your shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell  # noqa: S101 - the choices are click's own
    script = kind(ctx.find_root().command, {}, "draftsman", "_DRAFTSMAN_COMPLETE").source()
    if app.json:
        app.out.document({"shell": shell, "script": script})
    else:
        app.out.write(script)


def without_secrets(settings: Settings) -> dict[str, Any]:
    """Return the settings as JSON data; passwords, tokens and the like are `***`."""
    from draftsman.log import HIDDEN, redact

    data = settings.model_dump(mode="json")
    for name in ("database_url", "listen_url"):
        secret = getattr(settings, name)
        data[name] = redact(secret.get_secret_value()) if secret is not None else None
    for program in (*data["agents"].values(), *data["tools"].values()):
        program["env"] = {
            key: HIDDEN if _SECRET.search(key) else redact(value)
            for key, value in program["env"].items()
        }
        program["command"] = _without_secrets(program["command"])
    if data["questions"]["expires_in"] is None:
        data["questions"]["expires_in"] = 0
    return data


def _without_secrets(command: list[str]) -> list[str]:
    """Return a command; what follows an option such as `--token` is hidden."""
    from draftsman.log import HIDDEN, redact

    shown = []
    for before, part in zip(["", *command], command, strict=False):
        flag, equals, _ = part.partition("=")
        if before.startswith("-") and "=" not in before and _SECRET.search(before):
            shown.append(HIDDEN)
        elif equals and _SECRET.search(flag):
            shown.append(f"{flag}={HIDDEN}")
        else:
            shown.append(redact(part))
    return shown


def as_toml(data: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the lines of a TOML file with dotted keys."""
    for name, value in data.items():
        key = prefix + _key(name)
        if isinstance(value, dict) and value:
            lines = list(as_toml(value, f"{key}."))
            if all(line.startswith("#") for line in lines):
                yield f"{key} = {{}}"  # that it is there says something: a type is known
            yield from lines
        elif value is None or value == {}:
            yield f"# {key} is {'unset' if value is None else 'empty'}"
        else:
            yield f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    # JSON's strings, numbers and booleans are TOML's too, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _print_path(app: App) -> None:
    from draftsman import settings

    found: Path | None = settings.config_path(app.config)
    if app.json:
        app.out.document({"path": None if found is None else str(found)})
    elif found is None:
        raise NotFound("no file is read, the defaults hold; see: draftsman config")
    else:
        app.out.write(f"{found}\n")
