"""Trello credentials from the configured sources."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.errors import ConfigError
from draftsman.settings.secret import SecretSettings
from draftsman_bots.trello.credentials import read
from draftsman_bots.trello.settings import TrelloSettings

KEY = "k" * 32
TOKEN = "ATTA" + "t" * 60
SECRET = "s" * 64


def settings(**more: Any) -> TrelloSettings:
    names = {"key": SecretSettings(env="T_KEY"), "token": SecretSettings(env="T_TOKEN")}
    return TrelloSettings(**names, **more)


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("T_KEY", KEY), ("T_TOKEN", TOKEN), ("T_SECRET", f"{SECRET}\n")):
        monkeypatch.setenv(name, value)


def test_credentials_are_read_and_never_shown() -> None:
    credentials = read(settings(secret=SecretSettings(env="T_SECRET")))
    assert (credentials.key, credentials.token, credentials.secret) == (KEY, TOKEN, SECRET)
    assert not any(secret in f"{credentials} {credentials!r}" for secret in (KEY, TOKEN, SECRET))


def test_secret_is_not_required_without_a_webhook() -> None:
    assert read(settings()).secret == ""


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("T_TOKEN", "", r"\[trello\] token: the variable T_TOKEN holds no secret$"),
        ("T_TOKEN", KEY, r"\[trello\] token and key are the same"),
        ("T_KEY", 'a"b', r"\[trello\] key contains characters that are not allowed"),
        ("T_KEY", "a b", "characters"),
        ("T_KEY", "schlüssel", "characters"),
    ],
)
def test_invalid_credentials_are_reported_without_their_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=words) as caught:
        read(settings())
    assert KEY not in str(caught.value)
