-- LATERAL with generators and conditions.
SELECT s.id, e.c FROM s JOIN LATERAL EXPLODE(ARRAY(s.k, s.v)) e(c) ON e.c > 2;
SELECT s.id, e.c FROM s LEFT JOIN LATERAL EXPLODE(ARRAY(s.k, s.v)) e(c) ON e.c > 5;
SELECT s.id, e.p, e.c FROM s LEFT JOIN LATERAL POSEXPLODE(ARRAY(s.k, s.v, s.id)) e(p, c) ON e.p > 0 AND e.c = s.k;
SELECT s.id, e.p, e.c FROM s JOIN LATERAL POSEXPLODE(SPLIT(s.g, '')) e(p, c) ON e.c <> 'b';
SELECT s.id, e.c FROM s LEFT JOIN LATERAL EXPLODE(SPLIT(s.g, ' ')) e(c) ON LENGTH(e.c) > 1;
SELECT s.id, e.c FROM s LEFT JOIN LATERAL EXPLODE_OUTER(IF(s.v > 5, ARRAY(s.v), ARRAY())) e(c) ON e.c IS NULL OR e.c > 8;
SELECT s.id, e.key, e.value FROM s LEFT JOIN LATERAL EXPLODE(MAP('v', s.v, 'k', s.k)) e(key, value) ON e.value >= 3;
SELECT s.id, e.p, e.q FROM s LEFT JOIN LATERAL INLINE(ARRAY(STRUCT(s.k AS p, s.v AS q), STRUCT(1 AS p, s.id AS q))) e(p, q) ON e.p = 1 AND e.q > 4;
SELECT s.id, e.p, e.q FROM s LEFT JOIN LATERAL STACK(2, s.k, s.v, s.id, 5) e(p, q) ON e.p < e.q;
SELECT s.id, e.c FROM s LEFT JOIN LATERAL EXPLODE(ARRAY(s.k, s.v)) e(c) ON EXISTS(ARRAY(1, 7), x -> x = e.c);
SELECT s.id, l.x FROM s, LATERAL (SELECT EXPLODE(ARRAY(s.k, s.id)) AS x) AS l;
SELECT s.id, e.x FROM s JOIN LATERAL (SELECT EXPLODE(ARRAY(s.k, s.id))) e(x) ON e.x <> s.k;
SELECT s.id, e.x FROM s LEFT JOIN LATERAL (SELECT EXPLODE(SPLIT(s.g, ''))) e(x) ON e.x <> 'a';
SELECT k, n.id FROM q, LATERAL RANGE(2) AS n WHERE k < 3;
SELECT k, e.c FROM (SELECT k, COLLECT_LIST(v) AS vs FROM s GROUP BY k) LEFT JOIN LATERAL EXPLODE(vs) e(c) ON c > 5;
SELECT col FROM LATERAL EXPLODE(ARRAY(1, 2)) JOIN q ON q.k = col
