"""The story of a job, told in each channel: the transcripts are accepted snapshots."""

from __future__ import annotations

import re
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion

from draftsman_testing.channel.conversation_contract import ConversationContract

CHANGING: Final = {
    r"<!date\^[^>]*>": "TIME",
    r"\d{1,2} \w{3} \d{4}, \d{2}:\d{2} UTC": "TIME",
    r"took [\d.]+ s": "took SECONDS",
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}": "DELIVERY",
}
"""Patterns of what differs from run to run, and their names."""


class ToldConversation(ConversationContract):
    """The contract of conversations, and the words of its story: `make wording` accepts them."""

    @pytest.fixture(autouse=True)
    def _accepted(self, snapshot: SnapshotAssertion) -> None:
        self._snapshot = snapshot

    def check_transcript(self, transcript: str) -> None:
        for pattern, name in CHANGING.items():
            transcript = re.sub(pattern, name, transcript)
        assert transcript == self._snapshot
