SELECT s.id, r.w FROM s JOIN r ON s.k = r.k;
SELECT s.id, r.w, q.name FROM s JOIN r ON s.k = r.k JOIN q ON r.k = q.k;
SELECT s.id, r.w FROM s LEFT JOIN r ON s.k = r.k AND s.g = r.g;
SELECT s.id, r.w FROM s RIGHT JOIN r ON s.k = r.k AND r.w > 3;
SELECT s.id, q.name FROM s FULL JOIN q ON s.k = q.k AND s.v > 5;
SELECT s.id, r.y FROM s CROSS JOIN r WHERE s.v > r.w;
SELECT k, id, w FROM s JOIN r USING (k);
SELECT k, id, name FROM s FULL JOIN q USING (k);
SELECT id FROM s LEFT SEMI JOIN r ON s.k = r.k AND s.v > r.w;
SELECT id FROM s LEFT ANTI JOIN r ON s.k = r.k;
SELECT a.id AS one, b.id AS other FROM s a JOIN s b ON a.v = b.v AND a.id < b.id;
SELECT a.id, b.w FROM s [RANGE 4 SECONDS] AS a JOIN r [RANGE 20 SECONDS] AS b ON a.k = b.k;
SELECT s.id, q.z FROM s JOIN q ON s.k <=> q.k AND s.v <> q.z;
SELECT s.k, COUNT(*) AS n, SUM(r.w) AS total FROM s JOIN r ON s.k = r.k GROUP BY s.k;
SELECT s.id, e.v FROM s LEFT JOIN e ON s.k = e.k
