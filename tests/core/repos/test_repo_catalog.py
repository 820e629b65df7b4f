"""How a request finds its repository: explicit > label id > label name > URL > default > ask."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.errors import NotFound, UsageError
from draftsman.repos.repo_catalog import (
    CONFIDENCE,
    METHODS,
    AmbiguousRepo,
    Catalog,
    LabelMapping,
    Repo,
    RepoLocation,
    ResolvedRepo,
    resolve,
)
from draftsman.repos.repo_url import parse
from tests.support.cases import cases

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def known(id: int, url: str) -> Repo:
    return replace(Repo.at(parse(url)), id=id)


PAY = known(1, "https://github.com/acme/pay")
SHOP = known(2, "git@github.com:acme/shop.git")
MONO = known(3, "https://git.example.org/acme/sub/mono")
FORK = known(4, "https://github.com/zoe/pay")
REPOS = (PAY, SHOP, MONO, FORK)


def label(
    id: int, repo: Repo, label_id: str | None = None, name: str | None = None, path: str = ""
) -> LabelMapping:
    assert repo.id is not None
    return LabelMapping(id, label_id, name, repo.id, path, "root", NOW)


MAPPINGS = (
    label(1, PAY, "L-pay"),
    label(2, SHOP, None, "Shop"),
    label(3, MONO, "L-api", "api", "services/api"),
    label(4, PAY, None, "money"),
    label(5, FORK, None, "money"),
)
CATALOG = Catalog(REPOS, MAPPINGS, [(1, ""), (3, "services/api")])
DEFAULT = Catalog([replace(PAY, is_default=True), *REPOS[1:]], MAPPINGS, CATALOG.profile_paths)
URL = "https://github.com/acme/shop"


def resolved(
    explicit: str | None = None,
    ids: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
    text: str | None = None,
    catalog: Catalog = CATALOG,
) -> tuple[str | None, str]:
    labels = [*((id, "") for id in ids), *(("", name) for name in names)]
    result = resolve(catalog, explicit=explicit, labels=labels, text=text)
    if isinstance(result, AmbiguousRepo):
        return "ask", ", ".join(sorted(place.name for place in result.choices))
    assert result.confidence == CONFIDENCE[result.method]
    return result.method, RepoLocation(result.repo, result.path).name


def test_methods_are_tried_in_their_order() -> None:
    sources = {"ids": ("L-pay",), "names": ("api",), "text": URL, "catalog": DEFAULT}
    assert resolved("zoe/pay", **sources) == ("explicit", "zoe/pay")  # type: ignore[arg-type]
    assert resolved(None, ("L-pay",), ("api",), URL, DEFAULT) == ("label_id", "acme/pay")
    assert resolved(None, (), ("api",), URL, DEFAULT) == (
        "label_name",
        "acme/sub/mono//services/api",
    )
    assert resolved(None, (), (), URL, DEFAULT) == ("url", "acme/shop")
    assert resolved(None, (), (), "no URL", DEFAULT) == ("default", "acme/pay")
    everything_there = "acme/pay, acme/shop, acme/sub/mono, acme/sub/mono//services/api, zoe/pay"
    assert resolved() == ("ask", everything_there)
    assert [CONFIDENCE[method] for method in METHODS] == sorted(CONFIDENCE.values(), reverse=True)


def test_two_matches_of_a_method_are_ambiguous() -> None:
    assert resolved(None, ("L-pay", "L-api")) == ("ask", "acme/pay, acme/sub/mono//services/api")
    assert resolved(None, (), ("MONEY",), URL, DEFAULT) == ("ask", "acme/pay, zoe/pay")
    text = f"{URL} or https://github.com/acme/pay/issues/1?"
    assert resolved(None, (), (), text, DEFAULT) == ("ask", "acme/pay, acme/shop")
    assert resolved("pay") == ("ask", "acme/pay, zoe/pay")


@cases(
    ("name", "expected"),
    [
        ("acme/pay", "acme/pay"),
        ("ACME/Pay", "acme/pay"),
        ("github.com/acme/pay", "acme/pay"),
        ("mono", "acme/sub/mono"),
        ("mono//services/api", "acme/sub/mono//services/api"),
        ("https://github.com/acme/pay.git", "acme/pay"),
        ("git@github.com:zoe/pay", "zoe/pay"),
        ("https://elsewhere.org/new/thing", "new/thing"),
        ("/srv/git/thing", "thing"),
    ],
)
def test_an_explicit_name_or_address(name: str, expected: str) -> None:
    assert resolved(name) == ("explicit", expected)


@cases("name", ["nobody", "acme", "ay", "me/pay", "mono//services/web", "-x"])
def test_an_unknown_name_is_refused_with_the_known_names(name: str) -> None:
    with pytest.raises(NotFound, match="known: acme/pay, acme/shop, acme/sub/mono,"):
        resolved(name)


def test_an_explicit_address_with_a_secret_is_refused() -> None:
    with pytest.raises(UsageError, match="may not contain a password"):
        resolved("https://t0ken@github.com/acme/pay")


def test_urls_lead_into_known_repositories_only() -> None:
    assert resolved(text="https://git.example.org/acme/sub/mono/-/merge_requests/3")[0] == "url"
    assert resolved(text="https://github.com/acme/shop.git/tree/main")[1] == "acme/shop"
    assert resolved(text="https://github.com/acme and https://evil.org/acme/pay")[0] == "ask"
    assert resolved(text="https://github.com.evil.org/acme/pay")[0] == "ask"
    assert resolved(text="https://github.com/acme/payments", catalog=DEFAULT)[0] == "default"


def test_a_label_of_a_removed_repository_matches_nothing() -> None:
    catalog = Catalog([SHOP], MAPPINGS)
    assert resolved(None, ("L-pay",), (), URL, catalog) == ("url", "acme/shop")


IDS = st.sampled_from(["L-pay", "L-api", "other", ""])
WORDS = st.sampled_from(["Shop", "shop", "api", "money", "other", ""])


@given(
    st.lists(st.tuples(IDS, WORDS), max_size=4),
    st.lists(st.sampled_from([URL, "https://github.com/acme/pay", "words", "https://x/"])),
    st.booleans(),
    st.randoms(),
)
def test_order_and_repetition_change_nothing(
    labels: list[tuple[str, str]], names: list[str], default: bool, random: st.DataObject
) -> None:
    catalog = DEFAULT if default else CATALOG
    first = resolve(catalog, labels=labels, text=" ".join(names))
    shuffled = [*labels, *labels]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    shuffled_result = resolve(catalog, labels=shuffled, text="\n".join(reversed(names * 2)))
    if isinstance(first, ResolvedRepo):
        assert shuffled_result == first
    else:
        assert isinstance(shuffled_result, AmbiguousRepo)
        assert set(shuffled_result.choices) == set(first.choices)


def test_the_resolution_is_stored_in_the_request() -> None:
    result = resolve(CATALOG, labels=[("L-api", "api")])
    assert isinstance(result, ResolvedRepo)
    assert result.request == {
        "repo": MONO.remote_url,
        "resolution": {"method": "label_id", "confidence": 1.0, "path": "services/api"},
    }
