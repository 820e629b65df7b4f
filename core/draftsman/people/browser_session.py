"""Sessions of people in browsers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SignInMethod(StrEnum):
    """How a person signed in: with a link, or named by a proxy or an identity provider."""

    LINK = "link"
    PROXY = "proxy"
    OIDC = "oidc"


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A session of a person in a browser."""

    id: int
    person: str
    method: SignInMethod
    user_agent: str
    created_at: datetime
    expires_at: datetime
