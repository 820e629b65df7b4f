"""Detection of secrets in lines of text, by the formats that detect-secrets knows. Pure.

Only the kind of a secret is returned, never its value. Detectors of random or suspicious text are
not used, because they refuse ordinary changes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

WINDOW: Final = 2000
"""Characters of a line that are searched at a time: some expressions are slow on long lines."""
OVERLAP: Final = 500
_MAY_HAVE_SECRET: Final = re.compile(r"[\w+/=-]{16}|PRIVATE KEY|PuTTY|://[^\s/]*:")
"""Text without any match has no secret of a known format, and needs no detectors."""
_PLACEHOLDER: Final = "EXAMPLE"
"""Part of the keys in the documentation of services, such as AKIAIOSFODNN7EXAMPLE."""
_REQUIRED: Final = {"NPM tokens": "_authToken"}
"""Text that a secret of this kind has: its expression is slow where it does not match."""
_NEWER_FORMATS: Final = {
    "GitHub Token": r"github_pat_[0-9A-Za-z]{22}_[0-9A-Za-z]{59}",
    "Anthropic API Key": r"sk-ant-[a-z0-9]{3,12}-[\w-]{80,}",
    "Google API Key": r"AIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])",
    "Slack Token": r"xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{64}|xoxe(?:\.xox[bp])?-\d-[A-Za-z0-9]{100,}",
    "Private Key": r"BEGIN[ ]ENCRYPTED PRIVATE KEY|PuTTY-User-Key-File-3",
}
"""Formats that the library does not know yet, by kind."""


def secret_kinds(text: str) -> list[str]:
    """Return the kinds of the secrets in a line that have a known format."""
    return _kinds(text, _known_formats)


def possible_secret_kinds(text: str) -> list[str]:
    """Return the kinds of text in a line that is often, but not always, a secret."""
    return _kinds(text, _possible_formats)


def _kinds(text: str, detectors: functools._lru_cache_wrapper[tuple[BasePlugin, ...]]) -> list[str]:
    kinds = {
        detector.secret_type
        for window in _windows(text)
        if _MAY_HAVE_SECRET.search(window)
        for detector in detectors()
        if _REQUIRED.get(detector.secret_type, "") in window
        and any(_PLACEHOLDER not in value for value in detector.analyze_string(window))
    }
    return sorted(map(str, kinds))


def _windows(text: str) -> Iterator[str]:
    for start in range(0, max(len(text) - OVERLAP, 1), WINDOW - OVERLAP):
        yield text[start : start + WINDOW]


@functools.cache
def _known_formats() -> tuple[BasePlugin, ...]:
    from detect_secrets.plugins import (
        aws,
        azure_storage_key,
        discord,
        github_token,
        gitlab_token,
        mailchimp,
        npm,
        openai,
        private_key,
        pypi_token,
        sendgrid,
        slack,
        square_oauth,
        stripe,
        telegram_token,
        twilio,
    )

    return (
        aws.AWSKeyDetector(),
        azure_storage_key.AzureStorageKeyDetector(),
        discord.DiscordBotTokenDetector(),
        github_token.GitHubTokenDetector(),
        gitlab_token.GitLabTokenDetector(),
        mailchimp.MailchimpDetector(),
        npm.NpmDetector(),
        openai.OpenAIDetector(),
        private_key.PrivateKeyDetector(),
        pypi_token.PypiTokenDetector(),
        sendgrid.SendGridDetector(),
        slack.SlackDetector(),
        square_oauth.SquareOAuthDetector(),
        stripe.StripeDetector(),
        telegram_token.TelegramBotTokenDetector(),
        twilio.TwilioKeyDetector(),
        *_newer_formats(),
    )


def _newer_formats() -> Iterator[BasePlugin]:
    from detect_secrets.plugins.base import RegexBasedDetector

    for kind, expression in _NEWER_FORMATS.items():
        fields = {"secret_type": kind, "denylist": (re.compile(expression),)}
        yield type("NewerFormat", (RegexBasedDetector,), fields)()


@functools.cache
def _possible_formats() -> tuple[BasePlugin, ...]:
    from detect_secrets.plugins import basic_auth, jwt

    return (basic_auth.BasicAuthDetector(), jwt.JwtTokenDetector())
