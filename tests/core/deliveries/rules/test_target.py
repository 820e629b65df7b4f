"""Targets, as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.channels.targets import parse_target
from draftsman.deliveries.target import parse, parse_recipient
from draftsman.errors import UsageError
from draftsman.forges.issue_target import IssueTarget
from tests.support.cases import cases
from tests.support.distributions import Distribution, installed

CHANNELS = "forge:NAME/OWNER/REPO#NUMBER, mail:ADDRESS, slack:CHANNEL or trello:CARD"


@cases(
    "text",
    [
        *("log", "webhook:ops", "slack:C012", "slack:C012/1700000000.000100", "slack:U012"),
        "trello:5f1e0c9a8b7d6e5f4a3b2c1d",
    ],
)
def test_a_parsed_target_keeps_its_name(text: str) -> None:
    assert parse(text).name == text


@cases("text", ["slack:#ops", "slack:@anna", "slack:ops room", "slack:ö"])
def test_a_slack_channel_name_is_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(UsageError, match="use the channel's id, C0"):
        parse(text)


@cases("thread", ["1700000000", "a.b", "1/2", "1700000000.000100/x"])
def test_a_thread_in_slack_is_a_ts(thread: str) -> None:
    with pytest.raises(UsageError, match="a thread is a message's ts"):
        parse(f"slack:C012/{thread}")


@cases("text", ["", "slack", "slack:", "log:x", "fax:a", "webhook:a/b", "pager:ops", "x" * 600])
def test_an_invalid_target_is_refused(text: str) -> None:
    with pytest.raises(
        UsageError,
        match=f"use log, webhook:NAME, {CHANNELS}",
    ):
        parse(text)


@cases("card", ["c1", "c/1", "AbCdEf12", "5F1E0C9A8B7D6E5F4A3B2C1D"])
def test_a_card_is_identified_by_its_id(card: str) -> None:
    with pytest.raises(UsageError, match="use the card's id, 24 hex"):
        parse(f"trello:{card}")


@cases("text", ["github/acme/pay", "acme/pay#1", "github/acme/pay#0", "github/a b/pay#1", "#1"])
def test_an_issue_is_identified_by_forge_repository_and_number(text: str) -> None:
    with pytest.raises(UsageError, match="such as forge:work/acme/pay#12"):
        parse(f"forge:{text}")


def test_the_repository_of_an_issue_is_in_lower_case() -> None:
    target = parse("forge:work/Team/Sub/Pay!7")
    assert (target.target, target.thread) == ("work/team/sub/pay!7", None)
    assert IssueTarget.of(target.target) == IssueTarget("work", "team/sub/pay", 7, is_pull=True)


def test_a_pager_is_a_recipient_of_critical_questions_only() -> None:
    assert parse_recipient("pager:ops").name == "pager:ops"


def test_targets_of_a_package_are_parsed_by_it(tmp_path: Path) -> None:
    source = """
from draftsman.channels.plugin import ChannelPlugin, TargetSyntax

def parse(address):
    if "@" not in address:
        raise ValueError("use an address")
    return address.lower(), None

CHANNEL = ChannelPlugin(
    name="fax", label="Fax", target=TargetSyntax(form="fax:ADDRESS", parse=parse)
)
"""
    fax = Distribution("acme-fax", "1.2", {"fax": "acme_fax:CHANNEL"}, {"acme_fax": source})
    with installed(tmp_path, fax):
        assert parse_target("fax:Anna@example.org") == ("fax", "anna@example.org", None)
        with pytest.raises(UsageError, match=r"'fax:anna': use an address"):
            parse_target("fax:anna")
        with pytest.raises(UsageError, match="webhook:NAME, fax:ADDRESS, forge:"):
            parse_target("telex:1")


def test_a_target_of_a_broken_package_names_it(tmp_path: Path) -> None:
    fax = Distribution("acme-fax", "1.2", {"fax": "acme_fax:CHANNEL"}, {"acme_fax": "1 / 0"})
    with installed(tmp_path, fax):
        with pytest.raises(UsageError, match=r"'fax:anna': channel 'fax' of acme-fax 1\.2"):
            parse("fax:anna")
        assert parse("slack:C0NEW").name == "slack:C0NEW"
