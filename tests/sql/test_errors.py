from __future__ import annotations

import pytest

from sash.errors import SqlSyntaxError, TypeMismatchError, UnknownNameError, UnsupportedSqlError
from tests.sql.plans import plan_of


def error_of(query: str) -> SqlSyntaxError:
    with pytest.raises(SqlSyntaxError) as caught:
        plan_of(query)
    return caught.value


@pytest.mark.parametrize(
    ("query", "message", "line", "column"),
    [
        ("SELECT item FROM sale", "no stream or relation sale; did you mean sales", 1, 18),
        ("SELECT item\nFROM\n  nothing", "there are sales, clicks", 3, 3),
        ("SELECT item FROM db.sales", "single identifier", 1, 18),
        ("SELECT prise FROM sales", "no column prise; did you mean price", 1, 8),
        ("SELECT zzz FROM items", "there are item, label", 1, 8),
        ("SELECT\n  item,\n  s.prise FROM sales s", "no column s.prise; did you mean price", 3, 3),
        ("SELECT sales.item FROM sales s", "no sales in this FROM clause", 1, 8),
        ("SELECT x.* FROM sales s", "no x in this FROM clause", 1, 8),
        ("SELECT item FROM sales JOIN clicks ON TRUE", "ambiguous: sales.item, clicks.item", 1, 8),
        ("SELECT s.qty FROM sales s LEFT SEMI JOIN clicks c ON s.item = c.item WHERE c.item = 1", "no c in", 1, 76),
        ("SELECT uper(name) FROM sales", "no function uper; did you mean upper", 1, 8),
        ("SELECT item FROM sales GROUP BY 2", "no output column 2", 1, 33),
        ("SELECT item FROM sales ORDER BY 2 LIMIT 1", "no output column 2", 1, 33),
        ("SELECT item FROM sales UNION SELECT item FROM clicks ORDER BY qty LIMIT 1", "no column qty", 1, 63),
        ("WITH a AS (SELECT item FROM sales), A AS (SELECT item FROM sales) SELECT item FROM a", "two queries", 1, 37),
        ("SELECT a FROM items AS x(a)", "1 names for 2 columns", 1, 26),
        ("SELECT item FROM items JOIN rates USING (itm)", "no column itm; did you mean item", 1, 42),
    ],
)
def test_unknown_names(query: str, message: str, line: int, column: int) -> None:
    error = error_of(query)
    assert type(error) is UnknownNameError
    assert message in str(error)
    assert (error.line, error.column) == (line, column)


@pytest.mark.parametrize(
    ("query", "message", "column"),
    [
        ("SELECT 'a' + TRUE FROM sales", "add takes two numbers, not STRING and BOOLEAN", 8),
        ("SELECT item, sum(CAST(ts AS DATE)) FROM sales", "sum takes a number, not DATE", 14),
        ("SELECT item FROM sales WHERE qty", "WHERE takes a BOOLEAN, not BIGINT", 30),
        ("SELECT item FROM sales WHERE name AND qty > 1", "AND takes BOOLEAN, not STRING", 30),
        ("SELECT name FROM sales GROUP BY name HAVING name", "HAVING takes a BOOLEAN", 45),
        ("SELECT s.item FROM sales s JOIN items i ON s.item", "ON takes a BOOLEAN", 44),
        ("SELECT ts = 1 FROM sales", "TIMESTAMP and INT cannot be compared", 8),
        ("SELECT CASE WHEN item THEN 1 END FROM sales", "WHEN takes a BOOLEAN", 18),
        ("SELECT CASE WHEN item = 1 THEN ts ELSE 2 END FROM sales", "branches of CASE have no common type", 18),
        ("SELECT upper(name, name) FROM sales", "upper takes 1 argument, not 2", 8),
        ("SELECT round(price, item) FROM sales", "must be a whole number", 8),
        ("SELECT percentile(qty, 2) FROM sales", "from 0 to 1", 8),
        ("SELECT approx_top_k(DISTINCT qty, 3) FROM sales", "approx_top_k takes no DISTINCT", 8),
        ("SELECT bit_and(weight) FROM sales", "bit_and takes an integer, not DOUBLE", 8),
        ("SELECT bool_or(item) FROM sales", "bool_or takes BOOLEAN, not INT", 8),
        ("SELECT sum(item) IGNORE NULLS FROM sales", "IGNORE NULLS is for FIRST, LAST and ANY_VALUE", 8),
        ("SELECT mode(item, qty) FROM sales", "second argument of mode must be TRUE or FALSE", 8),
        ("SELECT percentile_disc(2) WITHIN GROUP (ORDER BY item) FROM sales", "a number from 0 to 1", 8),
        ("SELECT mode(item) WITHIN GROUP (ORDER BY item) FROM sales", "takes no arguments, not 1", 8),
        ("SELECT coalesce(ts, 1) FROM sales", "arguments of coalesce have no common type: TIMESTAMP, INT", 8),
        ("SELECT item IN (1, TRUE) FROM sales", "IN compares INT with BOOLEAN", 8),
        ("SELECT (ts - ts) + price FROM sales", "add takes no DECIMAL(10,2) and INTERVAL DAY TO SECOND", 9),
        ("SELECT qty + INTERVAL 1 DAY FROM sales", "added to a DATE or TIMESTAMP, not to BIGINT", 8),
        ("SELECT weight DIV 2 FROM sales", "DIV takes integers or decimals", 8),
        ("SELECT date_trunc('fortnight', ts) FROM sales", "must be one of", 8),
        ("SELECT CAST(ts AS BOOLEAN) FROM sales", "TIMESTAMP cannot be cast to BOOLEAN", 13),
        ("SELECT CAST(qty AS DECIMAL(50, 2)) FROM sales", "DECIMAL(50,2) is not valid", 28),
        ("SELECT DATE '2020-02-31' FROM sales", "is no DATE", 13),
        ("SELECT 1234567890123456789012345678901234567890 FROM sales", "more than 38 digits", 8),
        (
            "SELECT item FROM sales UNION SELECT item, qty FROM sales",
            "same number of columns on both sides, not 1 and 2",
            8,
        ),
        ("SELECT ts FROM sales EXCEPT SELECT item FROM clicks", "column 1 of EXCEPT is TIMESTAMP on the left", 8),
    ],
)
def test_types_that_do_not_fit(query: str, message: str, column: int) -> None:
    error = error_of(query)
    assert type(error) is TypeMismatchError
    assert message in str(error)
    assert (error.line, error.column) == (1, column)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT item FROM sales LIMIT item", "LIMIT takes a constant whole number"),
        ("SELECT item FROM sales LIMIT -1", "LIMIT takes a constant whole number"),
        ("SELECT item FROM sales LIMIT 1 - 2", "LIMIT takes a constant whole number"),
        ("SELECT item FROM sales LIMIT NULL", "LIMIT takes a constant whole number"),
        ("SELECT item FROM sales LIMIT 2 OFFSET 'x'", "OFFSET takes a constant whole number"),
        ("SELECT DISTINCT item FROM sales ORDER BY item + qty", "may only use output columns"),
        ("SELECT item FROM sales QUALIFY qty > 1", "QUALIFY needs a window function"),
        ("SELECT rank() OVER () FROM sales", "rank needs an ORDER BY in its OVER clause"),
        (
            "SELECT item FROM sales WHERE rank() OVER (ORDER BY qty) = 1",
            "a window function in WHERE; filter with QUALIFY",
        ),
        ("SELECT item FROM sales GROUP BY item HAVING sum(item) OVER () > 1", "a window function in HAVING"),
        ("SELECT sum(max(qty) OVER ()) OVER () FROM sales", "a window function in the argument of an aggregate"),
        ("SELECT sum(qty) OVER (PARTITION BY item ORDER BY qty GROUPS 1 PRECEDING) FROM sales", "GROUPS frames"),
        (
            "SELECT sum(qty) OVER (ORDER BY qty, item RANGE 1 PRECEDING) FROM sales",
            "exactly one expression in ORDER BY",
        ),
        ("SELECT lag(qty) OVER (ORDER BY qty ROWS 1 PRECEDING) FROM sales", "lag takes no frame"),
        ("SELECT upper(name) OVER (ORDER BY qty) FROM sales", "is not a window function or an aggregate"),
        ("SELECT sentences((SELECT max(name) FROM sales)) FROM sales", "a subquery as an argument of sentences"),
        ("SELECT s.item FROM sales s RIGHT JOIN LATERAL (SELECT s.qty FROM items) i ON TRUE", "RIGHT JOIN LATERAL"),
        (
            "SELECT s.item FROM sales s LEFT JOIN items i ON EXISTS (SELECT 1 FROM clicks WHERE user = s.name AND user = i.label)",
            "may refer to one side of the join",
        ),
        ("SELECT item FROM sales LATERAL VIEW upper(name) t AS x", "LATERAL with"),
        ("SELECT * FROM sales PIVOT (qty FOR item IN (1, 2))", "PIVOT needs aggregates"),
        ("SELECT * FROM sales PIVOT (sum(qty) FOR item IN (qty))", "the values of PIVOT must be constants"),
        ("SELECT * FROM UNNEST(array(1))", "UNNEST"),
        ("SELECT * FROM upper(array(1))", "table functions"),
        ("SELECT * FROM sql_keywords()", "table functions"),
        ("WITH RECURSIVE a AS (SELECT item FROM sales) SELECT item FROM a", "recursive"),
        ("SELECT grouping(item) FROM sales GROUP BY item", "GROUPING needs GROUP BY with GROUPING SETS"),
        ("SELECT grouping_id() FROM sales", "GROUPING_ID needs GROUP BY with GROUPING SETS"),
        ("SELECT item FROM sales WHERE grouping(item) = 1 GROUP BY ROLLUP (item)", "GROUPING in WHERE"),
        ("SELECT grouping(qty) FROM sales GROUP BY ROLLUP (item)", "GROUPING takes a column of GROUP BY"),
        ("SELECT grouping_id(qty) FROM sales GROUP BY ROLLUP (item, qty)", "GROUPING_ID takes all columns"),
        (f"SELECT 1 FROM sales GROUP BY CUBE ({', '.join(f'item + {n}' for n in range(13))})", "4,096 grouping sets"),
        ("SELECT item FROM sales TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT item FROM sales SORT BY item", "SORT BY"),
        ("SELECT item FROM sales DISTRIBUTE BY item", "DISTRIBUTE BY"),
        ("SELECT item FROM sales CLUSTER BY item", "CLUSTER BY"),
        ("SELECT /*+ BROADCAST(items) */ item FROM items", "hint; leave it out"),
        ("SELECT sum(qty) OVER (ORDER BY qty ROWS 1 PRECEDING EXCLUDE TIES) FROM sales", "EXCLUDE in a frame"),
        ("SELECT vector_sum(array(1F)) FROM sales", "the aggregate vector_sum"),
        (
            "SELECT item FROM sales WHERE hour(to_time('12:30')) = qty",
            "to_time, since it does not support the type TIME",
        ),
        ("SELECT CAST(name AS TIME) FROM sales", "the type TIME: Spark has it switched off"),
        ("SELECT upper(name) IGNORE NULLS FROM sales", "NULLS for a function that is not an aggregate"),
        ("SELECT sum(sum(qty)) FROM sales", "the aggregate sum in the argument of an aggregate"),
        ("SELECT item FROM sales WHERE count(*) > 1", "the aggregate count in WHERE; filter groups with HAVING"),
        ("SELECT item FROM sales GROUP BY sum(qty)", "the aggregate sum in GROUP BY"),
        ("SELECT sum(qty) AS x FROM sales GROUP BY x", "GROUP BY an aggregate"),
        ("SELECT item, qty FROM sales GROUP BY item", "qty is neither in GROUP BY nor inside an aggregate"),
        ("SELECT * FROM sales GROUP BY item", "neither in GROUP BY nor inside an aggregate"),
        ("SELECT item, count(*) FROM sales", "item is neither in GROUP BY"),
        ("SELECT upper(name) FILTER (WHERE item = 1) FROM sales", "FILTER for a function that is not an aggregate"),
        ("SELECT DISTINCT item FROM sales ORDER BY qty LIMIT 1", "may only use output columns"),
        ("SELECT item FROM sales UNION BY NAME SELECT item FROM clicks", "BY NAME"),
        ("SELECT CAST(item AS ARRAY<TIME>) FROM sales", "not support the type TIME"),
        ("SELECT INTERVAL price DAY FROM sales", "an interval is a constant"),
        ("SELECT now() FROM sales", "NOW() in SELECT"),
        ("SELECT rand() FROM sales", "is not deterministic"),
        (
            "SELECT * FROM sales MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts AS a PATTERN (A B) DEFINE B AS B.qty > 1)",
            "Sash does not run MATCH_RECOGNIZE",
        ),
        ("SELECT current_timestamp FROM sales", "NOW() in SELECT"),
        ("SELECT :x FROM sales", ":x"),
    ],
)
def test_what_sash_does_not_run_is_named(query: str, message: str) -> None:
    error = error_of(query)
    assert type(error) is UnsupportedSqlError
    assert message in str(error)
    assert error.line == 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT sum(qty) OVER w FROM sales", "there is no window w: define it with WINDOW name AS (...)"),
        ("SELECT sum(qty) OVER (ORDER BY qty ROWS -1 PRECEDING) FROM sales", "whole numbers"),
        ("SELECT lag(qty, item) OVER (ORDER BY qty) FROM sales", "lag needs a whole number that is a constant"),
    ],
)
def test_windows_that_are_written_wrongly(query: str, message: str) -> None:
    assert message in str(error_of(query))


@pytest.mark.parametrize(
    ("query", "message", "column"),
    [
        ("SELECT item FROM sales SORT BY item", "SORT BY; write ORDER BY", 32),
        ("SELECT item FROM sales CLUSTER BY item", "CLUSTER BY; the answer is a bag", 35),
        ("SELECT item FROM sales TABLESAMPLE (10 PERCENT)", "TABLESAMPLE", 37),
        ("SELECT item FROM sales FOR UPDATE", "FOR UPDATE and FOR SHARE; a query only reads", 8),
        ("SELECT DISTINCT ON (item) item FROM sales", "DISTINCT ON; take one row of each group", 21),
        ("SELECT item FROM sales FETCH FIRST 3 ROWS ONLY", "FETCH; write LIMIT", 36),
        ("SELECT item FROM sales UNION ALL BY NAME SELECT item FROM clicks", "BY NAME; select the columns", 8),
        ("SELECT item COLLATE UTF8_LCASE FROM sales", "COLLATE is not in", 8),
        ("SELECT name SIMILAR TO 'a' FROM sales", "SIMILAR TO is not in", 8),
        ("SELECT item FROM sales WHERE item BETWEEN SYMMETRIC 3 AND 1", "Sash does not run (item BETWEEN 3 AND 1", 30),
        ("SELECT item INTO x FROM sales", "SELECT INTO; the sink", 18),
        ("SELECT item FROM sales ORDER BY item WITH FILL", "WITH FILL", 33),
        ("VALUES (1) AS t(a)", "write SELECT * FROM VALUES ... AS alias", 15),
    ],
)
def test_constructs_are_named_in_the_words_of_sql(query: str, message: str, column: int) -> None:
    error = error_of(query)
    assert type(error) is UnsupportedSqlError
    assert message in str(error)
    assert (error.line, error.column) == (1, column)


def test_a_column_without_from() -> None:
    assert "there is no column item: there is no FROM" in str(error_of("SELECT item"))
