"""Fail when a source file has outgrown one sitting, or holds unfinished work."""

import re
import subprocess
import sys
from pathlib import Path

MAX_LINES = 500
SOURCES = {".py", ".go"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))")


def main() -> int:
    """Check every file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    problems = [
        problem
        for path in map(Path, listed)
        if path.suffix in SOURCES and path.exists() and path != Path("tools/check_files.py")
        for problem in _problems(path)
    ]
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


def _problems(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    found = [
        f"{path}:{number}: unfinished work without an issue number"
        for number, line in enumerate(lines, 1)
        if UNFINISHED.search(line)
    ]
    if len(lines) > MAX_LINES:
        found.append(f"{path}: {len(lines)} lines; split it, {MAX_LINES} are the ceiling")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
