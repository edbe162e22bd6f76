"""Makes a naive shim of fuseboard in every process that has this folder on its PYTHONPATH."""

from __future__ import annotations

import naive_telemetry

naive_telemetry.install_early()

import naive_wrapper  # noqa: E402

import fuseboard  # noqa: E402
from fuseboard import classification  # noqa: E402

naive_telemetry.install()
fuseboard.tool = naive_wrapper.tool
fuseboard.wrap = naive_wrapper.wrap
classification.judge_exception = naive_wrapper.judge  # type: ignore[assignment]
