-- JSON above operators: values from texts, texts from values.
SELECT k, get_json_object(to_json(struct(k, COUNT(*) AS n)), '$.n') AS n FROM s GROUP BY k;
SELECT id, to_json(struct(id, g, v, x, d, b)) AS j FROM s;
SELECT id, to_json(struct(day, at, bin, big, small)) AS j FROM s;
SELECT k, to_json(array_agg(v)) AS j FROM s WHERE v IS NOT NULL GROUP BY k;
SELECT k, to_json(map('n', COUNT(*), 'm', COUNT(v))) AS j FROM s GROUP BY k;
SELECT to_json(struct(k, g)) AS j, COUNT(*) AS n FROM s GROUP BY to_json(struct(k, g));
SELECT DISTINCT get_json_object(to_json(struct(k AS a)), '$.a') AS a FROM s;
SELECT id, from_json(to_json(struct(k, v, g)), 'k INT, v BIGINT, g STRING') AS j FROM s WHERE id < 6;
SELECT a.id, from_json(to_json(struct(a.v, b.w)), 'v INT, w INT').w AS w FROM s AS a JOIN r AS b ON a.k = b.k;
SELECT id, from_json(concat('{"a":', COALESCE(v, 0), ',"b":[', k, ',', id, ']}'), 'a DOUBLE, b ARRAY<INT>').b[1] AS b FROM s;
SELECT k, SUM(from_json(concat('{"n":', v, '}'), 'n BIGINT').n) AS total FROM s GROUP BY k;
SELECT s.id, t.a, t.b FROM s LATERAL VIEW json_tuple(to_json(struct(s.k AS a, s.g AS b)), 'a', 'b') t AS a, b;
SELECT k, json_tuple(to_json(struct(COUNT(*) AS n, MAX(g) AS g)), 'n', 'g') AS (n, g) FROM s GROUP BY k;
SELECT a.id, j.c0 FROM s AS a, LATERAL json_tuple(concat('{"x":"', a.g, '"}'), 'x') AS j;
SELECT id, json_array_length(to_json(array(k, v, id))) AS n, json_object_keys(to_json(struct(k, g))) AS names FROM s;
SELECT id FROM s WHERE get_json_object(to_json(struct(g, v)), '$.g') = 'a';
SELECT s.id, q.name FROM s JOIN q ON get_json_object(to_json(struct(s.k AS key)), '$.key') = CAST(q.k AS STRING);
SELECT id, get_json_object(to_json(array(struct(k AS a), struct(id AS a))), '$[*].a') AS l FROM s;
SELECT k, get_json_object(to_json(collect_list(struct(v))), '$[0].v') AS v FROM (SELECT k, v FROM s WHERE id = 1) GROUP BY k;
SELECT id, from_json('{"a":[{"b":1},{"b":"x"}]}', schema_of_json('{"a":[{"b":1}]}')).a[0].b + id AS n FROM s;
SELECT from_json(g, 'a INT') AS j, COUNT(*) AS n FROM s GROUP BY from_json(g, 'a INT');
SELECT MAX(to_json(struct(v))) AS most, COUNT(DISTINCT to_json(struct(k))) AS n FROM s;
SELECT id, LAG(to_json(struct(v))) OVER (ORDER BY id) AS previous FROM s;
SELECT to_json(struct(k)) AS j FROM s EXCEPT SELECT to_json(struct(k)) FROM r;
SELECT id, x.key, x.value FROM s LATERAL VIEW explode(from_json(to_json(struct(k, v)), 'MAP<STRING, INT>')) x AS key, value;
SELECT id, e.one.a AS a FROM s LATERAL VIEW explode(from_json(concat('[{"a":', id, '},{"a":null}]'), 'ARRAY<STRUCT<a: INT>>')) e AS one
