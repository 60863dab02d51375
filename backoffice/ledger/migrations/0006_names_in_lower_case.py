r"""The names that are searched, in lower case: to compare one with `ILIKE` takes many times as long.

Processes of the release before go on finding all names, since `ILIKE` finds them in lower case too. The key of a
combination remains the hash of its names as the provider wrote them.

The function is replaced and committed first: from then on new names are stored in lower case. The existing ones are
updated after that, about a minute for a million of them, while the processes keep running.
"""

from django.db import migrations

from backoffice.core.database.triggers import executes

FUNCTION = r"""
    CREATE OR REPLACE FUNCTION ledger_note_names() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO ledger_names (key, counterparty, names)
        SELECT md5(names)::uuid, {counterparty}, {names}
        FROM (SELECT DISTINCT counterparty,
                     counterparty || E'\n' || sender || E'\n' || username || E'\n' || business_id AS names
              FROM new_rows) AS combinations
        ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$
"""
AS_WRITTEN = FUNCTION.format(counterparty="counterparty", names="names")
IN_LOWER_CASE = FUNCTION.format(counterparty="lower(counterparty)", names="lower(names)")
PUT_INTO_LOWER_CASE = """
    UPDATE ledger_names SET counterparty = lower(counterparty), names = lower(names)
    WHERE counterparty <> lower(counterparty) OR names <> lower(names)
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("ledger", "0005_analyze_with_the_rights_of_the_owner")]

    operations = [
        # Backwards, names stay in lower case: the release before finds them.
        migrations.RunPython(
            executes({"sqlite": [], "postgresql": [IN_LOWER_CASE]}),
            executes({"sqlite": [], "postgresql": [AS_WRITTEN]}),
        ),
        migrations.RunPython(
            executes({"sqlite": [], "postgresql": [PUT_INTO_LOWER_CASE]}), migrations.RunPython.noop
        ),
    ]
