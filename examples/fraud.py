"""Fraud detection: joins payments, logins from another country, and changes of address of one account, close in time.

Joins of three or more streams run in one operator, which keeps no intermediate results; EXPLAIN shows its join order.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import sash

SQL = """
SELECT p.account, p.amount, p.country AS paid_in, l.country AS logged_in_from
FROM payments [RANGE 10 MINUTES] AS p, logins [RANGE 10 MINUTES] AS l, moves [RANGE 1 HOUR] AS m
WHERE p.account = l.account AND l.account = m.account AND p.country <> l.country
"""
STREAMS = {
    "payments": (
        "ts TIMESTAMP, account INT, country STRING, amount INT",
        "12:00:00,1,FR,30\n12:05:00,2,FR,900\n12:20:00,3,DE,15\n13:30:00,9,DE,1\n",
    ),
    "logins": (
        "ts TIMESTAMP, account INT, country STRING",
        "12:01:00,1,FR\n12:09:00,2,BR\n12:21:00,3,BR\n13:30:00,9,DE\n",
    ),
    "moves": ("ts TIMESTAMP, account INT", "11:50:00,2\n12:40:00,3\n13:30:00,9\n"),
}
RATES = {"payments": 50.0, "logins": 20.0, "moves": 0.1}


def main() -> None:
    """Print the plan of the join, then every alarm when it is raised and when it is over."""
    home = Path(tempfile.mkdtemp(prefix="sash-fraud-"))
    engine = sash.Engine()
    for name, (schema, rows) in STREAMS.items():
        (home / name).mkdir()
        (home / name / "rows.csv").write_text(rows)
        frame = engine.spark.readStream.schema(schema).csv(str(home / name), timestampFormat="HH:mm:ss")
        engine.stream(name, frame, rate=RATES[name], distinct={"account": 1000})
    query = engine.sql(SQL)
    print("\n".join(line for line in query.explain().splitlines() if "MultiJoin" in line or "order" in line))

    def alarm(batch: object, number: int) -> None:
        """Print the changes of a batch."""
        for op, ts, account, amount, paid_in, logged_in_from in batch.sort("_ts").collect():  # type: ignore[attr-defined]
            word = "ALARM" if op == "+" else "over "
            print(f"{ts:%H:%M} {word} account {account}: paid {amount} in {paid_in}, login from {logged_in_from}")

    query.start(alarm, trigger="available_now").await_termination()
    engine.close()


if __name__ == "__main__":
    main()
