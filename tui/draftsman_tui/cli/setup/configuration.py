"""The `config` and `completion` commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.errors import NotFound
from draftsman_tui.cli.app import App, command

if TYPE_CHECKING:
    from draftsman.settings import Settings

PLAIN_OPTIONS: Final = ("--auth-type",)
"""Options whose names look like those of secrets."""
_SECRET: Final = re.compile(
    r"(?:^|[-_])(?:\w*token|\w*secret|\w*passw(?:or)?d|pass(?:phrase)?|pwd|\w*key|\w*auth"
    r"|credentials?|cookie|dsn|jwt)(?:$|[-_])",
    re.IGNORECASE,
)
"""Variable and option names whose values are secrets."""


@command("config", section="Setup", examples=("draftsman config", "draftsman config --path"))
@click.option("--path", is_flag=True, help="Print the path of the configuration file.")
def config(app: App, path: bool) -> None:
    """Print the effective configuration, without secrets.

    The output is valid TOML for draftsman.toml. Settings without a value are comments.
    """
    if path:
        _print_path(app)
        return
    data = without_secrets(app.settings)
    if app.json:
        app.out.document(data)
    else:
        app.out.write("".join(f"{text}\n" for text in as_toml(data)))


@command(
    "completion",
    section="Setup",
    examples=(
        "draftsman completion bash > ~/.local/share/bash-completion/completions/draftsman",
        "draftsman completion fish > ~/.config/fish/completions/draftsman.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, app: App, shell: str) -> None:
    """Print a shell completion script."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell  # noqa: S101 - the choices are click's own
    script = kind(ctx.find_root().command, {}, "draftsman", "_DRAFTSMAN_COMPLETE").source()
    if app.json:
        app.out.document({"shell": shell, "script": script})
    else:
        app.out.write(script)


def without_secrets(settings: Settings) -> dict[str, Any]:
    """Return the settings as JSON data, with `***` for passwords, tokens and other secrets."""
    from draftsman.formats.secret_formats import HIDDEN
    from draftsman.log import redact

    data = settings.model_dump(mode="json")
    for name in ("database_url", "listen_url"):
        secret = getattr(settings, name)
        data[name] = redact(secret.get_secret_value()) if secret is not None else None
    for program in (*data["agents"].values(), *data["tools"].values()):
        program["env"] = {
            key: HIDDEN if _SECRET.search(key) else redact(value)
            for key, value in program["env"].items()
        }
        program["command"] = mask_command(program["command"])
    if data["questions"]["expires_in"] is None:
        data["questions"]["expires_in"] = 0
    return data


def mask_command(command: list[str]) -> list[str]:
    """Return a command with `***` for the values of options such as `--token`."""
    from draftsman.formats.secret_formats import HIDDEN
    from draftsman.log import redact

    masked = []
    for previous, part in zip(["", *command], command, strict=False):
        flag, equals, _ = part.partition("=")
        if previous in PLAIN_OPTIONS:
            masked.append(part)
        elif previous.startswith("-") and "=" not in previous and _SECRET.search(previous):
            masked.append(HIDDEN)
        elif equals and _SECRET.search(flag):
            masked.append(f"{flag}={HIDDEN}")
        else:
            masked.append(redact(part))
    return masked


def as_toml(data: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Render the data as lines of TOML with dotted keys."""
    for name, value in data.items():
        key = prefix + _key(name)
        if isinstance(value, dict) and value:
            lines = list(as_toml(value, f"{key}."))
            if all(line.startswith("#") for line in lines):
                yield f"{key} = {{}}"  # an empty table still declares a name
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
    # JSON strings, numbers and booleans are valid TOML, except for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _print_path(app: App) -> None:
    from draftsman.basic_settings import config_path

    path: Path | None = config_path(app.config)
    if app.json:
        app.out.document({"path": None if path is None else str(path)})
    elif path is None:
        raise NotFound("no configuration file; to see the defaults: draftsman config")
    else:
        app.out.write(f"{path}\n")
