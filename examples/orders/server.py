"""The order service: a real MCP server over SQLite, with a few orders in it.

Run it over stdio (`python server.py`) or over HTTP (`python server.py --http 127.0.0.1:8000`). It works on
the database file that ORDERS_DB names; without it, on one in memory that is gone when the server ends.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from dragoman import Server, ToolError

OrderId = Annotated[str, Meta(pattern=r"^[A-Z]-\d{4}$", description="As on the receipt, for example A-1042")]
Cents = Annotated[int, Meta(gt=0, description="In cents")]

SEED = """
CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, customer TEXT, item TEXT, total INTEGER, status TEXT, refunded INTEGER DEFAULT 0
);
CREATE TABLE IF NOT EXISTS notes (number INTEGER PRIMARY KEY, order_id TEXT REFERENCES orders, text TEXT);
INSERT OR IGNORE INTO orders (id, customer, item, total, status) VALUES
    ('A-1042', 'Mara Lindqvist', 'Field recorder', 18900, 'shipped'),
    ('A-1043', 'Tomás Ferreira', 'Studio headphones', 12950, 'packed'),
    ('B-0007', '김서연', 'Desk microphone', 8400, 'delivered');
"""


@dataclass
class Order:
    """One order. Amounts are in cents."""

    order_id: str
    customer: str
    item: str
    total: int
    status: str
    refunded: int
    notes: list[str]


@dataclass
class Note:
    """A note on an order."""

    order_id: str
    number: int
    text: str


@dataclass
class Refund:
    """What was paid back, and what is left. Amounts are in cents."""

    order_id: str
    refunded: int
    remaining: int


class Orders:
    """The database. Tools run in several threads, so that one at a time may use the connection."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, check_same_thread=False)
        with self._connection:
            self._connection.executescript(SEED)

    def find(self, order_id: str) -> Order:
        with self._lock:
            return self._find(order_id)

    def note(self, order_id: str, text: str) -> Note:
        with self._lock, self._connection:
            self._find(order_id)
            done = self._connection.execute(
                "INSERT INTO notes (order_id, text) VALUES (?, ?)", (order_id, text)
            )
            return Note(order_id, done.lastrowid or 0, text)

    def refund(self, order_id: str, amount: int) -> Refund:
        with self._lock, self._connection:
            order = self._find(order_id)
            left = order.total - order.refunded
            if amount > left:
                raise ToolError(f"Order {order_id}: at most {left} cents can be refunded, not {amount}.")
            self._connection.execute(
                "UPDATE orders SET refunded = refunded + ? WHERE id = ?", (amount, order_id)
            )
            return Refund(order_id, order.refunded + amount, left - amount)

    def _find(self, order_id: str) -> Order:
        query = "SELECT id, customer, item, total, status, refunded FROM orders WHERE id = ?"
        row = self._connection.execute(query, (order_id,)).fetchone()
        if row is None:
            raise ToolError(f"There is no order {order_id}.")
        notes = self._connection.execute(
            "SELECT text FROM notes WHERE order_id = ? ORDER BY number", (order_id,)
        )
        _, customer, item, total, status, refunded = row
        return Order(order_id, customer, item, total, status, refunded, [text for (text,) in notes])


orders = Orders(os.environ.get("ORDERS_DB", ":memory:"))
server = Server(
    "orders", version="1.0.0", instructions="Look an order up before you act on it.", ttl_ms=60_000
)


@server.tool(annotations={"title": "Look up an order", "readOnlyHint": True, "openWorldHint": False})
def lookup_order(order_id: OrderId) -> Order:
    """Find an order by its number."""
    return orders.find(order_id)


@server.tool(annotations={"title": "Add a note", "destructiveHint": False, "openWorldHint": False})
def create_note(order_id: OrderId, text: Annotated[str, Meta(min_length=1, max_length=500)]) -> Note:
    """Add a note to an order, for the colleagues who handle it."""
    return orders.note(order_id, text)


@server.tool(annotations={"title": "Refund an order", "destructiveHint": True, "openWorldHint": True})
def refund_order(order_id: OrderId, amount: Cents) -> Refund:
    """Pay money back to the customer."""
    return orders.refund(order_id, amount)


def main() -> None:
    """Serve as the command line says."""
    if len(sys.argv) == 3 and sys.argv[1] == "--http":
        host, _, port = sys.argv[2].rpartition(":")
        server.run("http", host=host, port=int(port))
    elif len(sys.argv) == 1:
        server.run()
    else:
        sys.exit("usage: server.py [--http HOST:PORT]")


if __name__ == "__main__":
    main()
