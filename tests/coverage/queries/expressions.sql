SELECT id, v + k AS a, v - k AS b, v * k AS c, v / 4 AS d, v % 4 AS e, -v AS f FROM s;
SELECT id, v DIV 4 AS q, v / NULLIF(k, 2) AS ratio FROM s;
SELECT id, d + 1 AS a, d * d AS b, d / 3 AS c, d - 0.005 AS e FROM s;
SELECT id, CASE WHEN v > 8 THEN 'high' WHEN v > 0 THEN 'low' ELSE 'none' END AS level FROM s;
SELECT id, CASE g WHEN 'a' THEN 1 WHEN 'b' THEN 2 END AS code FROM s;
SELECT id, COALESCE(v, k, 0) AS some, NVL(g, 'missing') AS name, IF(b, 1, 0) AS flag FROM s;
SELECT id, CAST(v AS STRING) AS a, CAST(x AS STRING) AS b, CAST(d AS DOUBLE) AS c, CAST(v AS DECIMAL(5,1)) AS e FROM s WHERE x < 100;
SELECT id, CAST(d AS INT) AS whole, CAST(b AS INT) AS bit, CAST(at AS DATE) AS at_day FROM s;
SELECT id, UPPER(g) AS a, LOWER(g) AS b, LENGTH(g) AS c, g || '-' || g AS d, CONCAT(g, '!') AS e FROM s;
SELECT id, SUBSTRING(g, 2) AS a, TRIM(g) AS b, REPLACE(g, 'b', 'x') AS c FROM s;
SELECT id, ABS(v) AS a, ROUND(x, 1) AS b, FLOOR(x) AS c, CEIL(d) AS e, SQRT(ABS(v)) AS f FROM s WHERE x < 100;
SELECT id, YEAR(day) AS y, MONTH(day) AS m, DAY(day) AS d, HOUR(at) AS h, MINUTE(at) AS n FROM s;
SELECT id, v & 3 AS a, v | 8 AS b, v ^ 5 AS c FROM s;
SELECT id, GREATEST(v, k, 5) AS high, LEAST(v, k) AS low FROM s
