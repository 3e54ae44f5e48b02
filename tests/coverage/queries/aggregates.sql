-- Aggregates over all rows and by group.
SELECT COUNT(*) AS n, COUNT(v) AS m FROM s;
SELECT SUM(v) AS total, AVG(v) AS mean, MIN(v) AS low, MAX(v) AS high FROM s;
SELECT g, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY g;
SELECT k, SUM(x) AS total, AVG(x) AS mean FROM s GROUP BY k;
SELECT k, MIN(d) AS low, MAX(d) AS high, SUM(d) AS total, AVG(d) AS mean FROM s GROUP BY k;
SELECT MIN(g) AS first_name, MAX(g) AS last_name, MIN(day) AS first_day, MAX(at) AS last_at FROM s;
SELECT b, COUNT(*) AS n, MIN(small) AS low, SUM(small) AS total FROM s GROUP BY b;
SELECT k, COUNT(DISTINCT g) AS names FROM s GROUP BY k;
SELECT COUNT(DISTINCT v) AS vs, SUM(DISTINCT v) AS total FROM s;
SELECT k, COUNT(*) FILTER (WHERE v > 5) AS n, SUM(v) FILTER (WHERE b) AS total FROM s GROUP BY k;
SELECT STDDEV(v) AS deviation, VARIANCE(v) AS spread, VAR_POP(v) AS population FROM s;
SELECT k, STDDEV_POP(x) AS deviation FROM s WHERE x < 100 GROUP BY k;
SELECT k + 1 AS key, SUM(v * 2 - 1) AS total FROM s GROUP BY k + 1;
SELECT k, SUM(v) + COUNT(*) AS mixed, MAX(v) - MIN(v) AS spread FROM s GROUP BY k;
SELECT MAX(big) AS high, SUM(big) AS total FROM s WHERE k = 2;
SELECT MEDIAN(v) AS middle FROM s;
SELECT k, PERCENTILE(v, 0.25) AS quarter FROM s GROUP BY k;
SELECT k, MIN_BY(g, v) AS least, MAX_BY(g, v) AS most FROM s WHERE id <> 3 GROUP BY k;
SELECT COUNT_IF(v > 5) AS n FROM s
