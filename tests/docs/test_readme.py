"""The README's code is run, its links lead somewhere, its commands exist."""

from __future__ import annotations

import http.server
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))]
FUSEBOARD = Path(sys.executable).parent / "fuseboard"


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def weather_url() -> Iterator[str]:
    """Serve a JSON document on loopback."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"sky": "clear"}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Stay silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/weather"
    server.shutdown()
    server.server_close()


def run_python(path: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(path)], env={**os.environ, **environment},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_in_the_readme_is_the_tested_example() -> None:
    example = (ROOT / "examples" / "quickstart.py").read_text()
    (block,) = [block for block in blocks(README, "python") if "fuseboard.init" in block]
    body = example.split('"""\n\n', 1)[1].split('\n\nif __name__ == "__main__":')[0]
    assert block.strip() == body.strip()


def test_the_quickstart_runs(weather_url: str) -> None:
    assert "clear" in run_python(ROOT / "examples" / "quickstart.py", WEATHER_URL=weather_url)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path, weather_url: str, tmp_path: Path) -> None:
    for number, block in enumerate(blocks(page.read_text(), "python")):
        script = tmp_path / f"block_{number}.py"
        script.write_text(block)
        run_python(script, WEATHER_URL=weather_url)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    """Every ``fuseboard …`` in a shell block is a command with those options."""
    for line in "\n".join(blocks(page.read_text(), "sh")).splitlines():
        words = shlex.split(line, comments=True)
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
