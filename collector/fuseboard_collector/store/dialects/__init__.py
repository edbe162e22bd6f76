"""One definition of every query for two engines: macros, and how parameters are written.

The files under ``queries`` are SQL that both engines run, except for three things that each
writes its own way:

- ``@name(argument, …)`` is a macro; each engine's module lists what it stands for;
- ``$name::TYPE`` is a parameter, of one of the types in :data:`PARAMETER_TYPES`;
- what one engine takes for granted and the other needs to be told is a setting of its
  connection, never of a query.
"""

from fuseboard_collector.store.dialects.clickhouse import CLICKHOUSE
from fuseboard_collector.store.dialects.dialect import PARAMETER_TYPES, Dialect, MacroError
from fuseboard_collector.store.dialects.duckdb import DUCKDB

__all__ = ["CLICKHOUSE", "DUCKDB", "PARAMETER_TYPES", "Dialect", "MacroError"]
