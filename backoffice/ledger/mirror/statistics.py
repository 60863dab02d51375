"""Statistics for PostgreSQL's planner while the mirror is loaded for the first time.

Autovacuum analyzes a table up to a minute after it grew, or never where it is off. Meanwhile the planner takes a table
of many thousand rows for an empty one, and queries about the chain of balances take ten times as long.
"""

from django.db import connection

GROWTH = 4  # how many times as many rows as when the table was last analyzed
MIN_ROWS = 1_000
_ROWS = """
    SELECT GREATEST(reltuples, 0), COALESCE(pg_stat_get_live_tuples(oid), 0)
    FROM pg_class WHERE oid = 'ledger_transaction'::regclass
"""


def analyze_if_grown() -> bool:
    """Analyze the tables of the mirror if they grew several-fold since they last were; returns whether they did.

    Call it outside a transaction.
    """
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute(_ROWS)
        [(analyzed, rows)] = cursor.fetchall()
        if rows < max(MIN_ROWS, GROWTH * analyzed):
            return False
        cursor.execute("SELECT ledger_analyze_mirror()")  # their owner alone may analyze them
    return True
