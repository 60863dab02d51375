"""Fill a mirror with generated transactions inside PostgreSQL: ten million in less than five minutes on two
cores. And the statement that writes generated operations beside them.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import psycopg

BATCH = 250_000
NOW = "2026-11-20 12:00:00+00"
YEARS = 3
SESSIONS = 2
CURRENCIES = ("NGN", "USD", "USDT")
IN_THE_MIDDLE = (Decimal(80_000_000_000), Decimal(50_000_000), Decimal(50_000_000))

_OF_SESSION = (
    "SET maintenance_work_mem = '512MB'",
    "SET max_parallel_maintenance_workers = 0",  # there are as many sessions as cores
    "SET work_mem = '256MB'",
    "SET jit = off",
    "SET enable_nestloop = off",  # the planner underestimates rows with the four values of a facet
)

_FACETS = """
INSERT INTO ledger_facet (currency, type, status, direction)
SELECT currency, way.type, status, way.direction
FROM unnest(ARRAY['NGN', 'USD', 'USDT']) currency, unnest(ARRAY['fulfilled', 'failed', 'processing']) status,
     (VALUES ('withdrawal', 'out'), ('deposit', 'in'), ('sent', 'out'), ('transfer', 'out'), ('transfer', 'in'),
             ('internalTransfer', 'out'), ('internalTransfer', 'in'), ('conversion', 'out'), ('conversion', 'in'))
     AS way (type, direction)
ON CONFLICT DO NOTHING
"""

# All counterparties: about thirty transactions each on average, a few with far more.
_PARTIES = """
CREATE UNLOGGED TABLE bench_party AS
SELECT party,
       (ARRAY['Ada', 'Tunde', 'Chidi', 'Amara', 'Femi', 'Zainab', 'Ngozi', 'Kola', 'Bisi', 'Emeka'])[1 + party %% 10]
       || ' ' ||
       (ARRAY['Chidinma', 'Oluwaseun', 'Ifeanyi', 'Adaeze', 'Babatunde', 'Nkechi', 'Yusuf'])[1 + party / 10 %% 7]
       || ' ' ||
       (ARRAY['Obi', 'Bello', 'Okafor', 'Nwosu', 'Ade', 'Musa', 'Eze', 'Balogun', 'Okoro', 'Lawal', 'Sani'])
           [1 + party / 70 %% 11]
       || ' ' || to_hex(party * 2654435761 %% 4294967296) AS other,
       'biz-' || party %% 3 AS business
FROM generate_series(0, greatest(%(rows)s / 30, 20)) party
"""

# OFFSET 0 prevents PostgreSQL from evaluating a random value again for each reference.
_ROWS = """
WITH drawn AS (
    SELECT number, random() AS which_currency, random() AS which_type, random() AS which_status,
           floor(power(random(), 3) * greatest(%(rows)s / 30, 20))::bigint AS party,
           exp((random() + random() + random() + random() - 2) * 2.2) AS size,
           %(now)s::timestamptz - (%(rows)s - number + random()) * (%(years)s * interval '1 year' / %(rows)s) AS at
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) number OFFSET 0
), chosen AS (
    SELECT number, at, party,
           CASE WHEN which_currency < 0.80 THEN 'NGN' WHEN which_currency < 0.95 THEN 'USD' ELSE 'USDT' END AS currency,
           CASE WHEN which_type < 0.30 THEN 'withdrawal' WHEN which_type < 0.60 THEN 'deposit'
                WHEN which_type < 0.80 THEN 'transfer' WHEN which_type < 0.92 THEN 'internalTransfer'
                WHEN which_type < 0.98 THEN 'conversion' ELSE 'sent' END AS type,
           CASE WHEN which_status < 0.96 THEN 'fulfilled' WHEN which_status < 0.9995 THEN 'failed'
                ELSE 'processing' END AS status,
           CASE WHEN which_type < 0.30 OR which_type >= 0.98 THEN 'out' WHEN which_type < 0.60 THEN 'in'
                WHEN number %% 2 = 0 THEN 'in' ELSE 'out' END AS direction,
           round((CASE WHEN which_currency < 0.80 THEN 60000 ELSE 150 END * size)::numeric, 2) AS amount
    FROM drawn OFFSET 0
), moved AS (
    SELECT *, CASE direction WHEN 'in' THEN amount ELSE - amount - fee END AS change
    FROM chosen, LATERAL (SELECT CASE direction WHEN 'in' THEN 0 ELSE round(amount * 0.001, 2) END AS fee) charged
), listed AS (
    SELECT *, CASE currency {cases} END AS previous_balance
    FROM moved WINDOW others AS (ORDER BY number ROWS {frame})
), written AS (
    INSERT INTO ledger_transaction (
        id, transaction_id, facet_id, currency, type, status, direction, occurred_at, created_at, updated_at, date,
        amount, fee, previous_balance, from_currency, sender, username, counterparty, is_from_registered_user,
        business_id, version, digest, first_seen_at
    ) OVERRIDING SYSTEM VALUE
    SELECT number, md5(number::text)::uuid::text, facet.id, currency, type, status, direction, at, at,
           at + interval '1 minute', to_char(at, 'YYYY-MM-DD'), amount, fee, previous_balance, '',
           CASE direction WHEN 'in' THEN other ELSE 'merchant' END,
           CASE direction WHEN 'in' THEN 'merchant' ELSE other END,
           other, party %% 3 = 0, business, 'v2', int8send(number), %(now)s
    FROM listed JOIN bench_party USING (party) JOIN ledger_facet facet USING (currency, type, status, direction)
)
SELECT currency, sum(change) FROM moved GROUP BY currency
"""

_BEFORE = ("BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "%({currency})s - sum({own}) OVER others")
_BEHIND = (
    "BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "%({currency})s + coalesce(sum({own}) OVER others, 0)",
)

_NAMES = r"""
INSERT INTO ledger_names (key, counterparty, names)
SELECT md5(names)::uuid, lower(counterparty), lower(names)
FROM (SELECT DISTINCT counterparty,
             counterparty || E'\n' || sender || E'\n' || username || E'\n' || business_id AS names
      FROM ledger_transaction) AS combinations
"""

_TOTALS = """
INSERT INTO ledger_daytotal (day, facet_id, count, amount, fee)
SELECT (occurred_at AT TIME ZONE 'UTC')::date, facet_id, count(*), sum(amount), coalesce(sum(fee), 0)
FROM ledger_transaction GROUP BY 1, 2
"""

_INDEXES = """
SELECT indrelid::regclass::text, indexrelid::regclass::text, pg_get_indexdef(indexrelid), conname
FROM pg_index LEFT JOIN pg_constraint own ON conindid = indexrelid AND contype = 'u'
WHERE indrelid IN ('ledger_transaction'::regclass, 'ledger_names'::regclass) AND NOT indisprimary
ORDER BY indrelid = 'ledger_names'::regclass, indexrelid
"""

# Withdrawals of two years, the newest of which are open: six in ten of those wait for an approval.
OPERATIONS = """
INSERT INTO operations_operation (
    id, reference, kind, payload, digest, sentence, currency, amount, recipient, recipient_detail, content_key,
    recipient_key, recipient_account, status, closing_reason, approvals_needed, rule, levels, preparer_id,
    prepared_at, expires_at, closed_at
)
SELECT gen_random_uuid(), 'W-' || lpad(number::text, 10, '0'), 'withdrawal',
       jsonb_build_object('bank_code', '044', 'bank', 'Access Bank', 'account_number', account, 'account_name', name,
                          'typed_name', name, 'currency', 'NGN', 'amount', amount::text),
       lpad(to_hex(number), 64, '0'), 'Withdraw NGN ' || amount || ' to ' || name || ', Access Bank ••' || account,
       'NGN', amount, name, 'Access Bank ••' || account, lpad(to_hex(number), 64, '0'), 'bank:044:' || account,
       account, status, '{}', 1, '{"code": "one_approver"}', %(levels)s, %(preparer)s, at, at + interval '3 days',
       CASE WHEN number > %(open)s THEN at + interval '1 hour' END
FROM (
    SELECT number, lpad((number %% 8000)::text, 10, '0') AS account, 'ADA OBI ' || number %% 8000 AS name,
           (number * 7919 %% 100000000)::numeric / 100 AS amount, now() - number * interval '10 minutes' AS at,
           CASE WHEN number > %(open)s
                THEN (ARRAY['succeeded', 'succeeded', 'succeeded', 'failed', 'rejected'])[1 + number %% 5]
                ELSE (ARRAY['pending', 'pending', 'pending', 'pending', 'pending', 'pending', 'approved',
                            'processing', 'unknown', 'review'])[1 + number %% 10] END AS status
    FROM generate_series(1, %(rows)s) number
) generated
"""


class Index(NamedTuple):
    """The definition of an index. A constraint's index is built as a plain index first, so that others can be
    built at the same time.
    """

    table: str
    name: str
    definition: str
    constraint: str | None

    @property
    def drop(self) -> str:
        """The statement that drops it."""
        if self.constraint:
            return f"ALTER TABLE {self.table} DROP CONSTRAINT {self.constraint}"
        return f"DROP INDEX {self.name}"

    @property
    def attach(self) -> str:
        """The statement that turns it into the constraint again."""
        return f"ALTER TABLE {self.table} ADD CONSTRAINT {self.constraint} UNIQUE USING INDEX {self.name}"


def seed(database: str, rows: int) -> Iterator[str]:
    """Put this many transactions into an empty mirror, with all rows that belong to them; yields progress
    messages.
    """
    with _session(database) as session:
        session.execute("SELECT setseed(0.42)")
        session.execute(_FACETS)
        session.execute(_PARTIES, {"rows": rows})
        session.execute("ANALYZE bench_party")
        indexes = [Index(*row) for row in session.execute(_INDEXES).fetchall()]
        for index in indexes:
            session.execute(index.drop)
        session.execute("ALTER TABLE ledger_transaction DISABLE TRIGGER USER")
        yield "tables are ready"
        _at_once([lambda: _older(database, rows), lambda: _newer(database, rows)])
        yield "rows are written"
        session.execute("ALTER TABLE ledger_transaction ENABLE TRIGGER USER")
        session.execute("DROP TABLE bench_party")
        session.execute("SELECT setval(pg_get_serial_sequence('ledger_transaction', 'id'), %s)", [rows])
        statements = [_NAMES, _TOTALS, *(index.definition for index in indexes)]
        _at_once([partial(_do, database, statement) for statement in statements])
        for index in indexes:
            if index.constraint:
                session.execute(index.attach)
        yield "names, totals and indexes are there"
        session.execute("VACUUM (ANALYZE)")
    yield "statistics are there"


def _older(database: str, rows: int) -> None:
    """The first half, its last batch first."""
    first, last = 1, rows // 2
    batches = [(max(first, end - BATCH + 1), end) for end in range(last, 0, -BATCH)]
    _write(database, rows, batches, _BEFORE, -1)


def _newer(database: str, rows: int) -> None:
    """The second half, from its beginning."""
    batches = [(start, min(rows, start + BATCH - 1)) for start in range(rows // 2 + 1, rows + 1, BATCH)]
    _write(database, rows, batches, _BEHIND, 1)


def _write(
    database: str, rows: int, batches: Iterable[tuple[int, int]], way: tuple[str, str], sign: int
) -> None:
    frame, balance = way
    owns = {currency: f"CASE currency WHEN '{currency}' THEN change ELSE 0 END" for currency in CURRENCIES}
    cases = " ".join(
        f"WHEN '{currency}' THEN {balance.format(currency=currency, own=own)}"
        for currency, own in owns.items()
    )
    statement = _ROWS.format(cases=cases, frame=frame)
    balances = dict(zip(CURRENCIES, IN_THE_MIDDLE, strict=True))
    with _session(database) as session:
        for first, last in batches:
            session.execute("SELECT setseed(%s)", [first / rows])
            given = {"first": first, "last": last, "rows": rows, "now": NOW, "years": YEARS, **balances}
            for currency, change in session.execute(statement, given).fetchall():
                balances[currency] += sign * change


def _do(database: str, statement: str) -> None:
    with _session(database) as session:
        session.execute(statement)


def _at_once(steps: Iterable[Callable[[], None]]) -> None:
    """Run the steps in order, in as many parallel sessions as there are cores."""
    with ThreadPoolExecutor(SESSIONS) as sessions:
        for done in [sessions.submit(step) for step in steps]:
            done.result()


def _session(database: str) -> psycopg.Connection[Any]:
    session = psycopg.connect(database, autocommit=True)
    for setting in _OF_SESSION:
        session.execute(setting)
    return session
