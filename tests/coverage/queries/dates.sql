-- Dates, times and intervals.
SELECT id, day + INTERVAL 1 MONTH AS a, day - INTERVAL 1 DAY AS b, at + INTERVAL 90 MINUTES AS c FROM s;
SELECT id, DATEDIFF(CAST(at AS DATE), day) AS days FROM s;
SELECT id, UNIX_TIMESTAMP(at) AS a FROM s;
SELECT id, DATE_TRUNC('DAY', at) AS a, DATE_TRUNC('YEAR', at) AS b, DATE_TRUNC('MINUTE', at) AS c FROM s;
SELECT DATE_TRUNC('MONTH', at) AS month, COUNT(*) AS n FROM s GROUP BY DATE_TRUNC('MONTH', at);
SELECT CAST(at AS DATE) AS day, MAX(at) AS last_at FROM s GROUP BY CAST(at AS DATE);
SELECT t.ts, t.k, t.v FROM t WHERE t.ts > TIMESTAMP '1970-01-01 00:00:02';
SELECT k, MAX(ts) AS last_ts, MIN(ts) AS first_ts FROM t GROUP BY k;
SELECT a.ts, b.ts AS other FROM t AS a JOIN t AS b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts;
SELECT a.v, b.v AS w FROM t AS a JOIN t AS b ON a.ts = b.ts AND a.k < b.k;
SELECT ts, SECOND(ts) AS s, MINUTE(ts) AS m, YEAR(ts) AS y FROM t;
SELECT window.start AS a, window.end AS b, COUNT(*) AS n FROM t GROUP BY window(ts, '5 seconds');
SELECT k, window.start AS a, SUM(v) AS total FROM t GROUP BY k, window(ts, '4 seconds', '2 seconds')
