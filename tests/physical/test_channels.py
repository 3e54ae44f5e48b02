"""Channels: which inputs share what is sent, and what names it."""

from __future__ import annotations

import json

from sash.physical.channels import Channels, LegRows, LookupRows, ScanRows, StageRows
from sash.physical.plan_channels import channels_of
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.rows import parse_schema
from tests.physical.together import queries_together

SALES = StreamEntry("sales", parse_schema("ts BIGINT, item BIGINT, shop BIGINT, price BIGINT, code STRING"), "ts")
WIDER = StreamEntry(
    "sales", parse_schema("ts BIGINT, a STRING, item BIGINT, shop BIGINT, price BIGINT, code STRING"), "ts"
)
VIEWS = StreamEntry("views", parse_schema("ts BIGINT, item BIGINT, shop BIGINT"), "ts")
SHOPS = RelationEntry("shops", parse_schema("shop BIGINT, city STRING"), key=(0,))
CATALOG = Catalog({"sales": SALES, "views": VIEWS}, {"shops": SHOPS})


def channels(*queries: str, share: bool = True, catalog: Catalog = CATALOG, shards: int = 2) -> Channels:
    named = {f"q{number}": sql for number, sql in enumerate(queries)}
    return channels_of(queries_together(catalog, named, shards), share)


BY_ITEM = "SELECT item, SUM(price) AS total FROM sales [RANGE {0} SECONDS] {1} GROUP BY item"


def test_windows_and_filters_over_one_key_share_a_channel() -> None:
    found = channels(BY_ITEM.format(1, ""), BY_ITEM.format(60, "WHERE shop = 3"), BY_ITEM.format(5, "WHERE price > 10"))
    (channel,) = found.channels
    assert channel.horizon == 60_000_000
    assert channel.masks == 1
    assert isinstance(channel.source, ScanRows)
    assert channel.source.everything
    assert len(channel.source.filters) == 2
    assert {reader.filter for reader in channel.readers} == {None, 0, 1}
    (scan,) = found.scans
    read = [[scan.columns[channel.source.columns[n]].expression.name for n in r.columns] for r in channel.readers]  # type: ignore[union-attr]
    assert read == [["item", "price"]] * 3


def test_one_filter_needs_no_mask() -> None:
    (channel,) = channels(
        BY_ITEM.format(1, "WHERE shop = 3 AND price > 1"), BY_ITEM.format(9, "WHERE price > 1 AND shop = 3")
    ).channels
    assert channel.masks == 0
    assert isinstance(channel.source, ScanRows)
    assert not channel.source.everything
    assert [reader.filter for reader in channel.readers] == [None, None]


def test_every_key_has_a_channel() -> None:
    by_shop = BY_ITEM.replace("item", "shop")
    found = channels(BY_ITEM.format(1, ""), by_shop.format(1, ""), by_shop.format(2, ""))
    assert [len(channel.readers) for channel in found.channels] == [1, 2]
    assert len(found.scans) == 1


def test_alone_every_input_has_a_channel_with_the_columns_of_its_leg() -> None:
    sql = "SELECT a.item FROM sales [RANGE 1 SECOND] AS a JOIN sales [RANGE 2 SECONDS] AS b ON a.item = b.item"
    found = channels(sql, share=False)
    assert not found.scans
    assert [type(channel.source) for channel in found.channels] == [LegRows, LegRows]
    assert [(r.stage, r.input) for channel in found.channels for r in channel.readers] == [(0, 0), (0, 1)]
    assert [channel.horizon for channel in found.channels] == [1_000_000, 2_000_000]
    (shared,) = channels(sql).channels
    assert len(shared.readers) == 2


def test_an_expression_that_may_fail_is_guarded_by_its_own_filter() -> None:
    sql = "SELECT item, SUM(price {0} shop) AS total FROM sales [RANGE 1 SECOND] WHERE shop > {1} GROUP BY item"
    found = channels(sql.format("DIV", 0), sql.format("DIV", 5), sql.format("+", 7))
    (scan,) = found.scans
    guards = [column.guard for column in scan.columns if column.guard is not None]
    assert len(guards) == 3, "the sum of integers may overflow"
    assert len(set(guards)) == 3
    assert not scan.everything


def test_equal_lookups_share_a_channel() -> None:
    sql = (
        "SELECT city, COUNT(*) AS n FROM sales [RANGE {0} SECONDS] AS s JOIN shops AS t ON s.shop = t.shop "
        "WHERE price > {1} GROUP BY city"
    )
    found = channels(sql.format(1, 2), sql.format(9, 2), sql.format(9, 3))
    assert [len(channel.readers) for channel in found.channels] == [2, 1]
    sources = [channel.source for channel in found.channels]
    assert all(isinstance(source, LookupRows) for source in sources)
    assert len(found.scans) == 1


def test_count_windows_and_snapshots_have_their_own() -> None:
    rows = "SELECT item, COUNT(*) AS n FROM sales [PARTITION BY item ROWS {0}] GROUP BY item"
    found = channels(rows.format(3), rows.format(3), rows.format(4))
    assert [channel.kind for channel in found.channels] == ["rows", "rows"]
    endless = "SELECT item, COUNT(*) AS n FROM sales [RANGE UNBOUNDED] GROUP BY item"
    found = channels(endless, endless)
    assert [channel.owner for channel in found.channels] == [0, 1]
    assert len({channel.identity for channel in found.channels}) == 2


def test_stages_read_stages() -> None:
    sql = "SELECT MAX(n) AS most FROM (SELECT item, COUNT(*) AS n FROM sales [RANGE 9 SECONDS] GROUP BY item) AS t"
    found = channels(sql, BY_ITEM.format(4, ""), shards=8)
    first, second = (channel for channel in found.channels if channel.keys or isinstance(channel.source, StageRows))
    assert (first.kind, second.kind, second.source) == ("time", "explicit", StageRows(0))
    assert found.inputs_of(1)[0][0] == second


def test_identities_do_not_depend_on_other_queries_or_columns() -> None:
    query, other = BY_ITEM.format(5, "WHERE shop = 3"), BY_ITEM.format(7, "WHERE code = 'x'")
    alone, together = channels(query), channels(other, query)
    assert alone.stages[0] == together.stages[1]
    assert alone.channels[0].identity != together.channels[0].identity
    assert together.channels[0].identity == channels(query, other).channels[0].identity
    wider = Catalog({"sales": WIDER, "views": VIEWS}, {"shops": SHOPS})
    assert channels(query, catalog=wider).stages == alone.stages
    assert channels(query, catalog=wider).channels[0].identity == alone.channels[0].identity
    renamed = query.replace("total", "amount")
    assert channels(renamed).stages == alone.stages
    assert channels(query.replace("5 SECONDS", "6 SECONDS")).stages != alone.stages
    json.dumps(alone.channels[0].description)


def test_equal_stages_have_different_names() -> None:
    found = channels(BY_ITEM.format(5, ""), BY_ITEM.format(5, ""))
    assert len(set(found.stages)) == 2
