"""A function that analyzes the tables of the mirror with the rights of their owner.

PostgreSQL lets only a table's owner analyze it, and only warns anybody else. The role that runs owns nothing.
"""

from django.db import migrations

from backoffice.core.database.triggers import executes

# The path is fixed, so that no name in the body can mean an object of whoever calls it.
CREATE = """
    DO $make$ BEGIN
        EXECUTE format(
            'CREATE FUNCTION ledger_analyze_mirror() RETURNS void LANGUAGE plpgsql '
            'SECURITY DEFINER SET search_path = %1$I, pg_temp AS '
            '$$ BEGIN ANALYZE %1$I.ledger_transaction, %1$I.ledger_names, %1$I.ledger_daytotal; END $$',
            current_schema()
        );
    END $make$
"""
REVOKE = "REVOKE ALL ON FUNCTION ledger_analyze_mirror() FROM PUBLIC"


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0001_squashed_0004_totals_not_reported"),
    ]

    operations = [
        migrations.RunPython(
            executes({"sqlite": [], "postgresql": [CREATE, REVOKE]}),
            executes({"sqlite": [], "postgresql": ["DROP FUNCTION ledger_analyze_mirror()"]}),
        ),
    ]
