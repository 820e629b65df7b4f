"""Git repository URLs: parsing, comparison and refused forms.

    https://github.com/acme/pay          https://git.example.org:8443/team/sub/pay.git
    ssh://git@github.com/acme/pay.git    git@github.com:acme/pay.git    /home/anna/pay

Two URLs with the same `key` are the same repository. A URL with a secret is refused, because it is
stored and displayed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from draftsman.errors import UsageError

PORTS: Final = {"https": 443, "http": 80, "git": 9418, "ssh": 22}
MAX_URL_LENGTH: Final = 2000
"""Characters of a URL."""
URL_FORMS: Final = "use https://HOST/OWNER/NAME, ssh://…, git@HOST:OWNER/NAME, or a folder"
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BEFORE_HOST: Final = re.compile(r"\s*(?:([A-Za-z][A-Za-z0-9+.-]*):/{1,3}|()//)")
_PORT: Final = re.compile(r"(?:^|@)(?:[^:@\[\]]*|\[[^\[\]]*\])(?::[0-9]*)?\Z")
"""A host with an optional port, at the end of the authority."""
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
"""Bounded, so that a hostile text of a megabyte does not take quadratic time."""
_HEAD: Final = re.compile(r"([a-z]+://[^/]+/|[^/:]+:)(.*)", re.IGNORECASE)
_AFTER: Final = ".,;:!?)]*_~"
"""Punctuation of a sentence or Markdown after a URL."""


@dataclass(frozen=True, slots=True)
class RepoUrl:
    """URL of a repository; a local folder has neither host nor owner."""

    host: str
    """Lower case, with a port that is not the scheme's default; SSH ports are ignored."""
    owner: str
    """Path before the name: `acme`, or `team/sub`."""
    name: str
    url: str
    """URL for git."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Key for the comparison of URLs."""
        return (self.host.casefold(), self.owner.casefold(), self.name.casefold())


def parse(text: str) -> RepoUrl:
    """Parse a URL or an absolute path; raises UsageError, whose message has no secrets."""
    text = text.strip()
    if (
        not text
        or len(text) > MAX_URL_LENGTH
        or any(ord(char) < 32 or ord(char) == 127 for char in text)
    ):
        raise UsageError(f"invalid repository URL; {URL_FORMS}")
    if text.startswith("-"):
        raise UsageError(f"a repository URL may not start with a dash; {URL_FORMS}")
    if (scheme := _SCHEME.match(text)) is not None:
        if scheme[1].lower() == "file":
            return _folder(unquote(text[len("file://") :]))
        return _url(text, scheme[1].lower())
    if text.startswith(("/", "~", ".")) or (scp := _SCP.fullmatch(text)) is None:
        return _folder(text)
    return _scp(text, scp)


def is_repo_url(text: str) -> bool:
    """Return whether a text is a URL or path, and not the name of a repository."""
    text = text.strip()
    plain = _SCHEME.match(text) is None and not text.startswith(("/", "~", "."))
    return not plain or ("::" not in text and _SCP.fullmatch(text) is not None)


def is_folder(text: str) -> bool:
    """Return whether a text is a local folder, and not a remote URL."""
    text = text.strip()
    if (scheme := _SCHEME.match(text)) is not None:
        return scheme[1].lower() == "file"
    return text.lower().startswith("file:") or _SCP.fullmatch(text) is None


def check_secret(text: str) -> None:
    """Raise UsageError for a URL with a secret that would be stored."""
    match = _BEFORE_HOST.match(text)
    after_scheme = text[match.end() :] if match else text.strip()
    if match is None:  # git@HOST:PATH, or a path
        before, at, _ = after_scheme.partition("/")[0].rpartition("@")
    else:
        authority = re.split(r"[/?#]", after_scheme, maxsplit=1)[0]
        if _PORT.search(authority) is None:  # a password that contains one of these characters
            authority = after_scheme
        before, at, _ = authority.rpartition("@")
    web = match is not None and (match[1] or "").lower() in {"http", "https"}
    if at and (web or ":" in before):
        raise _secret()


def find_repo_urls(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield host and path of each URL in a text that may be in a repository, in order.

    The path includes the part after the repository, such as `pull/12`.
    """
    for match in _MENTION.finditer(text):
        mention = match[0].rstrip(_AFTER)
        bare = re.split(r"[?#]", mention, maxsplit=1)[0]
        if "(" not in bare:
            bare = bare.partition(")")[0].rstrip(_AFTER)
        try:
            address = parse(_valid_prefix(bare))
        except UsageError:
            continue
        yield address.host, (*address.owner.split("/"), address.name)


def _valid_prefix(mention: str) -> str:
    """Cut a URL before a segment that cannot be in a repository's name, such as `/-/`."""
    if (split := _HEAD.fullmatch(mention)) is None:
        return mention
    segments = [segment for segment in split[2].split("/") if segment]
    valid = itertools.takewhile(lambda segment: _is_valid(segment, unquote(segment)), segments)
    return split[1] + "/".join(valid)


def _url(text: str, scheme: str) -> RepoUrl:
    if scheme not in PORTS:
        raise UsageError(f"unsupported URL scheme {scheme}://; {URL_FORMS}")
    try:
        split = urlsplit(text)
        host = split.hostname or ""
        port = split.port
        user = split.username
        password = split.password
    except ValueError:
        raise UsageError(f"invalid URL; {URL_FORMS}") from None
    if password is not None or (user is not None and scheme != "ssh"):
        raise _secret()
    if split.query or split.fragment or "?" in text or "#" in text:
        raise UsageError("a repository URL ends with the repository; remove ? or # and the rest")
    if user is not None and not _USER.match(user):
        raise UsageError(f"invalid user in an SSH URL; {URL_FORMS}")
    host = _host(host)
    if port == 0:
        raise UsageError(f"port 0 is not valid; {URL_FORMS}")
    default_port = port is None or port == PORTS[scheme]
    owner, name, path = _path(split.path)
    bracketed = f"[{host}]" if ":" in host else host
    netloc = f"{user}@{bracketed}" if user else bracketed
    authority = netloc if default_port else f"{netloc}:{port}"
    key_host = host if default_port or scheme == "ssh" else f"{bracketed}:{port}"
    return RepoUrl(key_host, owner, name, f"{scheme}://{authority}/{path}")


def _scp(text: str, match: re.Match[str]) -> RepoUrl:
    user, host, raw_path = match.groups()
    if user is not None and ":" in user:
        raise _secret()
    if user is not None and not _USER.match(user):
        raise UsageError(f"invalid user in an SSH URL; {URL_FORMS}")
    if "?" in raw_path or "#" in raw_path:
        raise UsageError("a repository URL ends with the repository; remove ? or # and the rest")
    host = _host(host.strip("[]"))
    owner, name, path = _path(raw_path)
    bracketed = f"[{host}]" if ":" in host else host
    absolute = "/" if raw_path.startswith("/") else ""
    return RepoUrl(host, owner, name, f"{user + '@' if user else ''}{bracketed}:{absolute}{path}")


def _host(host: str) -> str:
    plain = host.rstrip(".").lower()
    if not _HOST.match(plain):
        raise UsageError(f"a repository URL requires a host; {URL_FORMS}")
    return plain


def _path(path: str) -> tuple[str, str, str]:
    """Return owner, name, and the path for git."""
    segments = [segment for segment in path.split("/") if segment]
    if segments:
        segments[-1] = segments[-1].rstrip(".")
    plain = [unquote(segment) for segment in segments]
    if not segments or any(
        not _is_valid(raw, decoded) for raw, decoded in zip(segments, plain, strict=True)
    ):
        raise UsageError(f"invalid path in a repository URL; {URL_FORMS}")
    name = plain[-1].removesuffix(".git").rstrip(".")
    if not name or name == ".git":
        raise UsageError(f"a repository URL must end with the name of a repository; {URL_FORMS}")
    return "/".join(plain[:-1]), name, "/".join(segments)


def _is_valid(raw: str, decoded: str) -> bool:
    if not _SEGMENT.match(raw) or decoded in {".", ".."} or decoded.startswith("-"):
        return False
    return not any(char in "/\\" or ord(char) < 32 or char in "\x7f\ufffd" for char in decoded)


def _folder(text: str) -> RepoUrl:
    if not text.startswith("/"):
        quoted = "this" if "@" in text else repr(text[:60])
        raise UsageError(f"{quoted} is neither an absolute path nor a URL; {URL_FORMS}")
    path = "/" + "/".join(part for part in text.split("/") if part not in {"", "."})
    name = path.rsplit("/", 1)[-1].removesuffix(".git")
    if ".." in path.split("/") or not name:
        raise UsageError(f"invalid path of a folder; {URL_FORMS}")
    return RepoUrl("", "", name, path)


def _secret() -> UsageError:
    return UsageError(
        "a repository URL is stored and displayed and may not contain a password; use"
        " git@HOST:OWNER/NAME with an SSH key"
    )


# Repositories in folders of this machine.


BARE_ENTRIES: Final = ("HEAD", "objects", "refs")
"""Entries in the top folder of a bare repository."""


def repository_top(folder: Path) -> Path | None:
    """Return the top folder of the repository that contains an absolute path; None without one."""
    return next((parent for parent in (folder, *folder.parents) if _is_top(parent)), None)


def _is_top(folder: Path) -> bool:
    return (folder / ".git").exists() or all((folder / name).exists() for name in BARE_ENTRIES)


def repo_name(source: str) -> tuple[str | None, str]:
    """Return (owner, name) of a URL; the owner of a local path is None."""
    path = source
    if "://" in source:
        path = source.split("://", 1)[1].partition("/")[2].partition("?")[0]
    elif ":" in source and not source.startswith(("/", ".")):
        path = source.split(":", 1)[1]
    else:
        return None, source.rstrip("/").rsplit("/", 1)[-1].removesuffix(".git") or "repo"
    parts = [part for part in path.removesuffix(".git").split("/") if part]
    if not parts:
        return None, "repo"
    return (parts[-2] if len(parts) > 1 else None), parts[-1]
