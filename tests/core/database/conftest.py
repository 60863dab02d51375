"""A second role of the test database, with the rights of the one that runs in production."""

from collections.abc import Iterator

import pytest
from django.db import connection

from backoffice.core.database.grants import refresh_grants


@pytest.fixture
def runtime_role(transactional_db: None) -> Iterator[str]:
    """Until the end of the test this connection runs as a role that owns nothing; it is dropped afterwards."""
    role = f"{connection.settings_dict['NAME']}_runs"
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE ROLE "{role}"')
    try:
        refresh_grants(role)
        with connection.cursor() as cursor:
            cursor.execute(f'SET ROLE "{role}"')
        yield role
    finally:
        connection.close()  # whatever role and transaction the test left
        with connection.cursor() as cursor:
            cursor.execute(f'DROP OWNED BY "{role}"')
            cursor.execute(f'DROP ROLE "{role}"')
