-- Constant relations, alone and beside streams.
SELECT 1 AS one, 'a' AS letter, NULL AS nothing;
SELECT 1 + 2 AS three, CAST('2024-02-29' AS DATE) AS day;
SELECT a, b FROM VALUES (1, 'x'), (2, 'y'), (NULL, NULL) AS p(a, b);
VALUES (1, 2.5), (3, 4.0);
SELECT COUNT(*) AS n, SUM(a) AS total FROM VALUES (1), (2), (2) AS p(a);
SELECT s.id, p.label FROM s JOIN VALUES (1, 'one'), (2, 'two') AS p(k, label) ON s.k = p.k;
SELECT s.id, p.label FROM s LEFT JOIN VALUES (1, 'one'), (2, 'two') AS p(k, label) ON s.k = p.k;
SELECT p.k, COUNT(s.id) AS n FROM VALUES (1), (2), (9) AS p(k) LEFT JOIN s ON s.k = p.k GROUP BY p.k;
SELECT k FROM s UNION ALL SELECT 99;
SELECT k FROM s EXCEPT SELECT * FROM VALUES (1), (NULL) AS p(a);
SELECT k FROM s INTERSECT VALUES (1), (2), (7);
SELECT 1 AS one WHERE 1 = 2;
SELECT DISTINCT a FROM VALUES (1), (1), (2) AS p(a);
WITH limits AS (SELECT 5 AS low, 9 AS high) SELECT s.id FROM s, limits WHERE s.v BETWEEN limits.low AND limits.high;
SELECT s.id FROM s CROSS JOIN (SELECT 7 AS seven) AS c WHERE s.v = c.seven
