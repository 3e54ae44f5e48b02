-- PIVOT and UNPIVOT.
SELECT * FROM (SELECT k, b, v FROM s) PIVOT (SUM(v) FOR k IN (1, 2));
SELECT * FROM (SELECT k, g, v FROM s) PIVOT (SUM(v) AS total FOR k IN (1 AS one, 2 AS two));
SELECT * FROM (SELECT k, b, v FROM s) PIVOT (COUNT(v) AS n, MAX(v) AS high FOR k IN (1 AS one, 2 AS two, 3 AS three));
SELECT * FROM (SELECT k, v FROM s) PIVOT (SUM(v) FOR k IN (1, 2, 3));
SELECT * FROM (SELECT k, b, v FROM s) PIVOT (AVG(v) FOR b IN (true AS yes, false AS no));
SELECT * FROM (SELECT k, b, v, id FROM s) PIVOT (COUNT(id) FOR (k, b) IN ((1, true) AS x, (2, false) AS y));
SELECT one FROM (SELECT k, b, v FROM s) PIVOT (MIN(v) FOR k IN (1 AS one)) WHERE one IS NOT NULL;
SELECT * FROM (SELECT k, v, small FROM s) UNPIVOT (n FOR what IN (v, small));
SELECT * FROM (SELECT k, v, small FROM s) UNPIVOT INCLUDE NULLS (n FOR what IN (v AS a, small AS b));
SELECT what, COUNT(*) AS n FROM (SELECT k, v, small FROM s) UNPIVOT (n FOR what IN (k, v, small)) GROUP BY what;
SELECT * FROM (SELECT id, k, v, small FROM s) UNPIVOT ((x, y) FOR what IN ((k, v) AS first, (small, v) AS second));
SELECT what, MAX(n) AS high FROM (SELECT k, MIN(v) AS low, MAX(v) AS top FROM s GROUP BY k) UNPIVOT (n FOR what IN (low, top)) GROUP BY what
