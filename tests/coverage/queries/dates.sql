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
SELECT k, window.start AS a, SUM(v) AS total FROM t GROUP BY k, window(ts, '4 seconds', '2 seconds');
SELECT window, COUNT(*) AS n FROM t GROUP BY window(ts, '5 seconds');
SELECT window(ts, '5 seconds') AS w, SUM(v) AS total FROM t GROUP BY window(ts, '5 seconds');
SELECT window.*, most FROM (SELECT window, k, MAX(v) AS most FROM t GROUP BY k, window(ts, '4 seconds', '2 seconds'));
SELECT window(ts, '4 seconds', '2 seconds'), v FROM t;
SELECT window, COUNT(*) AS n FROM t GROUP BY window(ts, '5 seconds') ORDER BY window DESC LIMIT 1;
SELECT w.start AS a, n FROM (SELECT window AS w, COUNT(*) AS n FROM t GROUP BY window(ts, '5 seconds'));
SELECT COUNT(DISTINCT window(ts, '5 seconds')) AS n, MAX(window(ts, '5 seconds')) AS latest FROM t;
SELECT window, COUNT(*) AS n FROM t GROUP BY window(ts, '5 seconds') HAVING window.start > TIMESTAMP '1970-01-01 00:00:01';
SELECT session_window, COUNT(*) AS n FROM t GROUP BY session_window(ts, '2 seconds');
SELECT k, session_window(ts, '2 seconds') AS w, SUM(v) AS total FROM t GROUP BY k, session_window(ts, '2 seconds');
SELECT session_window.*, n FROM (SELECT session_window, COUNT(v) AS n FROM t GROUP BY session_window(ts, '1 second'));
SELECT session_window FROM t GROUP BY session_window(ts, '3 seconds') ORDER BY session_window LIMIT 1
