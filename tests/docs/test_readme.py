"""The README's first example is the one that is tested, and gives what it promises."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import ROOT, blocks
from tests.docs.running import run_python

README = (ROOT / "README.md").read_text()
EXAMPLE = (ROOT / "examples" / "quickstart.py").read_text()


def test_the_example_in_the_readme_is_the_tested_example() -> None:
    (block,) = [block for block in blocks(README, "python") if "fuseboard.init" in block]
    assert block.strip() == EXAMPLE.split('"""\n\n', 1)[1].strip()
    assert len([line for line in block.splitlines() if line.strip()]) <= 15


def test_the_example_is_answered_with_one_retry_on_record(tmp_path: Path) -> None:
    shown = run_python(f"{EXAMPLE}\nprint(fuseboard.metrics_text()[0].decode())", tmp_path)
    assert shown.startswith("['clear in Lisbon', 'clear in Oslo', 'clear in Lima']")
    calls = re.search(
        r'^fuseboard_tool_calls_total\{.*outcome="ok".*\} (\S+)$', shown, re.MULTILINE
    )
    retried = re.search(
        r'^fuseboard_tool_attempted_calls_total\{.*retry="recovered".*\} 1\.0$', shown, re.MULTILINE
    )
    assert calls is not None
    assert float(calls[1]) == 3
    assert retried is not None


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make ([\w-]+)$", "\n".join(blocks(README, "sh")), flags=re.MULTILINE)
    assert set(targets) == {"run", "test"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
