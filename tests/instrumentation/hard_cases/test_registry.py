"""Each hard case has a test that is named after it, and that a naive shim fails.

The naive shim is in the folder ``naive``: functools.wraps, a span around the call, a retry loop,
and a telemetry that sends everything as it comes. With that folder on PYTHONPATH, its
``sitecustomize`` puts it in the place of the real one, in every process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.timeout(400)

HERE = Path(__file__).parent
TESTS = HERE.parent.parent
HARD_CASES = (*range(1, 33), *range(49, 52))
PROOFS = {
    int(number): proof
    for number, _, proof in (
        line.partition(" ") for line in (HERE / "proofs.txt").read_text().splitlines()
    )
}
"""For each hard case a test that is run against the naive shim as well."""


@pytest.fixture(scope="module")
def failed_by_naive(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """Run the proofs against the naive shim; return how many runs of each test failed."""
    report = tmp_path_factory.mktemp("naive") / "report.xml"
    paths = [str(HERE / "naive"), *filter(None, [os.environ.get("PYTHONPATH")])]
    options = ["-q", "--timeout=10", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", *options, f"--junitxml={report}",
            *(str(HERE.parent / proof) for proof in PROOFS.values()),
        ],
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )  # fmt: skip
    assert report.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    failed: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):
        has_failed = case.find("failure") is not None or case.find("error") is not None
        failed[(case.get("name") or "").partition("[")[0]] += has_failed
    return failed


@pytest.mark.parametrize("number", HARD_CASES)
def test_the_case_has_tests_that_are_named_after_it(number: int) -> None:
    name = re.compile(rf"def test_\w*hc_{number:02}_\w+")
    files = [file for file in TESTS.rglob("test_*.py") if name.search(file.read_text())]
    assert files, f"no test is named test_hc_{number:02}_..."


@pytest.mark.parametrize("number", HARD_CASES)
def test_a_naive_shim_fails(failed_by_naive: Counter[str], number: int) -> None:
    name = PROOFS[number].partition("::")[2]
    assert name in failed_by_naive, f"{name} was not run"
    assert failed_by_naive[name] > 0, f"{name} passes with a naive shim: it proves nothing"
