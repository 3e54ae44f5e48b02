"""Events of an online auction in NEXMark's proportions: of every 50, one is a new person, 3 are auctions and 46 are bids.

Half of the bids go to the hot auction, three of four bids come from the hot bidder, and three of four auctions belong to the
hot seller: of every hundred auctions or people one is hot, the latest of them. Other bids go to recent auctions. Events
have equal distances in time, and equal seeds make equal events.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

SCHEMAS = {
    "person": (
        "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, ts TIMESTAMP, extra STRING"
    ),
    "auction": (
        "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, ts TIMESTAMP, expires TIMESTAMP, "
        "seller BIGINT, category BIGINT, extra STRING"
    ),
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP, extra STRING",
}
"""The streams. NEXMark calls the time of an event `dateTime`; here it is `ts`."""

FIRST_PERSON = 1000
FIRST_CATEGORY = 10
START = datetime.datetime(2026, 1, 1, 11, 58, tzinfo=datetime.UTC)

_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_FIRST = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")


@dataclass
class Generator:
    """A seeded source of events.

    `gap` is the time between two events and `duration` the mean duration of an auction. Of `hot` auctions or people one is
    hot; `active` people bid, and `open_auctions` get bids.

    >>> rows = Generator(seed=1).streams(100)
    >>> {name: len(events) for name, events in rows.items()}
    {'person': 2, 'auction': 6, 'bid': 92}
    """

    seed: int = 0
    gap: datetime.timedelta = datetime.timedelta(milliseconds=100)
    duration: datetime.timedelta = datetime.timedelta(minutes=1)
    hot: int = 100
    active: int = 1000
    open_auctions: int = 100
    first_auction: int = 1000

    def streams(self, events: int) -> dict[str, list[Row]]:
        """The first events, by stream."""
        found: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
        for stream, row in self.events(events):
            found[stream].append(row)
        return found

    def events(self, count: int) -> Iterator[tuple[str, Row]]:
        """The first events in order of time, each with the name of its stream."""
        draw = random.Random(self.seed)  # noqa: S311
        people = auctions = 0
        for number in range(count):
            ts = START + number * self.gap
            place = number % 50
            if place == 0:
                yield "person", self._person(draw, people, ts)
                people += 1
            elif place < 4:
                yield "auction", self._auction(draw, auctions, people, ts)
                auctions += 1
            else:
                yield "bid", self._bid(draw, auctions, people, ts)

    def _person(self, draw: random.Random, number: int, ts: datetime.datetime) -> Row:
        first, last = draw.choice(_FIRST), draw.choice(_LAST)
        return {
            "id": FIRST_PERSON + number,
            "name": f"{first} {last}",
            "emailAddress": f"{_letters(draw, 7)}@{_letters(draw, 5)}.com",
            "creditCard": " ".join(f"{draw.randrange(10_000):04}" for _ in range(4)),
            "city": draw.choice(_CITIES),
            "state": draw.choice(_STATES),
            "ts": ts,
            "extra": _letters(draw, 12),
        }

    def _auction(self, draw: random.Random, number: int, people: int, ts: datetime.datetime) -> Row:
        first = _price(draw)
        return {
            "id": self.first_auction + number,
            "itemName": _letters(draw, 10),
            "description": _letters(draw, 30),
            "initialBid": first,
            "reserve": first + _price(draw),
            "ts": ts,
            "expires": ts + draw.uniform(0.5, 1.5) * self.duration,
            "seller": FIRST_PERSON + self._pick(draw, people, self.active, 4),
            "category": FIRST_CATEGORY + draw.randrange(5),
            "extra": _letters(draw, 12),
        }

    def _bid(self, draw: random.Random, auctions: int, people: int, ts: datetime.datetime) -> Row:
        if draw.randrange(2):
            channel = draw.choice(_CHANNELS)
            url = (
                f"https://www.nexmark.com/{_letters(draw, 4)}/{_letters(draw, 4)}/{_letters(draw, 4)}/item.htm?query=1"
            )
        else:
            number = draw.randrange(10_000)
            channel = f"channel-{number}"
            url = f"https://www.nexmark.com/{_letters(draw, 4)}/item.htm?query=1&channel_id={number}"
        return {
            "auction": self.first_auction + self._pick(draw, auctions, self.open_auctions, 2),
            "bidder": FIRST_PERSON + self._pick(draw, people, self.active, 4),
            "price": _price(draw),
            "channel": channel,
            "url": url,
            "ts": ts,
            "extra": _letters(draw, 20),
        }

    def _pick(self, draw: random.Random, count: int, recent: int, ratio: int) -> int:
        """A number below `count`: the latest hot one, but for one of `ratio` times a recent one."""
        if draw.randrange(ratio):
            return (count - 1) // self.hot * self.hot
        return draw.randrange(max(0, count - recent), count)


def _price(draw: random.Random) -> int:
    """Prices, in cents, are spread evenly over orders of magnitude."""
    return round(10 ** (draw.random() * 6) * 100)


def _letters(draw: random.Random, count: int) -> str:
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=count))
