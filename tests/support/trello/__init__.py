"""Fake Trello server for an unmodified py-trello: the REST API and signed webhooks.

    async with FakeTrello() as trello:
        anna = trello.member("anna")
        board = trello.board("Work", [anna])
        todo, fix = trello.list(board, "To do"), trello.label(board, "draftsman")
        card = trello.card(board, todo, "Fix the parser", labels=[fix], by=anna)
        trello.comment(card, anna, "2")
        acks = await trello.deliver()

What people do happens at once; `deliver` brings it to the webhooks that were registered, in order
or not, once or not. The fake refuses what Trello refuses, and misbehaves when it is told to
(`trello.faults`). Its time is the machine's, and `trello.later(seconds)` lets some pass. What is
not known of Trello is said where it is decided: "from memory" or "unknown".
"""

from __future__ import annotations

from tests.support.fake.faults import ANY
from tests.support.trello.api_errors import ApiError
from tests.support.trello.entities import Attachment, Call, Comment
from tests.support.trello.faults import Fault, error
from tests.support.trello.limits import Limits
from tests.support.trello.server import FakeTrello
from tests.support.trello.webhook_delivery import Ack

__all__ = [
    "ANY",
    "Ack",
    "ApiError",
    "Attachment",
    "Call",
    "Comment",
    "FakeTrello",
    "Fault",
    "Limits",
    "error",
]
