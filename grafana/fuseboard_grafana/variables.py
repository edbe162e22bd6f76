"""The choices at the top of a board: data source, job, instance, tool and region."""

from __future__ import annotations

from typing import Final

from fuseboard.conventions import METRIC_CALLS
from fuseboard_grafana.panels.shapes import DATASOURCE, Json

ANY: Final = ".+"
_ON_TIME_RANGE_CHANGE: Final = 2
_CLASSIC_QUERY: Final = 1
_ALPHABETICAL: Final = 1


def variables() -> list[Json]:
    """Return the variables; each offers only what the choices before it leave."""
    return [
        _datasource(),
        _labels("job", "Job", METRIC_CALLS),
        _labels("instance", "Instance", f'{METRIC_CALLS}{{job=~"$job"}}'),
        _labels("tool", "Tool", f'{METRIC_CALLS}{{job=~"$job",instance=~"$instance"}}'),
        _labels(
            "region",
            "Region",
            f'{METRIC_CALLS}{{job=~"$job",instance=~"$instance",tool=~"$tool"}}',
        ),
    ]


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "includeAll": False,
        "multi": False,
        "hide": 0,
    }


def _labels(name: str, label: str, selector: str) -> Json:
    query = f"label_values({selector}, {name})"
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"qryType": _CLASSIC_QUERY, "query": query, "refId": f"Variable{label}"},
        "refresh": _ON_TIME_RANGE_CHANGE,
        "sort": _ALPHABETICAL,
        "multi": True,
        "includeAll": True,
        "allValue": ANY,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "hide": 0,
    }
