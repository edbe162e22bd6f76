"""An agent whose exceptions carry secrets: ``leaky_agent.py ENDPOINT CANARY``."""

from __future__ import annotations

import contextlib
import sys
import time

import fuseboard


@fuseboard.tool
def leak(text: str, password: str) -> None:
    raise ConnectionError(text)


def main() -> None:
    endpoint, canary = sys.argv[1], sys.argv[2]
    fuseboard.init(service="leaky-agent", region="us-east", endpoint=endpoint)
    texts = [
        f"GET https://admin:{canary}@db.internal:5432/x?token={canary} failed",
        f"Authorization: Bearer {canary}",
        f"api_key={canary} was refused",
        f'{{"password": "{canary}"}}',
        f"invalid key sk-proj-{canary}",
    ]
    deadline = time.monotonic() + 8
    while time.monotonic() < deadline:
        for text in texts:
            with contextlib.suppress(ConnectionError):
                leak(text, password=canary)
        time.sleep(0.1)
    body, _ = fuseboard.metrics_text()
    sys.stdout.write(body.decode())
    sys.exit(0 if fuseboard.flush(timeout=60) else 3)


if __name__ == "__main__":
    main()
