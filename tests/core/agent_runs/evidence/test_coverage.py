"""Coverage of the lines that a patch changes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from draftsman.agent_runs.evidence.coverage import Coverage, added_lines, changed_coverage

PATCH = """diff --git a/api/pay.py b/api/pay.py
index 1..2 100644
--- a/api/pay.py
+++ b/api/pay.py
@@ -1,3 +1,6 @@
 one
-two
+two
+# a comment
+three
+four
 five
diff --git a/new.py b/new.py
new file mode 100644
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+x
\\ No newline at end of file
"""
REPORT = """TN:
SF:pay.py
DA:1,9
DA:2,1
DA:4,0
DA:5,0,hash
DA:6,0
end_of_record
SF:/workspace/repo/new.py
DA:1,0
end_of_record
SF:/workspace/repo/new.py
DA:1,2
DA:odd,2
end_of_record
SF:unfinished.py
DA:1,2
"""


def test_changed_lines_are_counted_by_file() -> None:
    coverage = changed_coverage(PATCH, REPORT, "/workspace/repo", "api")
    assert list(coverage.lines()) == [
        "api/pay.py: not covered: 4-5",
        "2 of 4 changed lines are covered (50 %)",
    ]
    assert Coverage.of(json.loads(json.dumps(coverage.as_json()))) == coverage
    assert changed_coverage(PATCH, "", "/workspace/repo", "").percent == 100
    long = f"SF:new.py\nDA:1,{'9' * 5000}\nDA:{'1' * 5000},1\nend_of_record\n"
    assert changed_coverage(PATCH, long, "/workspace/repo", "").measured == 0


def test_added_lines_are_those_of_git(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(30)))
    (tmp_path / "ü b/").mkdir()
    (tmp_path / "ü b/ü").write_text("1\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    lines = [f"{n}\n" for n in range(30) if n != 4]
    lines[20] = "+++ b/other\n"
    (tmp_path / "a").write_text("".join(["first\n", *lines, "last"]))
    (tmp_path / "ü b/ü").write_text("1\n2\n")
    done = subprocess.run([*git, "diff"], check=True, capture_output=True, text=True)
    assert added_lines(done.stdout) == {"a": [1, 22, 31], "ü b/ü": [2]}
