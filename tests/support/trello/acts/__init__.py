"""What people do on Trello, one module for each thing that they do it with."""

from __future__ import annotations
