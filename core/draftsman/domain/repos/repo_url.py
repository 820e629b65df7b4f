"""Where a git repository is: every shape that people write, and what is never taken.

    https://github.com/acme/pay          https://git.example.org:8443/team/sub/pay.git
    ssh://git@github.com/acme/pay.git    git@github.com:acme/pay.git    /home/anna/pay

Two addresses with the same `key` name the same repository. A secret in an address would be stored
and shown wherever the repository is: it is refused.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from draftsman.errors import UsageError

PORTS: Final = {"https": 443, "http": 80, "git": 9418, "ssh": 22}
MAX_URL_LENGTH: Final = 2000
"""Characters of an address."""
URL_FORMS: Final = "give https://HOST/OWNER/NAME, ssh://…, git@HOST:OWNER/NAME, or a folder"
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BEFORE_HOST: Final = re.compile(r"\s*(?:([A-Za-z][A-Za-z0-9+.-]*):/{1,3}|()//)")
_PORT: Final = re.compile(r"(?:^|@)(?:[^:@\[\]]*|\[[^\[\]]*\])(?::[0-9]*)?\Z")
"""A host with a port, or without one, at the end of what comes before the path."""
_SCP: Final = re.compile(r"(?:([^@/\s]*)@)?(\[[^\]/\s]*\]|[^:/@\s]+):(?!:)(.+)", re.DOTALL)
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z")
_HOST: Final = re.compile(
    r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\Z"
)
_SEGMENT: Final = re.compile(r"(?:[\w.~+-]|%[0-9A-Fa-f]{2})+\Z")
_MENTION: Final = re.compile(
    r"(?:https?|ssh|git)://[^\s<>\"'`|\\^{}]{1,2000}"
    r"|(?<![\w.-])[A-Za-z0-9_][\w.-]{0,63}@[\w.-]{1,253}:[^\s<>\"'`|\\^{}]{1,2000}",
    re.IGNORECASE,
)
"""Bounded: a hostile text of a megabyte must not cost quadratic time."""
_HEAD: Final = re.compile(r"([a-z]+://[^/]+/|[^/:]+:)(.*)", re.IGNORECASE)
_AFTER: Final = ".,;:!?)]*_~"
"""What a sentence or Markdown puts behind a URL."""


@dataclass(frozen=True, slots=True)
class RepoUrl:
    """A repository's place; a folder has neither host nor owner."""

    host: str
    """Lower case, with a port that is not the scheme's own; that of a forge's SSH never counts."""
    owner: str
    """All before the name: `acme`, or `team/sub`."""
    name: str
    url: str
    """What git is given."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two addresses the same repository."""
        return (self.host.casefold(), self.owner.casefold(), self.name.casefold())


def parse(text: str) -> RepoUrl:
    """Return the repository of an address; raises UsageError, which shows no secret."""
    text = text.strip()
    if (
        not text
        or len(text) > MAX_URL_LENGTH
        or any(ord(char) < 32 or ord(char) == 127 for char in text)
    ):
        raise UsageError(f"that is no address of a repository; {URL_FORMS}")
    if text.startswith("-"):
        raise UsageError(f"an address does not start with a dash; {URL_FORMS}")
    if (scheme := _SCHEME.match(text)) is not None:
        if scheme[1].lower() == "file":
            return _folder(unquote(text[len("file://") :]))
        return _url(text, scheme[1].lower())
    if text.startswith(("/", "~", ".")) or (scp := _SCP.fullmatch(text)) is None:
        return _folder(text)
    return _scp(text, scp)


def is_repo_url(text: str) -> bool:
    """Return whether a text is meant as an address, and not as the name of a repository."""
    text = text.strip()
    plain = _SCHEME.match(text) is None and not text.startswith(("/", "~", "."))
    return not plain or ("::" not in text and _SCP.fullmatch(text) is not None)


def is_folder(text: str) -> bool:
    """Return whether a text names a folder of the machine that reads it, and not a URL."""
    text = text.strip()
    if (scheme := _SCHEME.match(text)) is not None:
        return scheme[1].lower() == "file"
    return text.lower().startswith("file:") or _SCP.fullmatch(text) is None


def check_secret(text: str) -> None:
    """Raise UsageError for a URL with a user or a password that would be stored."""
    found = _BEFORE_HOST.match(text)
    rest = text[found.end() :] if found else text.strip()
    if found is None:  # git@HOST:PATH, or a path
        before, at, _ = rest.partition("/")[0].rpartition("@")
    else:
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        if _PORT.search(authority) is None:  # a password with one of these in it
            authority = rest
        before, at, _ = authority.rpartition("@")
    web = found is not None and (found[1] or "").lower() in {"http", "https"}
    if at and (web or ":" in before):
        raise _secret()


def find_repo_urls(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield host and path of each URL in a text that may lead into a repository, in order.

    What follows the repository, such as `pull/12`, is still in the path; nothing is raised.
    """
    for found in _MENTION.finditer(text):
        mention = found[0].rstrip(_AFTER)
        bare = re.split(r"[?#]", mention, maxsplit=1)[0]
        if "(" not in bare:
            bare = bare.partition(")")[0].rstrip(_AFTER)
        try:
            address = parse(_sound_part(bare))
        except UsageError:
            continue
        yield address.host, (*address.owner.split("/"), address.name)


def _sound_part(mention: str) -> str:
    """Return a URL up to what can be no part of a repository's name, such as GitLab's `/-/`."""
    if (split := _HEAD.fullmatch(mention)) is None:
        return mention
    segments = [segment for segment in split[2].split("/") if segment]
    sound = itertools.takewhile(lambda one: _sound(one, unquote(one)), segments)
    return split[1] + "/".join(sound)


def _url(text: str, scheme: str) -> RepoUrl:
    if scheme not in PORTS:
        raise UsageError(f"{scheme}:// is no way to a repository here; {URL_FORMS}")
    try:
        parts = urlsplit(text)
        host, port, user = parts.hostname or "", parts.port, parts.username
        password = parts.password
    except ValueError:
        raise UsageError(f"that is no URL; {URL_FORMS}") from None
    if password is not None or (user is not None and scheme != "ssh"):
        raise _secret()
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise UsageError("an address ends with the repository: leave out what follows ? or #")
    if user is not None and not _USER.match(user):
        raise UsageError(f"the user of an SSH address is a plain name; {URL_FORMS}")
    host = _host(host)
    if port == 0:
        raise UsageError(f"port 0 is none; {URL_FORMS}")
    own = port is None or port == PORTS[scheme]
    owner, name, path = _path(parts.path)
    bracketed = f"[{host}]" if ":" in host else host
    netloc = f"{user}@{bracketed}" if user else bracketed
    place = netloc if own else f"{netloc}:{port}"
    known_as = host if own or scheme == "ssh" else f"{bracketed}:{port}"
    return RepoUrl(known_as, owner, name, f"{scheme}://{place}/{path}")


def _scp(text: str, found: re.Match[str]) -> RepoUrl:
    user, host, path = found.groups()
    if user is not None and ":" in user:
        raise _secret()
    if user is not None and not _USER.match(user):
        raise UsageError(f"the user of an SSH address is a plain name; {URL_FORMS}")
    if "?" in path or "#" in path:
        raise UsageError("an address ends with the repository: leave out what follows ? or #")
    host = _host(host.strip("[]"))
    owner, name, rest = _path(path)
    bracketed = f"[{host}]" if ":" in host else host
    absolute = "/" if path.startswith("/") else ""
    return RepoUrl(host, owner, name, f"{user + '@' if user else ''}{bracketed}:{absolute}{rest}")


def _host(host: str) -> str:
    plain = host.rstrip(".").lower()
    if not _HOST.match(plain):
        raise UsageError(f"an address names a host; {URL_FORMS}")
    return plain


def _path(path: str) -> tuple[str, str, str]:
    """Return owner, name, and the path as git is given it."""
    segments = [segment for segment in path.split("/") if segment]
    if segments:
        segments[-1] = segments[-1].rstrip(".")
    plain = [unquote(segment) for segment in segments]
    if not segments or any(
        not _sound(raw, read) for raw, read in zip(segments, plain, strict=True)
    ):
        raise UsageError(f"an address has a path of names, such as acme/pay; {URL_FORMS}")
    name = plain[-1].removesuffix(".git").rstrip(".")
    if not name or name == ".git":
        raise UsageError(f"an address ends with the name of a repository; {URL_FORMS}")
    return "/".join(plain[:-1]), name, "/".join(segments)


def _sound(raw: str, read: str) -> bool:
    if not _SEGMENT.match(raw) or read in {".", ".."} or read.startswith("-"):
        return False
    return not any(char in "/\\" or ord(char) < 32 or char in "\x7f\ufffd" for char in read)


def _folder(text: str) -> RepoUrl:
    if not text.startswith("/"):
        shown = "that" if "@" in text else repr(text[:60])
        raise UsageError(f"{shown} is no absolute path and no URL; {URL_FORMS}")
    path = "/" + "/".join(part for part in text.split("/") if part not in {"", "."})
    name = path.rsplit("/", 1)[-1].removesuffix(".git")
    if ".." in path.split("/") or not name:
        raise UsageError(f"that folder has no name; {URL_FORMS}")
    return RepoUrl("", "", name, path)


def _secret() -> UsageError:
    return UsageError(
        "an address is stored and shown: no user or password in it; give git@HOST:OWNER/NAME, and"
        " let an SSH key give access"
    )
