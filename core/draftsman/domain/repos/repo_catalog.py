"""Repositories that are known by name, and how a request finds its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from draftsman.domain.invocation import repo_name
from draftsman.domain.repos.repo_url import RepoUrl, find_repo_urls, is_repo_url, parse
from draftsman.errors import CommandHint, UnknownRepo, UsageError

Label = tuple[str, str]
"""Id and name of a label on a card."""
CONFIDENCE: Final = {
    "explicit": 1.0,
    "asked": 1.0,
    "label_id": 1.0,
    "label_name": 0.9,
    "url": 0.8,
    "default": 0.5,
}
"""How sure each method is; a label's name may mean something else on another board, a URL may be
beside the point, and the default is what is left."""
METHODS: Final = tuple(CONFIDENCE)
FOLDER_SEPARATOR: Final = "//"
"""Between the name of a repository and a folder of it: `acme/mono//services/api`."""


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository; `id` is None for one that is not known, only named by its address."""

    id: int | None
    host: str
    owner: str
    name: str
    remote_url: str
    default_branch: str | None = None
    is_default: bool = False
    added_by: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def full_name(self) -> str:
        """Return owner/name, or the name alone where nobody owns it."""
        return f"{self.owner}/{self.name}" if self.owner else self.name

    @property
    def key(self) -> tuple[str, str, str]:
        """What its address is compared by."""
        return (self.host.casefold(), self.owner.casefold(), self.name.casefold())

    @classmethod
    def at(cls, address: RepoUrl) -> Repo:
        """Return the repository of an address that nobody made known."""
        return cls(None, address.host, address.owner, address.name, address.url)


@dataclass(frozen=True, slots=True)
class LabelMapping:
    """A label that stands for a repository, or for a folder of one."""

    id: int
    trello_label_id: str | None
    trello_label_name: str | None
    repo: int
    path: str
    added_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RepoLocation:
    """What the work is about: a repository, or a folder of one."""

    repo: Repo
    path: str = ""

    @property
    def name(self) -> str:
        """What people call it."""
        return (
            f"{self.repo.full_name}{FOLDER_SEPARATOR}{self.path}"
            if self.path
            else self.repo.full_name
        )


@dataclass(frozen=True, slots=True)
class ResolvedRepo:
    """The repository of a request, how sure that is (0 to 1), and by which of METHODS."""

    repo: Repo
    confidence: float
    method: str
    path: str = ""

    @property
    def request(self) -> dict[str, Any]:
        """Return what of it goes into an `invocation(…)`: `repo` and `resolution`."""
        how = {"method": self.method, "confidence": self.confidence, "path": self.path}
        return {"repo": self.repo.remote_url, "resolution": how}


@dataclass(frozen=True, slots=True)
class AmbiguousRepo:
    """Nobody can tell: the job asks before it begins. No choices: no repository is known."""

    choices: tuple[RepoLocation, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All that is known: repositories, labels, and folders that have a profile of their own."""

    repos: Sequence[Repo]
    mappings: Sequence[LabelMapping] = ()
    parts: Sequence[tuple[int, str]] = ()

    def places(self) -> list[RepoLocation]:
        """Return everything that can be chosen."""
        inner: dict[int | None, list[str]] = {}
        for repo, path in self.parts:
            if path:
                inner.setdefault(repo, []).append(path)
        return [
            RepoLocation(repo, path)
            for repo in self.repos
            for path in ("", *sorted(inner.get(repo.id, ())))
        ]

    def named(self, name: str) -> list[RepoLocation]:
        """Return what a name stands for: `pay`, `acme/pay`, `host/acme/pay`, with `//folder`."""
        whole, _, path = name.strip().partition(FOLDER_SEPARATOR)
        parts = tuple(part.casefold() for part in whole.strip("/").split("/"))
        path = path.strip("/")
        found = [repo for repo in self.repos if _ends_with(repo, parts)]
        exact = [repo for repo in found if repo.full_name.casefold() == "/".join(parts)]
        known = {place.path for place in self.places()}
        return [RepoLocation(repo, path) for repo in exact or found if path in known]

    def of(self, address: RepoUrl) -> Repo | None:
        """Return the known repository with this address."""
        for repo in self.repos:
            if repo.remote_url == address.url or (address.host and repo.key == address.key):
                return repo
        return None


def repo_names_by_source(
    known: Iterable[Repo], sources: Iterable[str]
) -> dict[str, tuple[str | None, str]]:
    """Return (owner, name) under which the jobs of each source are filed.

    A repository that is known has one name, whichever of its addresses a request gives.
    """
    known = list(known)
    urls = {repo.remote_url: repo for repo in known}
    keys = {repo.key: repo for repo in known if repo.host}
    names: dict[str, tuple[str | None, str]] = {}
    for source in sources:
        try:
            address = parse(source)
        except UsageError:  # a place that git understands and we do not
            names[source] = repo_name(source)
            continue
        repo = urls.get(address.url) or keys.get(address.key) or Repo.at(address)
        names[source] = (repo.owner or None, repo.name)
    return names


def resolve(
    catalog: Catalog,
    *,
    explicit: str | None = None,
    labels: Iterable[Label] = (),
    text: str | None = None,
) -> ResolvedRepo | AmbiguousRepo:
    """Return the repository of a request: explicit > label id > label name > URL > default > ask.

    The first method that finds something decides; where it finds two it asks and never guesses.
    Raises NotFound for an explicit name that nobody knows, UsageError for a wrong address.
    """
    if explicit:
        return _explicit(catalog, explicit)
    labels = list(labels)
    for method, places in (
        ("label_id", _by_id(catalog, {id for id, _ in labels if id})),
        ("label_name", _by_name(catalog, {name.casefold() for _, name in labels if name})),
        ("url", _by_url(catalog, text or "")),
        ("default", [RepoLocation(repo) for repo in catalog.repos if repo.is_default]),
    ):
        if places:
            return _decided(method, places)
    return AmbiguousRepo(tuple(catalog.places()))


def _explicit(catalog: Catalog, wanted: str) -> ResolvedRepo | AmbiguousRepo:
    if found := catalog.named(wanted):
        return _decided("explicit", found)
    if is_repo_url(wanted):
        address = parse(wanted)
        repo = catalog.of(address) or Repo.at(address)
        return ResolvedRepo(repo, CONFIDENCE["explicit"], "explicit")
    known = tuple(sorted(place.name for place in catalog.places())[:20])
    shown = " ".join(word.rpartition("@")[2] for word in wanted.split())[:60]
    raise UnknownRepo(
        f"no repository is called {shown!r}; known are: {', '.join(known) or 'none'}",
        known=known,
        hint=CommandHint("repos add", "PATH|URL", lead="or give a URL, or"),
    )


def _decided(method: str, places: list[RepoLocation]) -> ResolvedRepo | AmbiguousRepo:
    unique = list(dict.fromkeys(places))
    if len(unique) > 1:
        return AmbiguousRepo(tuple(unique))
    return ResolvedRepo(unique[0].repo, CONFIDENCE[method], method, unique[0].path)


def _by_id(catalog: Catalog, ids: set[str]) -> list[RepoLocation]:
    return _mapped(catalog, [one for one in catalog.mappings if one.trello_label_id in ids])


def _by_name(catalog: Catalog, names: set[str]) -> list[RepoLocation]:
    meant = [
        one
        for one in catalog.mappings
        if one.trello_label_name and one.trello_label_name.casefold() in names
    ]
    return _mapped(catalog, meant)


def _mapped(catalog: Catalog, mappings: list[LabelMapping]) -> list[RepoLocation]:
    repos = {repo.id: repo for repo in catalog.repos}
    return [RepoLocation(repos[one.repo], one.path) for one in mappings if one.repo in repos]


def _by_url(catalog: Catalog, text: str) -> list[RepoLocation]:
    """Return the known repositories that URLs of the text lead to, or into: `…/pay/pull/12`."""
    known = {repo.key: repo for repo in catalog.repos if repo.host}
    found = []
    for host, path in find_repo_urls(text):
        steps = [step.casefold() for step in path if step]
        for length in range(len(steps), 0, -1):
            *owner, name = steps[:length]
            if repo := known.get((host.casefold(), "/".join(owner), name.removesuffix(".git"))):
                found.append(RepoLocation(repo))
                break
    return found


def _ends_with(repo: Repo, parts: tuple[str, ...]) -> bool:
    whole = tuple(part for part in (repo.host, *repo.owner.split("/"), repo.name) if part)
    return tuple(part.casefold() for part in whole)[-len(parts) :] == parts
