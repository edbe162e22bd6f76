"""How long ``import fuseboard`` takes, against what it would take by hand.

The wheel is installed without extras into an empty virtual environment. The floor imports what
telemetry written by hand needs: OpenTelemetry's SDK, its OTLP/HTTP exporter, prometheus_client.
Bars: at most 1.1 times the floor, and nothing of the dashboard is imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import measuring

BAR = 1.1
HEAVY = ("streamlit", "duckdb", "pandas", "pyarrow")
STATEMENTS = {
    "floor": "import opentelemetry.sdk.trace, prometheus_client; "
    "import opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "without exporter": "import opentelemetry.sdk.trace, prometheus_client",
    "fuseboard": "import fuseboard",
}
PROBE = """
import json, sys, time
wall, cpu = time.perf_counter(), time.process_time()
{statement}
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
heavy = [name for name in {heavy!r} if name in sys.modules]
print(json.dumps({{"wall ms": wall * 1e3, "cpu ms": cpu * 1e3,
                   "modules": len(sys.modules), "heavy": heavy}}))
"""


def make_environment(folder: Path) -> Path:
    """Build the wheel and install it without extras into an empty environment."""
    project = Path(__file__).resolve().parents[1]
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(project)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", str(wheel)],
        check=True,
    )
    return python


def probe(python: Path, statement: str) -> dict[str, float]:
    source = PROBE.format(statement=statement, heavy=HEAVY)
    done = subprocess.run(
        [str(python), "-I", "-c", source], check=True, capture_output=True, text=True
    )
    figures = json.loads(done.stdout)
    figures["heavy"] = len(figures["heavy"])
    return {key: float(value) for key, value in figures.items()}


def main() -> int:
    parser = measuring.arguments(__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, help="Python of a prepared environment")
    args = parser.parse_args()
    rounds = 7 if args.quick else 21
    with tempfile.TemporaryDirectory() as folder:
        python = args.python or make_environment(Path(folder))
        figures: dict[str, list[dict[str, float]]] = {name: [] for name in STATEMENTS}
        for number in range(rounds + 1):
            for name, statement in STATEMENTS.items():
                measured = probe(python, statement)
                if number:  # the first round writes the byte code
                    figures[name].append(measured)
    rows = {name: measuring.medians(each) for name, each in figures.items()}
    ratio = rows["fuseboard"]["cpu ms"] / rows["floor"]["cpu ms"]
    rows["fuseboard"]["ratio"] = ratio
    measuring.report("Import time in fresh processes, median", rows, args)
    failures = [f"import takes {ratio:.2f} times the floor, more than {BAR}"] if ratio > BAR else []
    if rows["fuseboard"]["heavy"]:
        failures.append(f"one of {', '.join(HEAVY)} is imported")
    return measuring.verdict(failures)


if __name__ == "__main__":
    sys.exit(main())
