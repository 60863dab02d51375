"""The triggers and constraints of the database, compared with those that the migrations create.

`expected_rules` has a list for each engine: kind, table, name and a hash of the definition. `make database-rules`
writes the lists anew after a change of migrations; a test fails until then.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from django.apps import apps
from django.db import connection

LISTED_POSTGRESQL = 15  # the major version with which `make database-rules` was run
FOLDER = Path(__file__).parent / "expected_rules"

_ON_POSTGRESQL = """
    WITH tables AS (
        SELECT oid, relname FROM pg_class
        WHERE relname = ANY(%s) AND relnamespace = current_schema()::regnamespace
    )
    SELECT 'trigger', relname, tgname,
           concat_ws(' ', pg_get_triggerdef(pg_trigger.oid, true), tgenabled, prosrc)
    FROM pg_trigger JOIN tables ON tables.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid
    WHERE NOT tgisinternal
    UNION ALL
    SELECT 'constraint', relname, conname,
           pg_get_constraintdef(pg_constraint.oid, true)
    FROM pg_constraint JOIN tables ON tables.oid = conrelid WHERE contype IN ('c', 'f', 'p', 'u', 'x')
    UNION ALL
    SELECT 'enforcement of constraint', relname, conname, concat_ws(' ', contype, (
               SELECT string_agg(attname, ',' ORDER BY place)
               FROM unnest(conkey) WITH ORDINALITY AS key (number, place)
               JOIN pg_attribute ON attrelid = conrelid AND attnum = number
           ), convalidated, (
               SELECT min(tgenabled::text) FROM pg_trigger WHERE tgconstraint = pg_constraint.oid
           ))
    FROM pg_constraint JOIN tables ON tables.oid = conrelid WHERE contype IN ('c', 'f', 'p', 'u', 'x')
    UNION ALL
    SELECT 'index', relname, indexrelid::regclass::text, pg_get_indexdef(indexrelid, 0, true)
    FROM pg_index JOIN tables ON tables.oid = indrelid
    WHERE indisunique AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)
    UNION ALL
    SELECT 'enforcement of index', relname, indexrelid::regclass::text,
           concat_ws(' ', (
               SELECT string_agg(coalesce(attname, 'expression'), ',' ORDER BY place)
               FROM unnest(indkey) WITH ORDINALITY AS key (number, place)
               LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = number
           ), indpred IS NOT NULL, indisvalid)
    FROM pg_index JOIN tables ON tables.oid = indrelid
    WHERE indisunique AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)
    UNION ALL
    SELECT 'setting', '', 'session_replication_role', current_setting('session_replication_role')
"""
_ON_SQLITE = "SELECT type, tbl_name, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
_TOKEN = re.compile(r"""("[^"]*"|'(?:[^']|'')*'|[(),])""")
_TEXT_CAST = re.compile(r"::(?:text|character varying)(?:\[\])?")
_CAST_ARRAY = re.compile(r"\((ARRAY\[[^\[\]()]*\])\)")
_CAST_LITERAL = re.compile(r"\(('(?:[^']|'')*')\)")
_NAME = re.compile(r'(?:CONSTRAINT )?"([^"]+)"')
_IS_CONSTRAINT = re.compile(r"\b(?:CONSTRAINT|CHECK|UNIQUE|PRIMARY KEY|REFERENCES)\b")


def altered_rules() -> list[str]:
    """The rules that the database lacks or defines otherwise, and the triggers that no migration made."""
    expected, present = expected_rules(), present_rules()
    # another version of PostgreSQL may write the same constraint differently: there its columns and flags count
    named_only = () if _is_version_of_list() else ("constraint ", "index ")
    altered = [
        rule
        for rule, definition in expected.items()
        if rule not in present or (present[rule] != definition and not rule.startswith(named_only))
    ]
    problems = [
        f"{rule} is {'changed' if rule in present else 'missing'}"
        for rule in altered
        if rule.removeprefix("enforcement of ") not in altered or not rule.startswith("enforcement of ")
    ]
    added = [rule for rule in present if rule not in expected and rule.startswith("trigger ")]
    return problems + [f"{rule} is unexpected" for rule in added]


def _is_version_of_list() -> bool:
    version = connection.get_database_version()
    return connection.vendor != "postgresql" or version[0] == LISTED_POSTGRESQL


def expected_rules() -> Mapping[str, str]:
    """The hash of the definition of each rule that the migrations make on this engine."""
    return _listed(connection.vendor)


@cache
def _listed(engine: str) -> Mapping[str, str]:
    lines = (FOLDER / f"{engine}.txt").read_text().splitlines()
    return {rule: definition for definition, _, rule in (line.partition(" ") for line in lines)}


def present_rules() -> Mapping[str, str]:
    """The same of each rule in the database: `trigger table.name`, `constraint table.name` and so on."""
    found = _on_postgresql() if connection.vendor == "postgresql" else _on_sqlite()
    return {f"{kind} {table}.{name}".replace(" .", " "): _hash(text) for kind, table, name, text in found}


def write_expected_rules() -> None:
    """Write the list of this engine from the database, which must be freshly migrated."""
    lines = [f"{definition} {rule}\n" for rule, definition in sorted(present_rules().items())]
    (FOLDER / f"{connection.vendor}.txt").write_text("".join(lines))
    _listed.cache_clear()


def _tables() -> list[str]:
    ours = [config for config in apps.get_app_configs() if config.name.startswith("backoffice.")]
    return [model._meta.db_table for config in ours for model in config.get_models(include_auto_created=True)]


def _on_postgresql() -> Iterator[tuple[str, str, str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(_ON_POSTGRESQL, [_tables()])
        stored = cursor.fetchall()
    for kind, table, name, text in stored:
        yield kind, table, name, _without_text_casts(text) if kind in {"constraint", "index"} else text


def _without_text_casts(definition: str) -> str:
    """The definition without what PostgreSQL writes otherwise after it was restored from a dump.

    It then casts each text of `ANY (ARRAY['a', 'b'])` instead of the array, which compares the same texts.
    """
    uncast = _TEXT_CAST.sub("", definition)
    return _CAST_LITERAL.sub(r"\1", _CAST_ARRAY.sub(r"\1", uncast))


def _on_sqlite() -> Iterator[tuple[str, str, str, str]]:
    """Triggers, unique indexes, and each constraint of a table or column, which SQLite stores in one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_ON_SQLITE)
        stored = cursor.fetchall()
    ours = set(_tables())
    for kind, table, name, sql in stored:
        if table not in ours:
            continue
        if kind == "table":
            yield from (
                ("constraint", table, found[1] if (found := _NAME.match(part)) else part, part)
                for part in _parts(sql)
                if _IS_CONSTRAINT.search(part)
            )
        elif kind == "trigger" or sql.startswith("CREATE UNIQUE"):
            yield kind, table, name, sql


def _parts(statement: str) -> list[str]:
    """What is between the commas of `CREATE TABLE … (…)`."""
    parts, depth = [""], 0
    for token in _TOKEN.split(statement.partition("(")[2]):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "," and depth == 0:  # noqa: S105 - of SQL
            parts.append("")
        elif depth >= 0:
            parts[-1] += token
    return [part.strip() for part in parts]


def _hash(definition: str) -> str:
    return hashlib.sha256(" ".join(definition.split()).encode()).hexdigest()[:16]
