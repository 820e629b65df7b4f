"""The story of a job, told in each channel: the transcripts are accepted snapshots."""

from __future__ import annotations

import re
from typing import Final

from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.amber import AmberSnapshotExtension
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

from draftsman.runtime import Runtime
from draftsman_testing.channel.conversation_contract import ConversationContract, Talk
from draftsman_testing.people import People

CHANGING: Final = {
    r"<!date\^[^>]*>": "TIME",
    r"\d{1,2} \w{3} \d{4}, \d{2}:\d{2} UTC": "TIME",
    r"took [\d.]+ s": "took SECONDS",
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}": "DELIVERY",
}
"""Patterns of what differs from run to run, and their names."""


class OneTranscript(AmberSnapshotExtension):
    """One accepted transcript for all parameters of a test: each kind of forge says the same."""

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        return f"{test_location.classname}.{test_location.methodname}"


class ToldConversation(ConversationContract):
    """The contract of conversations, and the words of its story: `make wording` accepts them."""

    async def test_the_story_of_a_job(  # type: ignore[override]
        self, talk: Talk, people: People, rt: Runtime, snapshot: SnapshotAssertion
    ) -> None:
        self._snapshot = snapshot.use_extension(OneTranscript)
        await super().test_the_story_of_a_job(talk, people, rt)

    def check_transcript(self, transcript: str) -> None:
        for pattern, name in CHANGING.items():
            transcript = re.sub(pattern, name, transcript)
        assert transcript == self._snapshot
