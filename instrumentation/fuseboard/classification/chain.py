"""The chain of classifiers: the first that matches decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fuseboard import guard
from fuseboard.classification.aws import classify_aws, classify_aws_connection
from fuseboard.classification.causes import causes_of
from fuseboard.classification.control_flow import control_flow_outcome, is_cancellation
from fuseboard.classification.databases import (
    classify_database,
    classify_database_connection,
)
from fuseboard.classification.groups import describe, is_group, leaves_of
from fuseboard.classification.http import classify_http
from fuseboard.classification.http_clients import classify_client, classify_connection
from fuseboard.classification.inspecting import message_of, qualified_name
from fuseboard.classification.mail import classify_mail
from fuseboard.classification.memory import Memory
from fuseboard.classification.network import classify_network
from fuseboard.classification.processes import classify_process
from fuseboard.classification.python import classify_data, classify_python, is_defect
from fuseboard.classification.results import ResultFinding, inspect_result
from fuseboard.classification.sdk_errors import (
    CIRCUIT_OPEN,
    classify_own,
    classify_sdk,
    classify_sdk_connection,
)
from fuseboard.classification.stores import classify_store, classify_store_connection
from fuseboard.classification.user import (
    ask_about_exception,
    ask_about_result,
    has_classifiers,
    judges_results,
)
from fuseboard.classification.validation import classify_validation
from fuseboard.classification.verdicts import severity, unclassified_fault
from fuseboard.conventions import Outcome
from fuseboard.record import Fault, Verdict

Classifier = Callable[[BaseException], Verdict | None]

_UNMATCHED: Final = unclassified_fault()
_FAILED: Final = unclassified_fault("classifier_failed")
_MEMORY: Final = Memory()

# Exceptions that say all; asked of every link of the chain before any of the last row. Those
# with codes of their own come before HTTP: such a code may look like a status.
_EXACT: Final[tuple[Classifier, ...]] = (
    classify_own,
    classify_sdk,
    classify_validation,
    classify_process,
    classify_database,
    classify_store,
    classify_mail,
)
_EXACT_AFTER_HTTP: Final[tuple[Classifier, ...]] = (
    classify_client,
    classify_network,
    classify_data,
)
# Exceptions that only give the direction; a cause that says more comes first.
_GENERAL: Final[tuple[Classifier, ...]] = (
    classify_sdk_connection,
    classify_aws_connection,
    classify_database_connection,
    classify_store_connection,
    classify_connection,
    classify_python,
)


def judge_exception(
    error: BaseException, now: float, ambient: BaseException | None = None
) -> Fault | Outcome:
    """Judge what a tool raised; never raises.

    Args:
        error: The exception as the caller will see it.
        now: Wall time, seconds since the epoch.
        ambient: What the caller was handling when the call began, if anything.

    Returns:
        The outcome if the exception is no fault (cancellation, control flow), else the fault.
    """
    try:
        verdict, error_type = _recall(error, now, ambient)
    except Exception as fault:
        guard.swallow("classifying an exception", fault)
        verdict, error_type = _FAILED, qualified_name(type(error))
    if isinstance(verdict, Outcome):
        return verdict
    return Fault(verdict, error_type, _words_for(error))


def _words_for(error: BaseException) -> str:
    try:
        return describe(error, _faults_in(error)) if is_group(error) else message_of(error)
    except Exception as fault:
        guard.swallow("describing a group of exceptions", fault)
        return message_of(error)


def _faults_in(group: BaseException) -> list[BaseException]:
    return [leaf for leaf in leaves_of(group) if not is_cancellation(leaf)]


def _recall(
    error: BaseException, now: float, ambient: BaseException | None
) -> tuple[Verdict | Outcome, str]:
    """Judge an exception, by memory where its type says all."""
    key = None if has_classifiers() else _MEMORY.key_of(error, ambient)
    judged = _MEMORY.recall(key) if key is not None else None
    if judged is not None:
        return judged
    verdict = control_flow_outcome(error) or _judge(error, now, ambient)
    if key is not None:
        return _MEMORY.remember(key, verdict)
    return verdict, qualified_name(type(error))


def judge_result(value: object, now: float) -> ResultFinding | None:
    """Judge what a tool returned; never raises.

    Args:
        value: The returned value, which is only looked at.
        now: Wall time, seconds since the epoch.

    Returns:
        What is wrong with it, or None.
    """
    if value is None and not judges_results():
        return None
    try:
        verdict = ask_about_result(value)
        if verdict is not None:
            return ResultFinding(verdict, verdict.classifier_id)
        return inspect_result(value, now)
    except Exception as fault:
        guard.swallow("classifying a result", fault)
        return None


def _judge(error: BaseException, now: float, ambient: BaseException | None) -> Verdict | Outcome:
    own = ask_about_exception(error)
    if own is not None:
        return own
    if not is_group(error):
        return _judge_chain(error, now, ambient, is_asked=True)
    leaves = _faults_in(error)
    verdicts = [_judge_chain(leaf, now, ambient) for leaf in leaves]
    return _gravest(list(zip(leaves, verdicts, strict=True)))


def _gravest(judged: list[tuple[BaseException, Verdict]]) -> Verdict:
    if not judged:
        return _UNMATCHED
    leaf, verdict = max(judged, key=lambda pair: severity(pair[1]))
    verdicts = [verdict for _, verdict in judged]
    return replace(
        verdict,
        cause_type=verdict.cause_type or qualified_name(type(leaf)),
        # Trying again helps only if every one of the faults passes.
        retryable=all(verdict.retryable for verdict in verdicts),
        ambiguous=any(verdict.ambiguous for verdict in verdicts),
        retry_after=max(
            (v.retry_after for v in verdicts if v.retry_after is not None), default=None
        ),
    )


def _judge_chain(
    error: BaseException, now: float, ambient: BaseException | None, is_asked: bool = False
) -> Verdict:
    general: Verdict | None = None
    for link, wraps_another in causes_of(error, ambient):
        if is_cancellation(link):
            continue
        if is_group(link):
            verdict: Verdict | None = _judge_members(link, now)
        else:
            verdict = _judge_exactly(link, now, is_asked=is_asked and link is error)
        if verdict is not None:
            return _from_link(verdict, link, error)
        # What opened a breaker just now says more than that it is open.
        if general is None or general.classifier_id == CIRCUIT_OPEN:
            found = _ask_all(_GENERAL, link)
            general = general if found is None else _from_link(found, link, error)
        # A defect met while another fault was handled is the tool's own; only a deliberate
        # "raise ... from" makes the other fault the reason.
        if is_defect(link) and not wraps_another:
            break
    return general or _UNMATCHED


def _judge_members(group: BaseException, now: float) -> Verdict | None:
    judged = []
    for leaf in leaves_of(group):
        verdict = _judge_exactly(leaf, now)
        if verdict is not None and not is_cancellation(leaf):
            judged.append((leaf, verdict))
    return _gravest(judged) if judged else None


def _judge_exactly(link: BaseException, now: float, is_asked: bool = False) -> Verdict | None:
    """Ask the users' classifiers, unless they know of this exception, and the exact ones."""
    own = None if is_asked else ask_about_exception(link)
    if isinstance(own, Verdict):
        return own
    return (
        _ask_all(_EXACT, link)
        or classify_aws(link, now)
        or classify_http(link, now)
        or _ask_all(_EXACT_AFTER_HTTP, link)
    )


def _ask_all(classifiers: tuple[Classifier, ...], link: BaseException) -> Verdict | None:
    for classify in classifiers:
        verdict = classify(link)
        if verdict is not None:
            return verdict
    return None


def _from_link(verdict: Verdict, link: BaseException, seen: BaseException) -> Verdict:
    if link is seen or verdict.cause_type is not None:
        return verdict
    return replace(verdict, cause_type=qualified_name(type(link)))
