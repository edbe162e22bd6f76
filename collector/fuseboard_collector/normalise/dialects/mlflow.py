"""MLflow's OTLP export: every value is JSON, so that text is quoted twice."""

from __future__ import annotations

from fuseboard_collector.normalise.dialects.dialect import Dialect

DIALECT = Dialect(
    name="mlflow",
    tool=(("mlflow.spanFunctionName",),),
    call_id=(),
    arguments=(("mlflow.spanInputs",),),
    result=(("mlflow.spanOutputs",),),
    prefixes=(),
)
MARKS = {"mlflow.spanType": {'"TOOL"': DIALECT, "TOOL": DIALECT}}
