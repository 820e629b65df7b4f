"""Settings by the name of a repository, of a forge or of an account."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from draftsman.settings import settings_model
from tests.support.cases import cases

LIMIT: Any = {"running": 1}
BUDGET: Any = {"cost_usd": 1}


def test_the_case_of_a_repository_does_not_matter() -> None:
    """A request could otherwise choose another profile, limit or budget with its URL."""
    settings = settings_model().model_validate(
        {
            "profiles": {"Acme/Shop": {}, "GitHub.com/acme/shop": {}},
            "limits": {"repo": {"Acme/Shop": LIMIT}},
            "budgets": {"repo": {"GitHub.com/Acme/Shop": BUDGET}},
        }
    )
    assert settings.profile_of("github.com", "ACME/shop")[0] == "GitHub.com/acme/shop"
    assert settings.profile_of("gitlab.example", "ACME/shop")[0] == "Acme/Shop"
    assert settings.profile_of("gitlab.example", "acme/other")[0] == ""
    assert list(settings.limits.repo) == ["acme/shop"]
    assert list(settings.budgets.repo) == ["github.com/acme/shop"]


@cases(
    ("tables", "why"),
    [
        ({"limits": {"repo": {"a/b": LIMIT, "A/B": LIMIT}}}, "'A/B' is there twice"),
        ({"budgets": {"repo": {"a/b": BUDGET, "A/B": BUDGET}}}, "'A/B' is there twice"),
        (
            {"people": {"anna": {"pager": ["ops:U1", "ops:u1"]}, "ben": {"pager": "ops:U1"}}},
            "people.anna and people.ben have the same pager: 'ops:u1'",
        ),
        (
            {"forges": {"github": {"kind": "github", "health_listen": "127.0.0.1:9403"}}},
            "health_listen needs events",
        ),
    ],
    ids=["limits", "budgets", "pager", "forge"],
)
def test_an_ambiguous_or_useless_name_is_refused(tables: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        settings_model().model_validate(tables)


def test_an_account_in_a_pager_is_known_once() -> None:
    settings = settings_model().model_validate(
        {"people": {"anna": {"pager": ["ops:U1", "ops:u1"]}}}
    )
    assert settings.people["anna"].accounts == {"pager": ("ops:u1",)}
