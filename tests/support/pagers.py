"""Strict fakes of PagerDuty's Events API v2 and of Grafana OnCall's formatted webhook.

PagerDuty: https://developer.pagerduty.com/docs/send-alert-event. Grafana OnCall:
https://grafana.com/docs/oncall/latest/configure/integrations/references/webhook/.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from tests.support.http_server import Reply, Request

ROUTING_KEY: Final = "R0123456789ABCDEF0123456789ABCDE"
GRAFANA_PATH: Final = "/integrations/v1/formatted_webhook/secret-token/"
_EVENT: Final = {"routing_key", "event_action", "dedup_key", "payload", "client", "links"}
_PAYLOAD: Final = {
    *("summary", "source", "severity", "timestamp", "component", "class", "custom_details"),
}
_ALERT: Final = {"alert_uid", "title", "state", "message", "link_to_upstream_details"}


class FakePagers:
    """Both services; `incidents` are the states of each alert, in order.

    A failure quotes the request.
    """

    def __init__(self) -> None:
        self.incidents: dict[str, list[str]] = {}
        self.failures: list[int | None] = []
        """Statuses of the next replies; None drops the reply after the event was processed."""

    async def answer(self, request: Request) -> Reply | None:
        """Process a request."""
        failure = self.failures.pop(0) if self.failures else 0
        if failure:
            return Reply(failure, b"refused: " + request.path.encode() + b" " + request.body)
        document = json.loads(request.body)
        errors = [*self._errors(request, document)]
        if errors:
            return Reply(400, json.dumps({"status": "invalid event", "errors": errors}).encode())
        key = str(document.get("dedup_key") or document.get("alert_uid"))
        state = str(document.get("event_action") or document.get("state"))
        self.incidents.setdefault(key, []).append(state)
        if failure is None:
            return None
        body = {"status": "success", "message": "Event processed", "dedup_key": key}
        return Reply(202 if "event_action" in document else 200, json.dumps(body).encode())

    def _errors(self, request: Request, document: dict[str, Any]) -> list[str]:
        errors = []
        if request.method != "POST" or "json" not in request.headers.get("content-type", ""):
            errors.append("must be a POST of JSON")
        if request.path == GRAFANA_PATH:
            if unknown := document.keys() - _ALERT:
                errors.append(f"unknown {unknown}")
            if document.get("state") not in ("alerting", "acknowledged", "ok"):
                errors.append("state")
            return errors + [name for name in ("alert_uid", "title") if not document.get(name)]
        if request.path != "/v2/enqueue":
            return [f"no such path: {request.path}"]
        if unknown := document.keys() - _EVENT:
            errors.append(f"unknown {unknown}")
        if document.get("routing_key") != ROUTING_KEY:
            errors.append("routing_key is invalid")
        if document.get("event_action") not in ("trigger", "acknowledge", "resolve"):
            errors.append("event_action")
        if not 0 < len(str(document.get("dedup_key", ""))) <= 255:
            errors.append("dedup_key")
        if document.get("event_action") == "trigger":
            errors += _payload_errors(document.get("payload"))
        elif "payload" in document:
            errors.append("payload is for triggers")
        return errors


def _payload_errors(payload: Any) -> list[str]:
    if not isinstance(payload, dict) or payload.keys() != _PAYLOAD:
        return ["payload"]
    errors = []
    if not 0 < len(payload["summary"]) <= 1024:
        errors.append("summary")
    if payload["severity"] not in ("critical", "error", "warning", "info"):
        errors.append("severity")
    if datetime.fromisoformat(payload["timestamp"]).tzinfo is None:
        errors.append("timestamp")
    return errors
