"""Formats of secrets: every known one is found in diffs and hidden in logs, and code is none."""

from __future__ import annotations

import importlib.util
import random
import time
from pathlib import Path
from typing import Final

import pytest

from draftsman.formats.secret_formats import HIDDEN, hide_secrets, is_random, secret_kinds
from tests.attacks.catalog import attack
from tests.core.formats.secret_examples import TEMPLATES, example
from tests.support.cases import cases

LINES: Final = 20_000
MOST_FALSE: Final = LINES // 2000
LIBRARIES: Final = ("pydantic", "psycopg", "textual", "slack_sdk", "httpx", "click", "slack_bolt")
FRAMES: Final = ("{}", "x = '{}'", "see {} there", '{{"value": "{}"}}', "a:\\n{}\\n", "\x00{}")
"""Places of a secret in a line; most formats have no name before them that gives them away."""


def kinds(text: str) -> list[str]:
    return secret_kinds(text) + secret_kinds(text, certain=False)


@attack(
    "An agent or a repository has a secret of a format that no list of services had",
    surface="input",
    with_sandbox="150 formats and random values are found in diffs, and hidden elsewhere",
)
def test_every_known_format_is_found_and_hidden() -> None:
    assert len(TEMPLATES) >= 120
    missed = [text for text in map(example, TEMPLATES) if not kinds(text)]
    shown = [text for text in map(example, TEMPLATES) if hide_secrets(text) == text]
    assert (missed, shown) == ([], [])


def test_of_other_examples_of_the_formats_almost_all_are_found() -> None:
    """A random password may look like a word."""
    texts = [example(template, seed) for template in TEMPLATES for seed in range(1, 6)]
    missed = [text for text in texts if not kinds(text) or hide_secrets(text) == text]
    assert len(missed) * 100 <= len(texts), missed


@pytest.mark.parametrize("frame", FRAMES)
def test_a_secret_is_found_and_hidden_wherever_it_stands(frame: str) -> None:
    for template in TEMPLATES:
        secret = example(template)
        text = frame.format(secret)
        assert kinds(text), text
        assert secret not in hide_secrets(text), text


def test_ordinary_code_has_no_secrets() -> None:
    """Lines of installed libraries, chosen at random in the same way in each run."""
    code = [line for path in _sources() for line in path.read_text("utf-8").splitlines() if line]
    lines = random.Random(0).sample(code, LINES)
    found = [line for line in lines if secret_kinds(line)]
    assert len(found) < MOST_FALSE, found
    guessed = [line for line in lines if secret_kinds(line, certain=False)]
    assert len(guessed) < MOST_FALSE, guessed


def _sources() -> list[Path]:
    folders = []
    for name in LIBRARIES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        folders.append(Path(spec.origin).parent)
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


@cases(
    "text",
    [
        "password = get_password(user)",
        "token: str = settings.access_token",
        "secret_key = os.environ['SECRET_KEY']",
        "api_key=config.services.first.api_key",
        "access_token_url = '/oauth2/v2/token/refresh'",
        "TOKEN_PATTERN_VERSION_2 = compile_pattern_of_tokens",
        "key = 'draftsman_job_attachments_1'",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "postgresql://{user}:{password}@{host}/db",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    ],
)
def test_names_paths_and_placeholders_are_no_secrets(text: str) -> None:
    assert kinds(text) == []


@cases(
    ("text", "random"),
    [
        ("q7RkT2vXw9LmZ4sB8nYd", True),
        ("3f2a9c1e5b7d4f60a8e2c4b6", True),
        ("get_access_token_of_user", False),
        ("getAccessTokenForUserV2Alpha1", False),
        ("aaaaaaaabbbbbbbb11111111", False),
    ],
)
def test_a_name_is_not_random(text: str, random: bool) -> None:
    assert is_random(text) == random


def test_the_rest_of_a_line_stays() -> None:
    secret = example("npm_{A36}")
    assert hide_secrets(f"publish with {secret} failed") == f"publish with {HIDDEN} failed"
    hidden = hide_secrets(f"{secret} and {example('hf_{A34}')} and {secret}")
    assert hidden == f"{HIDDEN} and {HIDDEN} and {HIDDEN}"
    body = "\n".join(example("{b64}", seed) for seed in range(20))
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    assert not any(row in hide_secrets(key) for row in body.split("\n"))


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_text_of_beginnings_costs_no_more_than_its_length(template: str) -> None:
    piece = example(template)[:-2]
    text = piece * (50_000 // len(piece))
    begin = time.process_time()
    hide_secrets(text)
    kinds(text)
    assert time.process_time() - begin < 2
