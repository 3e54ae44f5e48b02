WITH high AS (SELECT id, k, v FROM s WHERE v > 5) SELECT k, COUNT(*) AS n FROM high GROUP BY k;
WITH a AS (SELECT k, COUNT(*) AS n FROM s GROUP BY k), b AS (SELECT k, MAX(z) AS z FROM q GROUP BY k) SELECT a.k, a.n, b.z FROM a JOIN b ON a.k = b.k;
WITH a(key, total) AS (SELECT k, SUM(v) FROM s GROUP BY k) SELECT MAX(total) AS high FROM a;
SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) AS counts GROUP BY n;
SELECT t.a + 1 AS c FROM (SELECT k, v FROM s) AS t(a, b) WHERE t.b > 0
;
WITH a AS (SELECT k, v FROM s), b AS (SELECT k, SUM(v) AS total FROM a GROUP BY k) SELECT a.k, a.v, b.total FROM a JOIN b ON a.k = b.k;
WITH a AS (SELECT k FROM s) SELECT k FROM a UNION ALL SELECT k FROM a WHERE k > 1;
WITH a AS (WITH b AS (SELECT k, v FROM s WHERE v > 0) SELECT k, COUNT(*) AS n FROM b GROUP BY k) SELECT SUM(n) AS total FROM a;
WITH a AS (SELECT k FROM s EXCEPT SELECT k FROM r) SELECT s.id FROM s JOIN a ON s.k = a.k;
WITH s AS (SELECT k, w AS v FROM r) SELECT k, SUM(v) AS total FROM s GROUP BY k;
WITH a AS (SELECT DISTINCT g FROM s), b AS (SELECT DISTINCT g FROM r) SELECT a.g FROM a LEFT ANTI JOIN b ON a.g = b.g;
SELECT x.id FROM (SELECT id, v FROM (SELECT id, v, k FROM s WHERE k > 0) AS inner_part WHERE v > 0) AS x;
WITH unused AS (SELECT k FROM q), a AS (SELECT id FROM s) SELECT id FROM a;
WITH a(x, y) AS (SELECT k, g FROM s) SELECT x, COUNT(y) AS n FROM a GROUP BY x;
SELECT p.a, COUNT(*) AS n FROM s AS p(t, i, a, g, v, x, d, b, y, z, big, small, bin) GROUP BY p.a
