"""Fake Trello server for an unmodified py-trello: the REST API and signed webhooks.

    async with FakeTrello() as trello:
        anna = trello.member("anna")
        board = trello.board("Work", [anna])
        todo, fix = trello.list(board, "To do"), trello.label(board, "draftsman")
        card = trello.card(board, todo, "Fix the parser", labels=[fix], by=anna)
        trello.comment(card, anna, "2")
        acks = await trello.deliver()

Interactions of people take effect at once; `deliver` sends their actions to the registered
webhooks, on request reordered or in copies. The fake returns Trello's errors, and injects faults on
request (`trello.faults`). Its clock is the machine's; `trello.later(seconds)` advances it.
Behavior that no source documents is marked "from memory" or "unknown".
"""

from __future__ import annotations

from draftsman_testing.fake.faults import ANY
from draftsman_testing.trello.api_errors import ApiError
from draftsman_testing.trello.entities import Attachment, Call, Comment
from draftsman_testing.trello.faults import Fault, error
from draftsman_testing.trello.limits import Limits
from draftsman_testing.trello.server import FakeTrello
from draftsman_testing.trello.webhook_delivery import Ack

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
