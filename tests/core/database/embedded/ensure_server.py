"""A process that ensures an embedded server, prints its URL and process ID, and waits.

python -m tests.core.database.embedded.ensure_server DATA_DIR IDLE_TIMEOUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from draftsman.database.embedded import EmbeddedServer

if __name__ == "__main__":
    server = EmbeddedServer(Path(sys.argv[1]), float(sys.argv[2]))
    print(json.dumps([server.ensure(), server.status().pid]), flush=True)  # noqa: T201
    sys.stdin.read()
