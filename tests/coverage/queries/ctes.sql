WITH high AS (SELECT id, k, v FROM s WHERE v > 5) SELECT k, COUNT(*) AS n FROM high GROUP BY k;
WITH a AS (SELECT k, COUNT(*) AS n FROM s GROUP BY k), b AS (SELECT k, MAX(z) AS z FROM q GROUP BY k) SELECT a.k, a.n, b.z FROM a JOIN b ON a.k = b.k;
WITH a(key, total) AS (SELECT k, SUM(v) FROM s GROUP BY k) SELECT MAX(total) AS high FROM a;
SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) AS counts GROUP BY n;
SELECT t.a + 1 AS c FROM (SELECT k, v FROM s) AS t(a, b) WHERE t.b > 0
