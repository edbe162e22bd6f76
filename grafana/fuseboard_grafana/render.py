"""Write the boards as JSON files, the same on every run."""

from __future__ import annotations

import json
from pathlib import Path

from fuseboard_grafana.boards import BOARDS


def render_boards() -> dict[str, str]:
    """Render all boards.

    Returns:
        JSON text by file name; the name is the board's uid.
    """
    boards = [build() for build in BOARDS]
    return {
        f"{board['uid']}.json": json.dumps(board, indent=2, ensure_ascii=False) + "\n"
        for board in boards
    }


def write_boards(folder: Path) -> list[Path]:
    """Write each board to ``folder``, which is made if it is missing; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in render_boards().items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def check_boards(folder: Path) -> list[str]:
    """Return the names of the files in ``folder`` that are missing or out of date."""
    return [
        name
        for name, text in render_boards().items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]
