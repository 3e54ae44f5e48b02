-- How names are resolved where several things have them.
SELECT 'x' AS s1, k FROM (SELECT k, STRUCT(k AS f) AS s1 FROM s) GROUP BY s1, k ORDER BY s1.f;
SELECT STRUCT(COUNT(*) AS n) AS g FROM s GROUP BY g HAVING g.n > 1;
SELECT k, COUNT(*) AS n, GROUPING_ID() AS id FROM s GROUP BY k GROUPING SETS ((k), ());
SELECT COUNT(*) AS n, GROUPING_ID() AS id FROM s WHERE v > 5 GROUP BY GROUPING SETS (());
SELECT COUNT(*) AS n FROM s GROUP BY GROUPING SETS (()) HAVING GROUPING_ID() = 0;
SELECT k, g, COUNT(*) AS n, grouping__id FROM s GROUP BY GROUPING SETS ((k), (g)) HAVING GROUPING__ID > 1;
SELECT j.a, j.e FROM (s JOIN r ON s.id < 3 AND s.k = r.k) AS j(t1, id, a, b, c, d, e, f, h, i, l, m, o, t2, p, q, u, w);
SELECT j.n, j.z FROM ((SELECT k AS n FROM s WHERE v > 5) a JOIN q ON a.n = q.k) j WHERE j.z > 1;
SELECT id FROM s WHERE (k, v) IN ((1, 10), (2, 7));
SELECT id FROM s WHERE (k, g) NOT IN ((1, 'a'), (3, 'c'))
