"""The README's code is run, its links lead somewhere, its commands exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
EXAMPLE = (ROOT / "examples" / "quickstart.py").read_text()
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
NOBODY = "http://127.0.0.1:9"
"""The port of the discard service, which nobody runs."""

FUSEBOARD = Path(sys.executable).parent / "fuseboard"


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def run_python(code: str, folder: Path) -> str:
    """Run code as a user would, but on free ports and without a server that may run here."""
    script = folder / "block.py"
    code = code.replace("metrics_port=9464", "metrics_port=0")
    script.write_text(code.replace("http://127.0.0.1:4318", NOBODY))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=folder,
        env={**os.environ, "FUSEBOARD_ENDPOINT": NOBODY},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    for block in blocks(page.read_text(), "python"):
        run_python(block, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    """Every ``fuseboard …`` in a shell block is a command with those options."""
    for line in "\n".join(blocks(page.read_text(), "sh")).splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] == ["make", "run"]:
            # The Makefile hands them on.
            options = [word.removeprefix("ARGS=") for word in words[2:]]
            words = ["fuseboard", "demo", *shlex.split(" ".join(options))]
        if not words or words[0] != "fuseboard":
            continue
        command = [word for word in words[1:] if not word.startswith("-")][:2]
        tries = [[*command, "--help"], [*command[:1], "--help"]]
        helps = [
            subprocess.run([str(FUSEBOARD), *words_], capture_output=True, text=True, check=False)
            for words_ in tries
        ]
        shown = next((done.stdout for done in helps if done.returncode == 0), None)
        assert shown is not None, line
        for option in (word for word in words if word.startswith("--")):
            assert option.split("=")[0] in shown, f"{option} in {line!r}"


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make ([\w-]+)$", "\n".join(blocks(README, "sh")), flags=re.MULTILINE)
    assert set(targets) == {"run", "test"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
