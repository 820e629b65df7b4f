"""Strict fakes of PagerDuty and of Grafana OnCall: the alerts they take, and their webhooks.

PagerDuty: https://developer.pagerduty.com/docs/send-alert-event; V3 webhooks, with the fields and
the signatures of https://developer.pagerduty.com/docs/webhooks-overview and /verifying-signatures.
Grafana OnCall: https://grafana.com/docs/oncall/latest/configure/integrations/references/webhook/
and https://grafana.com/docs/oncall/latest/configure/integrations/outgoing-webhooks/.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from draftsman_testing.http_server import Reply, Request

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
        self._webhooks = 0

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

    def pagerduty_webhook(
        self, key: str, what: str, user: str | None, at: str, secrets: Sequence[str]
    ) -> tuple[bytes, dict[str, str]]:
        """Return a V3 webhook of an incident that was triggered; without `user` by the API.

        It has a signature of each secret of the subscription.
        """
        assert "trigger" in self.incidents[key], f"no incident {key}"
        agent = {"id": user, "summary": f"Person {user}", "type": "user_reference"}
        integration = {"id": "PINT001", "type": "events_api_v2_inbound_integration_reference"}
        self._webhooks += 1
        event: dict[str, Any] = {
            "id": f"5ac64822-4adc-4fda-ade0-{self._webhooks:012}",
            "event_type": f"incident.{what}",
            "resource_type": "incident",
            "occurred_at": at,
            "agent": agent if user else integration,
            "client": None,
            "data": {
                "id": "PGR0VU2",
                "type": "incident",
                "number": 2,
                "status": what if what in ("acknowledged", "resolved") else "triggered",
                "incident_key": key,
                "title": "D-1/1",
                "urgency": "high",
            },
        }
        body = json.dumps({"event": event}).encode()
        signed = [hmac.new(s.encode(), body, hashlib.sha256).hexdigest() for s in secrets]
        header = ",".join(f"v1={signature}" for signature in signed)
        return body, {
            "Content-Type": "application/json",
            "User-Agent": "PagerDuty-Webhook/V3.0",
            "X-Webhook-Id": event["id"],
            "X-PagerDuty-Signature": header,
        }

    def grafana_webhook(
        self, key: str, what: str, user: dict[str, str] | None, at: str, authorization: str
    ) -> tuple[bytes, dict[str, str]]:
        """Return an outgoing webhook of the trigger types for a status, with all data forwarded."""
        assert "alerting" in self.incidents[key], f"no alert group {key}"
        document: dict[str, Any] = {
            "event": {"type": what, "time": at},
            "user": user,
            "alert_group": {"id": "I6HNZGUFG4K11", "state": f"{what}d", "title": "D-1/1"},
            "alert_group_id": "I6HNZGUFG4K11",
            "alert_payload": {"alert_uid": key, "state": "alerting", "title": "D-1/1"},
            "integration": {"id": "CZ7URAT4V3QF2", "type": "formatted_webhook"},
            "notified_users": [],
            "users_to_be_notified": [],
        }
        headers = {"Content-Type": "application/json", "Authorization": authorization}
        return json.dumps(document).encode(), headers

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
