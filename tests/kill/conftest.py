"""The fixture of the kill tests."""

from __future__ import annotations

from tests.kill.strikes import place as place
