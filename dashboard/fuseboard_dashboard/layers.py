"""The layers that calls fail in, in words; the rules are those of ``page_failed_calls.sql``."""

from __future__ import annotations

from typing import Final

from fuseboard.conventions import Layer
from fuseboard_dashboard.language import t

LAYERS: Final = (
    Layer.TOOL, Layer.TIMEOUT, Layer.RETRY, Layer.BREAKER, Layer.FALLBACK, Layer.VALIDATION,
    Layer.SERIALIZATION, Layer.POOL, Layer.LIMIT, Layer.BUDGET,
)  # fmt: skip
"""Every value of ``failed_layer``."""


def words(layer: str) -> tuple[str, str]:
    """Return a layer's name and what it says of a call that failed in it."""
    known = {
        Layer.TOOL: (t("Tool"), t("the tool itself failed, at its only attempt")),
        Layer.TIMEOUT: (t("Timeout"), t("it took too long: a time limit, of ours or of a client")),
        Layer.RETRY: (t("Retry"), t("several attempts failed, for no reason with a layer of its "
                                    "own")),
        Layer.BREAKER: (t("Breaker"), t("an open or isolated breaker let no attempt pass")),
        Layer.FALLBACK: (t("Fallback"), t("what should have stood in failed as well")),
        Layer.VALIDATION: (t("Validation"), t("an answer came and was unusable: empty, partial, "
                                              "against its contract")),
        Layer.SERIALIZATION: (t("Serialisation"), t("the answer could not be decoded")),
        Layer.POOL: (t("Pool"), t("no connection was free in the client's pool")),
        Layer.LIMIT: (t("Limit"), t("our own limit of rate or concurrency refused it")),
        Layer.BUDGET: (t("Budget"), t("the budget of time, cost or calls was spent")),
    }  # fmt: skip
    return known.get(Layer(layer), (layer, "")) if layer in set(Layer) else (layer, "")
