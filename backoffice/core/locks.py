"""Turns to be taken about something for which there is no row to lock yet."""

from django.db import connection


def hold(name: str) -> None:
    """Hold this name to the end of the transaction; whoever else wants it waits, and then sees what was committed.

    SQLite needs nothing: there a transaction holds the only write lock from its beginning (BEGIN IMMEDIATE).
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
