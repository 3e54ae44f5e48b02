"""Queries that give every rule something to do, and the catalog they are over.

`EXAMPLES` is a list of (rule, name, sql); each query means the same before and after the rule.
"""

from __future__ import annotations

from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.statistics import Statistics
from sash.plan.types import BIGINT, DOUBLE, STRING, Field

_LINK = (Field("ts", BIGINT), Field("src", BIGINT), Field("dst", BIGINT), Field("protocol", STRING))

CATALOG = Catalog(
    streams={
        "sales": StreamEntry(
            "sales",
            (
                Field("ts", BIGINT),
                Field("item", BIGINT),
                Field("store", BIGINT),
                Field("price", BIGINT),
                Field("weight", DOUBLE),
            ),
            "ts",
        ),
        "returns": StreamEntry(
            "returns",
            (Field("ts", BIGINT), Field("item", BIGINT), Field("store", BIGINT), Field("price", BIGINT)),
            "ts",
        ),
        "visits": StreamEntry("visits", (Field("ts", BIGINT), Field("store", BIGINT), Field("page", STRING)), "ts"),
        "link1": StreamEntry("link1", _LINK, "ts", Statistics(100, distinct={"src": 50, "dst": 500, "protocol": 4})),
        "link2": StreamEntry("link2", _LINK, "ts", Statistics(100, distinct={"src": 50, "dst": 500, "protocol": 4})),
        "busy": StreamEntry("busy", _LINK, "ts", Statistics(1_000, distinct={"src": 50, "dst": 500, "protocol": 4})),
        "quiet": StreamEntry("quiet", _LINK, "ts", Statistics(1, distinct={"src": 1_000, "dst": 500, "protocol": 4})),
    },
    relations={
        "items": RelationEntry("items", (Field("item", BIGINT), Field("name", STRING), Field("kind", BIGINT))),
        "stores": RelationEntry("stores", (Field("store", BIGINT), Field("city", STRING))),
        "prices": RelationEntry("prices", (Field("item", BIGINT), Field("list", BIGINT)), changes=True, key=(0,)),
        "tags": RelationEntry("tags", (Field("item", BIGINT), Field("tag", STRING)), changes=True),
    },
)

_L1, _L2 = "link1 [RANGE 10 SECONDS]", "link2 [RANGE 10 SECONDS]"
_DIFFERENCE = f"SELECT src FROM {_L1} EXCEPT ALL SELECT src FROM {_L2}"
_S, _R, _V = "sales [RANGE 1 HOUR] s", "returns [RANGE 1 HOUR] r", "visits [RANGE 30 MINUTES] v"

EXAMPLES: tuple[tuple[str, str, str], ...] = (
    (
        "keep_top_rows",
        "latest of each",
        f"SELECT item, price FROM {_S} QUALIFY ROW_NUMBER() OVER (PARTITION BY item ORDER BY ts DESC) = 1",
    ),
    (
        "keep_top_rows",
        "numbered",
        (
            f"SELECT item, price, ROW_NUMBER() OVER w AS n, LAG(price) OVER w AS before FROM {_S} "
            "QUALIFY 3 > n AND price > 1 WINDOW w AS (PARTITION BY item ORDER BY price)"
        ),
    ),
    (
        "keep_top_rows",
        "first ranks",
        f"SELECT item, price FROM {_S} QUALIFY RANK() OVER (PARTITION BY item ORDER BY price DESC) <= 2",
    ),
    (
        "keep_top_rows",
        "second dense rank",
        f"SELECT item, price FROM {_S} QUALIFY DENSE_RANK() OVER (ORDER BY price) = 2",
    ),
    (
        "put_tables_right",
        "table first",
        f"SELECT i.name, s.price FROM items i JOIN {_S} ON i.item = s.item AND s.price > i.kind",
    ),
    (
        "put_tables_right",
        "between tables",
        f"SELECT s.item, t.city FROM items i, {_S}, stores t WHERE i.item = s.item AND s.store = t.store",
    ),
    (
        "merge_projections",
        "subqueries",
        f"SELECT a AS x, b FROM (SELECT c AS a, b FROM (SELECT price + 1 AS c, item AS b FROM {_S}) q) p",
    ),
    (
        "merge_projections",
        "computed_once",
        f"SELECT a AS x, a AS y FROM (SELECT price * 2 AS a FROM {_S}) p",
    ),
    (
        "merge_projections",
        "filters",
        f"SELECT * FROM (SELECT * FROM {_S} WHERE price > 1) q WHERE item = 2 AND price > 1",
    ),
    (
        "merge_projections",
        "guarded_filter_stays",
        f"SELECT * FROM (SELECT * FROM {_S} WHERE price <> 0) q WHERE 100 / price > 2",
    ),
    (
        "push_down_selection",
        "both_sides",
        f"SELECT s.ts, r.price FROM {_S} JOIN {_R} ON s.item = r.item WHERE s.price > 3 AND r.price < 9",
    ),
    (
        "push_down_selection",
        "key_is_transferred",
        f"SELECT s.ts, r.price FROM {_S} JOIN {_R} ON s.item = r.item WHERE s.item = 3",
    ),
    (
        "push_down_selection",
        "key_from_filter",
        f"SELECT * FROM (SELECT s.item AS a, r.item AS b, r.price FROM {_S} CROSS JOIN {_R}) q WHERE a = b",
    ),
    (
        "push_down_selection",
        "left_join",
        (
            f"SELECT s.item, r.price FROM {_S} LEFT JOIN {_R} ON s.item = r.item AND r.store > 1 "
            "WHERE s.store = 2 AND r.price IS NULL"
        ),
    ),
    (
        "push_down_selection",
        "right_join",
        f"SELECT s.item, r.price FROM {_S} RIGHT JOIN {_R} ON s.item = r.item WHERE r.store = 2 AND s.item IS NULL",
    ),
    (
        "push_down_selection",
        "full_join",
        f"SELECT s.item, r.price FROM {_S} FULL JOIN {_R} ON s.item = r.item WHERE r.store = 2 OR s.store = 2",
    ),
    (
        "push_down_selection",
        "anti_join",
        f"SELECT * FROM (SELECT s.item, s.price FROM {_S} LEFT ANTI JOIN {_R} ON s.item = r.item) q WHERE item > 2",
    ),
    (
        "push_down_selection",
        "union",
        f"SELECT * FROM (SELECT item FROM {_S} UNION ALL SELECT store FROM {_V}) q WHERE item > 4",
    ),
    (
        "push_down_selection",
        "except",
        f"SELECT * FROM (SELECT item FROM {_S} EXCEPT SELECT item FROM {_R}) q WHERE item > 4",
    ),
    (
        "push_down_selection",
        "intersect_all",
        f"SELECT * FROM (SELECT item FROM {_S} INTERSECT ALL SELECT item FROM {_R}) q WHERE item IS NULL OR item > 4",
    ),
    (
        "push_down_selection",
        "distinct",
        f"SELECT * FROM (SELECT DISTINCT item, store FROM {_S}) q WHERE store = 1",
    ),
    (
        "push_down_selection",
        "having",
        f"SELECT item, SUM(price) AS total FROM {_S} GROUP BY item HAVING item > 4 AND SUM(price) > 10",
    ),
    (
        "push_down_selection",
        "global_aggregate",
        f"SELECT * FROM (SELECT COUNT(*) AS n FROM {_S}) q WHERE n > 0",
    ),
    (
        "push_down_selection",
        "what_may_fail_stays",
        f"SELECT s.item, r.price FROM {_S} JOIN {_R} ON s.item = r.item WHERE s.store <> 0 AND 10 / s.store > 1",
    ),
    (
        "push_down_selection",
        "top_k",
        f"SELECT * FROM (SELECT item, price FROM {_S} ORDER BY price DESC LIMIT 3) q WHERE item = 1",
    ),
    (
        "push_down_projection",
        "join",
        f"SELECT s.price, r.price AS back FROM {_S} JOIN {_R} ON s.item = r.item",
    ),
    (
        "push_down_projection",
        "filter_columns_go",
        f"SELECT COUNT(*) AS n FROM {_S} JOIN {_R} ON s.item = r.item WHERE s.price > 3",
    ),
    (
        "push_down_projection",
        "union_all",
        f"SELECT item FROM (SELECT item, price FROM {_S} UNION ALL SELECT item, price FROM {_R}) q",
    ),
    (
        "push_down_projection",
        "unread_aggregate",
        f"SELECT item FROM (SELECT item, SUM(price) AS a, COUNT(*) AS b FROM {_S} GROUP BY item) q WHERE b > 1",
    ),
    (
        "push_down_projection",
        "group_by_for_its_keys",
        f"SELECT item FROM (SELECT item, SUM(price) AS total FROM {_S} GROUP BY item) q",
    ),
    (
        "push_down_projection",
        "distinct_reads_all",
        f"SELECT item FROM (SELECT DISTINCT item, store FROM {_S}) q",
    ),
    (
        "push_down_projection",
        "semi_join",
        f"SELECT s.price FROM {_S} LEFT SEMI JOIN {_R} ON s.item = r.item",
    ),
    (
        "order_static_joins",
        "below_join",
        (
            f"SELECT s.price, r.price AS back, i.name FROM {_S} JOIN {_R} ON s.item = r.item "
            "JOIN items i ON i.item = s.item"
        ),
    ),
    (
        "order_static_joins",
        "below_join_on_the_right",
        f"SELECT s.price, v.page, t.city FROM {_S} JOIN {_V} ON s.store = v.store JOIN stores t ON t.store = v.store",
    ),
    (
        "order_static_joins",
        "table_first",
        (
            f"SELECT i.name, s.price, r.price AS back FROM items i JOIN "
            f"(SELECT s.item, s.price FROM {_S} JOIN {_V} ON s.store = v.store) s ON i.item = s.item "
            f"JOIN {_R} ON r.item = s.item"
        ),
    ),
    (
        "order_static_joins",
        "below_union",
        (
            f"SELECT q.price, i.name FROM (SELECT item, price FROM {_S} UNION ALL SELECT item, price FROM {_R}) q "
            "JOIN items i ON q.item = i.item"
        ),
    ),
    (
        "order_static_joins",
        "semi_join_below_except",
        (
            f"SELECT q.item, i.name FROM (SELECT item FROM {_S} EXCEPT SELECT item FROM {_R}) q "
            "JOIN items i ON q.item = i.item WHERE i.kind = 1"
        ),
    ),
    (
        "order_static_joins",
        "semi_join_below_intersect",
        (
            f"SELECT q.item, i.name FROM (SELECT item, store FROM {_S} INTERSECT SELECT item, store FROM {_R}) q "
            "JOIN items i ON q.item = i.item"
        ),
    ),
    (
        "order_static_joins",
        "semi_join_below_group_by",
        (
            f"SELECT q.item, q.total, i.name FROM (SELECT item, SUM(price) AS total FROM {_S} GROUP BY item) q "
            "JOIN items i ON q.item = i.item"
        ),
    ),
    (
        "order_static_joins",
        "not_below_an_aggregate_column",
        f"SELECT q.item, i.name FROM (SELECT item, COUNT(*) AS n FROM {_S} GROUP BY item) q JOIN items i ON q.n = i.item",
    ),
    (
        "order_static_joins",
        "semi_join_below_distinct_and_join",
        (
            "SELECT q.store, t.city FROM "
            f"(SELECT DISTINCT s.store, r.price FROM {_S} JOIN {_R} ON s.item = r.item) q JOIN stores t ON q.store = t.store"
        ),
    ),
    (
        "order_static_joins",
        "semi_and_anti_joins_move_whole",
        (
            f"SELECT q.item, q.n FROM (SELECT item, COUNT(*) AS n FROM {_S} GROUP BY item) q "
            "LEFT SEMI JOIN items i ON q.item = i.item LEFT ANTI JOIN stores t ON q.item = t.store"
        ),
    ),
    (
        "push_distinct_below_join",
        "keys_only",
        f"SELECT DISTINCT s.item FROM {_S} JOIN {_R} ON s.item = r.item",
    ),
    (
        "push_distinct_below_join",
        "other_columns",
        f"SELECT DISTINCT s.store, r.price FROM {_S} JOIN {_R} ON s.item = r.item",
    ),
    (
        "push_distinct_below_join",
        "condition",
        f"SELECT DISTINCT s.item FROM {_S} JOIN {_R} ON s.item = r.item AND s.price > r.price",
    ),
    (
        "push_distinct_below_join",
        "three_streams",
        f"SELECT DISTINCT s.store FROM {_S} JOIN {_R} ON s.item = r.item JOIN {_V} ON s.store = v.store",
    ),
    (
        "turn_lookup_into_semi_join",
        "table_becomes_a_semi_join",
        f"SELECT DISTINCT s.store FROM {_S} JOIN (SELECT item FROM items WHERE kind = 1) i ON s.item = i.item",
    ),
    (
        "turn_lookup_into_semi_join",
        "table_that_is_read_stays",
        f"SELECT DISTINCT i.name FROM {_S} JOIN items i ON s.item = i.item",
    ),
    (
        "split_count_distinct",
        "by_group",
        f"SELECT store, COUNT(DISTINCT item) AS n FROM {_S} GROUP BY store",
    ),
    (
        "split_count_distinct",
        "global",
        f"SELECT COUNT(DISTINCT item) AS n, SUM(DISTINCT item) AS total, MAX(item) AS top FROM {_S}",
    ),
    (
        "split_count_distinct",
        "not_beside_other_aggregates",
        f"SELECT store, COUNT(DISTINCT item) AS n, COUNT(*) AS m FROM {_S} GROUP BY store",
    ),
    (
        "split_count_distinct",
        "of_the_key",
        f"SELECT store, COUNT(DISTINCT store) AS n FROM {_S} GROUP BY store",
    ),
    (
        "split_count_distinct",
        "over_a_join",
        f"SELECT COUNT(DISTINCT s.item) AS n FROM {_S} JOIN {_R} ON s.item = r.item",
    ),
    (
        "drop_distinct",
        "of_groups",
        f"SELECT DISTINCT store, total FROM (SELECT store, SUM(price) AS total FROM {_S} GROUP BY store) q",
    ),
    (
        "drop_distinct",
        "of_set_difference",
        f"SELECT DISTINCT item FROM (SELECT item FROM {_S} EXCEPT SELECT item FROM {_R}) q",
    ),
    (
        "drop_distinct",
        "not_of_a_bag",
        f"SELECT DISTINCT item FROM (SELECT item FROM {_S} EXCEPT ALL SELECT item FROM {_R}) q",
    ),
    (
        "push_distinct_below_join",
        "not_where_rows_are_unique",
        (
            "SELECT DISTINCT a.src, a.ts, b.ts AS other FROM link1 [RANGE 1 SECOND] a JOIN link2 [RANGE 1 SECOND] b "
            "ON a.src = b.src"
        ),
    ),
    (
        "pull_up_negation",
        "query_5_with_a_selective_join",
        (
            f"SELECT t.src, q.dst FROM ({_DIFFERENCE}) t JOIN quiet [RANGE 10 SECONDS] q ON t.src = q.src "
            "WHERE q.protocol = 'ftp'"
        ),
    ),
    (
        "pull_up_negation",
        "query_5_stays_where_the_join_gives_many_results",
        f"SELECT t.src, q.dst FROM ({_DIFFERENCE}) t JOIN busy [RANGE 10 SECONDS] q ON t.src = q.src",
    ),
    (
        "pull_up_negation",
        "anti_join_on_the_left",
        (
            f"SELECT a.src, a.dst, q.dst AS other FROM {_L1} a LEFT ANTI JOIN {_L2} b ON a.src = b.src "
            "JOIN quiet [RANGE 10 SECONDS] q ON a.dst = q.dst"
        ),
    ),
    (
        "pull_up_negation",
        "semi_join_on_the_right",
        (
            f"SELECT q.src, t.dst FROM quiet [RANGE 10 SECONDS] q JOIN "
            f"(SELECT a.src, a.dst FROM {_L1} a LEFT SEMI JOIN {_L2} b ON a.src = b.src) t ON t.src = q.src"
        ),
    ),
    (
        "pull_up_negation",
        "set_difference_with_a_set",
        (
            f"SELECT t.src, t.dst FROM (SELECT src, dst FROM {_L1} EXCEPT SELECT src, dst FROM quiet [RANGE 1 MINUTE]) t "
            "JOIN (SELECT DISTINCT src FROM quiet [RANGE 10 SECONDS]) q ON t.src = q.src"
        ),
    ),
    (
        "pull_up_negation",
        "distinct_below",
        f"SELECT DISTINCT a.src FROM {_L1} a LEFT ANTI JOIN {_L2} b ON a.src = b.src",
    ),
    (
        "push_down_negation",
        "below_a_join_with_many_results",
        (
            f"SELECT q.src, q.dst FROM (SELECT a.src, c.dst FROM {_L1} a JOIN busy [RANGE 10 SECONDS] c ON a.src = c.src) q "
            f"LEFT ANTI JOIN {_L2} b ON q.src = b.src"
        ),
    ),
    (
        "push_down_negation",
        "difference_of_two_joins",
        (
            f"SELECT a.src, c.dst FROM {_L1} a JOIN busy [RANGE 10 SECONDS] c ON a.src = c.src EXCEPT ALL "
            f"SELECT a.src, c.dst FROM {_L2} a JOIN busy [RANGE 10 SECONDS] c ON a.src = c.src"
        ),
    ),
    (
        "push_down_negation",
        "stays_above_a_selective_join",
        (
            f"SELECT q.src, q.dst FROM (SELECT a.src, c.dst FROM {_L1} a JOIN quiet [RANGE 5 SECONDS] c ON a.dst = c.dst) q "
            "LEFT ANTI JOIN quiet [RANGE 10 SECONDS] b ON q.src = b.src"
        ),
    ),
    (
        "order_joins",
        "common_attribute",
        (
            "SELECT a.dst, b.dst AS other, c.ts FROM busy [RANGE 10 SECONDS] a JOIN link1 [RANGE 10 SECONDS] b "
            "ON a.src = b.src JOIN quiet [RANGE 10 SECONDS] c ON b.src = c.src"
        ),
    ),
    (
        "order_joins",
        "join_graph",
        (
            "SELECT a.dst, b.dst AS other, c.ts FROM busy [RANGE 10 SECONDS] a JOIN link1 [RANGE 10 SECONDS] b "
            "ON a.src = b.src JOIN quiet [RANGE 10 SECONDS] c ON b.dst = c.dst AND c.protocol > a.protocol"
        ),
    ),
    (
        "order_joins",
        "already_best",
        (
            "SELECT a.dst, b.dst AS other, c.ts FROM quiet [RANGE 10 SECONDS] a JOIN link1 [RANGE 10 SECONDS] b "
            "ON a.src = b.src JOIN busy [RANGE 10 SECONDS] c ON b.src = c.src"
        ),
    ),
    (
        "push_relation_join_below_negation",
        "below_set_difference",
        f"SELECT q.item, p.list FROM (SELECT item FROM {_S} EXCEPT SELECT item FROM {_R}) q JOIN prices p ON q.item = p.item",
    ),
    (
        "push_relation_join_below_negation",
        "below_bag_difference",
        f"SELECT t.tag FROM tags t JOIN (SELECT item FROM {_S} EXCEPT ALL SELECT item FROM {_R}) q ON q.item = t.item",
    ),
    (
        "push_relation_join_below_negation",
        "below_anti_join",
        (
            f"SELECT q.price, p.list FROM (SELECT s.item, s.price FROM {_S} LEFT ANTI JOIN {_R} "
            "ON s.store = r.store AND s.price < r.price) q LEFT JOIN prices p ON q.item = p.item"
        ),
    ),
    (
        "push_relation_join_below_negation",
        "not_where_duplicates_would_go",
        f"SELECT t.tag FROM (SELECT item FROM {_S} EXCEPT SELECT item FROM {_R}) q JOIN tags t ON q.item = t.item",
    ),
    (
        "push_relation_join_below_negation",
        "not_where_nothing_is_taken_back",
        f"SELECT s.price, t.tag FROM {_S} JOIN tags t ON s.item = t.item",
    ),
)
