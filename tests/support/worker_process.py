"""A process of pytest-xdist: executes the code that execnet sends."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    exec(eval(sys.stdin.readline()))
