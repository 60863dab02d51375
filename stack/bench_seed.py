"""Fills a mirror with made-up transactions, inside PostgreSQL, for measurements: ten million take some minutes.

Skewed as such lists are: most are of one currency, fulfilled and small; a few counterparties have most of them; a
counterparty, a status or an amount may be rare, or of one time only. The same number makes the same transactions.
"""

from collections.abc import Iterator

from django.db import connection

BATCH = 500_000
NOW = "2026-11-20 12:00:00+00"
YEARS = 3

_FACETS = """
INSERT INTO ledger_facet (currency, type, status, direction)
SELECT currency, way.type, status, way.direction
FROM unnest(ARRAY['NGN', 'USD', 'USDT']) currency, unnest(ARRAY['fulfilled', 'failed', 'processing']) status,
     (VALUES ('withdrawal', 'out'), ('deposit', 'in'), ('sent', 'out'), ('transfer', 'out'), ('transfer', 'in'),
             ('internalTransfer', 'out'), ('internalTransfer', 'in'), ('conversion', 'out'), ('conversion', 'in'))
     AS way (type, direction)
ON CONFLICT DO NOTHING
"""

# What is drawn first stays drawn: OFFSET 0 keeps PostgreSQL from drawing again for each mention.
_ROWS = """
WITH drawn AS (
    SELECT number,
           random() AS which_currency, random() AS which_type, random() AS which_status, random() AS which_party,
           (random() + random() + random() + random() - 2) * 2.2 AS size,
           %(now)s::timestamptz - (%(rows)s - number) * (%(years)s * interval '1 year' / %(rows)s)
               - random() * interval '1 hour' AS at
    FROM generate_series(%(first)s, %(last)s) number OFFSET 0
), chosen AS (
    SELECT *,
           CASE WHEN which_currency < 0.80 THEN 'NGN' WHEN which_currency < 0.95 THEN 'USD' ELSE 'USDT' END AS currency,
           CASE WHEN which_type < 0.30 THEN 'withdrawal' WHEN which_type < 0.60 THEN 'deposit'
                WHEN which_type < 0.80 THEN 'transfer' WHEN which_type < 0.92 THEN 'internalTransfer'
                WHEN which_type < 0.98 THEN 'conversion' ELSE 'sent' END AS type,
           CASE WHEN which_status < 0.96 THEN 'fulfilled' WHEN which_status < 0.9995 THEN 'failed'
                ELSE 'processing' END AS status,
           floor(power(which_party, 3) * greatest(%(rows)s / 30, 20))::int AS party
    FROM drawn OFFSET 0
), named AS (
    SELECT *,
           CASE WHEN type IN ('withdrawal', 'sent') THEN 'out' WHEN type = 'deposit' THEN 'in'
                WHEN number %% 2 = 0 THEN 'in' ELSE 'out' END AS direction,
           round((CASE currency WHEN 'NGN' THEN 60000 ELSE 150 END * exp(size))::numeric, 2) AS amount,
           (ARRAY['Ada', 'Tunde', 'Chidi', 'Amara', 'Femi', 'Zainab', 'Ngozi', 'Kola', 'Bisi', 'Emeka'])
               [1 + party %% 10]
           || ' ' ||
           (ARRAY['Chidinma', 'Oluwaseun', 'Ifeanyi', 'Adaeze', 'Babatunde', 'Nkechi', 'Yusuf'])[1 + party / 10 %% 7]
           || ' ' ||
           (ARRAY['Obi', 'Bello', 'Okafor', 'Nwosu', 'Ade', 'Musa', 'Eze', 'Balogun', 'Okoro', 'Lawal', 'Sani'])
               [1 + party / 70 %% 11]
           || ' ' || to_hex(party * 2654435761 %% 4294967296) AS other
    FROM chosen OFFSET 0
)
INSERT INTO ledger_transaction (
    transaction_id, facet_id, currency, type, status, direction, occurred_at, created_at, updated_at, date, amount, fee,
    previous_balance, sender_previous_balance, from_amount, from_currency, sender, username, counterparty,
    is_from_registered_user, business_id, version, digest, first_seen_at
)
SELECT md5(number::text)::uuid::text, facet.id, currency, type, status, direction, at, at, at + interval '1 minute',
       to_char(at, 'YYYY-MM-DD'), amount, round(amount * 0.001, 2), round(amount * 7, 2), NULL, NULL, '',
       CASE direction WHEN 'in' THEN other ELSE 'merchant' END, CASE direction WHEN 'in' THEN 'merchant' ELSE other END,
       other, party %% 3 = 0, 'biz-' || party %% 3, 'v2', decode(md5(number::text), 'hex'), %(now)s
FROM named JOIN ledger_facet facet USING (currency, type, status, direction)
ORDER BY at
"""

_TOTALS = """
INSERT INTO ledger_daytotal (day, facet_id, count, amount, fee)
SELECT (occurred_at AT TIME ZONE 'UTC')::date, facet_id, count(*), sum(amount), coalesce(sum(fee), 0)
FROM ledger_transaction GROUP BY 1, 2
"""


def seed(rows: int) -> Iterator[int]:
    """Put so many transactions into an empty mirror, with their facets and totals; tells after each batch how many.

    Indexes are taken off before and built again after, which is several times faster than keeping them.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.42)")
        cursor.execute(_FACETS)
        indexes = _take_indexes_off()
        for first in range(1, rows + 1, BATCH):
            last = min(first + BATCH - 1, rows)
            cursor.execute(_ROWS, {"first": first, "last": last, "rows": rows, "now": NOW, "years": YEARS})
            yield last
        for definition in indexes:
            cursor.execute(definition)
        cursor.execute(_TOTALS)
        cursor.execute("VACUUM (ANALYZE) ledger_transaction")
        cursor.execute("ANALYZE")


def _take_indexes_off() -> list[str]:
    """Drop what makes writing slow; returns the statements that bring it back, constraints as constraints."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), pg_get_constraintdef(own.oid), conname
            FROM pg_index LEFT JOIN pg_constraint own ON conindid = indexrelid AND contype = 'u'
            WHERE indrelid = 'ledger_transaction'::regclass AND NOT indisprimary
            """
        )
        found = cursor.fetchall()
        for index, _, constraint, name in found:
            dropped = (
                f"ALTER TABLE ledger_transaction DROP CONSTRAINT {name}"
                if constraint
                else f"DROP INDEX {index}"
            )
            cursor.execute(dropped)
    return [
        f"ALTER TABLE ledger_transaction ADD CONSTRAINT {name} {constraint}" if constraint else definition
        for _, definition, constraint, name in found
    ]
