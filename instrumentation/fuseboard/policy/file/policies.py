"""The policies that a configuration file declares, and how they combine with those in the code."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from fuseboard.errors import ConfigurationError
from fuseboard.policy.config import Fallback, Policy, Validation
from fuseboard.policy.file.patches import Patch, did_you_mean, patch_of
from fuseboard.policy.file.reading import Document, read

_DEFAULTS: Final = "defaults"
_TOOLS: Final = "tools"
_OF_OTHERS: Final = frozenset({"objectives"})
"""Tables of the same file that the dashboard reads."""
# Some settings are legal only beside others, which the code may give.
_GENEROUS: Final = Policy(
    effects="none", fallback=Fallback(value=None), validation=Validation(non_empty=True)
)


@dataclass(frozen=True)
class PolicyFile:
    """What a file says: ``[defaults]`` for every tool, ``[tools.NAME]`` for those of a name.

    Attributes:
        path: Where it is, absolute.
    """

    path: Path
    _defaults: Patch
    _tools: Mapping[str, Patch]

    def __str__(self) -> str:
        return str(self.path)

    @property
    def tools(self) -> Collection[str]:
        """The names of the tools that it mentions."""
        return self._tools.keys()

    def words(self) -> str:
        """Return what it declares, for the log."""
        named = ", ".join(sorted(self._tools)) or "none by name"
        defaults = ", ".join(sorted(self._defaults.values)) or "none"
        return f"defaults for all tools: {defaults}; tools: {named}"

    def defaults_for(self, declared: Policy | None) -> dict[str, Any]:
        """Return the fields of a policy that a tool gets unless its code gives them."""
        given = _given(declared)
        return {name: value for name, value in self._defaults.parts().items() if name not in given}

    def policy_for(
        self, name: str, declared: Policy | None, defaults: dict[str, Any]
    ) -> Policy | None:
        """Return a tool's policy: its code's, completed by defaults, and what is said of it.

        Raises:
            ConfigurationError: If that is not legal.
        """
        patch = self._tools.get(name)
        if patch is None and not defaults:
            return declared
        base = replace(declared or Policy(), **defaults)
        policy: Policy = patch.onto(base) if patch is not None else base
        return None if declared is None and policy == Policy() else policy

    def refused(self, name: str, error: ConfigurationError) -> ConfigurationError:
        """Return the error for a policy that does not go with the function of a tool."""
        patch = self._tools.get(name)
        return patch.refused(error) if patch is not None else error


def read_policies(path: Path, *, imports: bool = True) -> PolicyFile:
    """Read a configuration file.

    A table that no code could make legal is refused at once, and not when the tool is made that
    it is about.

    Args:
        path: Where the file is.
        imports: Whether functions are imported that it names. If not, the policies are good for
            nothing but to find out whether the rest is legal.

    Raises:
        ConfigurationError: If the file can't be read or says something that is not legal.
    """
    document = read(path, imports=imports)
    _check_names(document)
    defaults = patch_of(Policy, document.tables.get(_DEFAULTS, {}), document, (_DEFAULTS,))
    named = document.tables.get(_TOOLS, {})
    if not isinstance(named, dict):
        raise document.wrong((_TOOLS,), f"[{_TOOLS}]: must be a table of tables, one per tool")
    tools = {
        name: patch_of(Policy, table, document, (_TOOLS, name)) for name, table in named.items()
    }
    for patch in (defaults, *tools.values()):
        _check(patch, defaults)
    return PolicyFile(path, defaults, tools)


def _check(patch: Patch, defaults: Patch) -> None:
    """Refuse what is legal neither by itself nor over code that goes as far as code can."""
    faults = []
    for code in (Policy(), _GENEROUS):
        for base in (code, _completed(code, defaults)):
            try:
                patch.onto(base)
            except ConfigurationError as fault:
                faults.append(fault)
            else:
                return
    raise faults[0]


def _completed(code: Policy, defaults: Patch) -> Policy:
    try:
        return replace(code, **defaults.parts())
    except ConfigurationError:
        return code  # to be complained of by itself


def _check_names(document: Document) -> None:
    for name in document.tables.keys() - {_DEFAULTS, _TOOLS} - _OF_OTHERS:
        raise document.wrong(
            (name,), f"there is no table [{name}]{did_you_mean(name, (_DEFAULTS, _TOOLS))}"
        )


def _given(declared: Policy | None) -> set[str]:
    """Return the fields that the code gives a tool."""
    if declared is None:
        return set()
    return {
        each.name for each in fields(declared) if getattr(declared, each.name) != _default(each)
    }


def _default(each: Field[Any]) -> Any:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return each.default
