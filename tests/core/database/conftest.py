"""A second role of the test database, with the rights of the one that runs in production."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from backoffice.core.database.role import refresh_grants


@pytest.fixture
def runtime_role(transactional_db: None) -> Iterator[str]:
    """Until the end of the test connections run as a role that owns nothing; it is dropped afterwards."""
    role = f"{connection.settings_dict['NAME']}_runs"
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE ROLE "{role}"')

    def run_as_role(connection: BaseDatabaseWrapper, **_of_signal: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f'SET ROLE "{role}"')

    try:
        refresh_grants(role)
        run_as_role(connection)
        connection_created.connect(run_as_role)  # the product closes connections, and threads have their own
        yield role
    finally:
        connection_created.disconnect(run_as_role)
        connection.close()  # whatever role and transaction the test left
        with connection.cursor() as cursor:
            cursor.execute(f'DROP OWNED BY "{role}"')
            cursor.execute(f'DROP ROLE "{role}"')
