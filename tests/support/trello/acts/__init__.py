"""What happens on boards: one module a kind of thing."""

from __future__ import annotations
