"""Debian's nginx as an ordinary process in front of a server, with the file of our examples."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import free_port, wait_until

EXAMPLE = Path(__file__).parents[1] / "examples" / "nginx" / "fuseboard.conf"
MAIN = """
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include site.conf;
}
"""


def changed(text: str, *replacements: tuple[str, str]) -> str:
    """Replace what must occur exactly once each."""
    for old, new in replacements:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@dataclass
class Nginx:
    """One nginx; may be stopped and started again.

    Attributes:
        folder: Everything it writes is in here.
        ui_port: Port of the dashboard behind it.
        replacements: Further changes of the example.
        more: Lines for the place of the dashboard.
    """

    binary: Path
    folder: Path
    ui_port: int
    port: int = field(default_factory=free_port)
    replacements: tuple[tuple[str, str], ...] = ()
    more: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return where the dashboard is for people."""
        return f"http://127.0.0.1:{self.port}/fuseboard"

    def start(self) -> Nginx:
        self.folder.mkdir(parents=True, exist_ok=True)
        own = (
            ("listen 80;", f"listen 127.0.0.1:{self.port};"),
            ("server_name ops.example;", "server_name 127.0.0.1;"),
            ("http://127.0.0.1:8501", f"http://127.0.0.1:{self.ui_port}"),
        )
        # Own ones last: a variant may replace a line that has the port.
        site = changed(EXAMPLE.read_text(), *self.replacements, *own)
        place = "    location /fuseboard/ {\n"
        site = changed(site, (place, f"{place}{self.more}\n"))
        (self.folder / "site.conf").write_text(site)
        (self.folder / "nginx.conf").write_text(MAIN)
        command = [
            str(self.binary), "-p", str(self.folder), "-c", "nginx.conf", "-e", "error.log"
        ]  # fmt: skip
        with (self.folder / "output.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self.is_ready, seconds=20, what="nginx in front of a server")
        return self

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "output.log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=2):
                return True
        except urllib.error.HTTPError as error:
            return error.code == 401  # it asks for a password
        except OSError:
            return False

    def stop(self) -> None:
        """Stop, which cuts every connection."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=10)
