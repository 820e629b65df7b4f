"""Faults of the fake Trello, by HTTP method and path."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from draftsman_testing.fake import faults
from draftsman_testing.fake.faults import ANY

Route = tuple[str, str]
"""An HTTP method and the template of a path, such as ("POST", "/cards/{id}/actions/comments")."""


class Fault(faults.Fault):
    """Trello's faults, besides those of every fake.

    `ECHO_FIRST` is no fault of Trello: the webhooks of the call arrive before its response.
    """

    RATE_LIMIT: ClassVar = faults.Fault("rate limit")
    HTML_200: ClassVar = faults.Fault("html 200")
    CREATED_201: ClassVar = faults.Fault("created 201 after")
    ECHO_FIRST: ClassVar = faults.Fault("echo first")


def error(status: int, text: str) -> faults.Fault:
    """Refuse with this status and this plain text, without effect."""
    return faults.Fault("error", status=status, text=text)


class Faults(faults.Faults[Route]):
    """The faults of routes."""

    def __init__(self, routes: frozenset[Route]) -> None:
        super().__init__()
        self._routes = routes

    def next(self, method: str, path: str, fault: faults.Fault, times: int = 1) -> None:
        """Queue faults for the next calls of this route; PASS is no fault.

        Raises LookupError for an unknown route.
        """
        if not any(_matches((method, path), route) for route in self._routes):
            raise LookupError(f"the fake has no {method} {path}")
        self._queues[method, path].extend([fault] * times)

    def _queue(self, call: Route) -> deque[faults.Fault] | None:
        matching = (q for pattern, q in self._queues.items() if q and _matches(pattern, call))
        return next(matching, None)


def _matches(pattern: Route, route: Route) -> bool:
    return all(part in (ANY, value) for part, value in zip(pattern, route, strict=True))
