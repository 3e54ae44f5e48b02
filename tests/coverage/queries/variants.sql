-- VARIANT values made of JSON texts, above sources and above operators.
SELECT id, to_json(parse_json(to_json(struct(k, g, v, x)))) AS j FROM s WHERE x IS NULL OR x < 100;
SELECT id, parse_json(to_json(struct(k, g))):g::STRING AS g, parse_json(to_json(struct(k, g))):k::INT AS k FROM s;
SELECT k, parse_json(concat('{"n":', COUNT(*), '}')):n::BIGINT AS n FROM s GROUP BY k;
SELECT id FROM s WHERE parse_json(to_json(struct(v))):v::INT > 5;
SELECT parse_json(to_json(struct(k))):k::INT AS k, SUM(v) AS total FROM s GROUP BY parse_json(to_json(struct(k))):k::INT;
SELECT DISTINCT variant_get(parse_json(to_json(array(k, id % 2))), '$[1]', 'int') AS parity FROM s;
SELECT id, schema_of_variant(parse_json(to_json(struct(k, d, b)))) AS types FROM s;
SELECT id, try_variant_get(parse_json(concat('{"a":"', g, '"}')), '$.a', 'int') AS n FROM s;
SELECT COUNT(doc) AS n FROM (SELECT try_parse_json(g) AS doc FROM s);
SELECT k, to_json(FIRST(parse_json(to_json(struct(v))))) AS j FROM (SELECT k, v FROM s WHERE id IN (1, 6)) GROUP BY k;
SELECT a.id, to_json(doc) AS j FROM (SELECT id, k, parse_json(to_json(struct(v, d))) AS doc FROM s) AS a JOIN r ON a.k = r.k;
SELECT id, to_json(CASE WHEN b THEN parse_json('[1]') ELSE parse_json(CAST(v AS STRING)) END) AS j FROM s;
SELECT id, CAST(parse_json(CAST(x AS STRING)) AS DOUBLE) AS x, CAST(parse_json(CAST(d AS STRING)) AS DECIMAL(10, 1)) AS d FROM s WHERE x < 100;
SELECT id, to_json(LAG(doc) OVER (ORDER BY id)) AS previous FROM (SELECT id, parse_json(to_json(struct(k))) AS doc FROM s);
SELECT s.id, q.name FROM s JOIN q ON parse_json(to_json(struct(s.k))):k::INT = q.k
;
SELECT id, to_json(CAST(v AS VARIANT)) AS v, to_json(CAST(d AS VARIANT)) AS d, schema_of_variant(CAST(day AS VARIANT)) AS day, CAST(CAST(at AS VARIANT) AS STRING) AS at FROM s;
SELECT k, schema_of_variant(FIRST(doc)) AS type, FIRST(doc):day::DATE AS day FROM (SELECT k, to_variant_object(named_struct('day', day, 'x', x, 'bin', bin)) AS doc FROM s WHERE id IN (1, 6, 9)) GROUP BY k;
SELECT s.id, to_json(variant_set(doc, '$.n', q.z)) AS j FROM (SELECT id, k, to_variant_object(named_struct('k', k)) AS doc FROM s) AS s JOIN q ON s.k = q.k;
SELECT id, CAST(to_variant_object(array(k, v)) AS ARRAY<STRING>) AS a, CAST(to_variant_object(named_struct('v', v, 'b', b)) AS STRUCT<b: BOOLEAN, c: INT>) AS c FROM s;
SELECT k, MAX(CAST(doc AS MAP<STRING, INT>)['v']) AS m FROM (SELECT k, to_variant_object(map('v', v)) AS doc FROM s) GROUP BY k;
SELECT id, transform(docs, doc -> doc:k::INT) AS ks, size(docs) AS n FROM (SELECT id, array(to_variant_object(named_struct('k', k)), CAST(v AS VARIANT), NULL) AS docs FROM s WHERE id <> 5);
SELECT a.id, a.doc.part:v::INT AS v FROM (SELECT id, k, named_struct('part', to_variant_object(named_struct('v', v))) AS doc FROM s) AS a JOIN r ON a.k = r.k;
SELECT id, to_json(variant_delete(doc, '$.g', '$.l[0]')) AS less, to_json(variant_insert(doc, '$.l[1]', id)) AS more, to_json(variant_strip_nulls(doc)) AS stripped FROM (SELECT id, to_variant_object(named_struct('g', g, 'k', k, 'l', array(v, NULL))) AS doc FROM s);
SELECT id, to_json(variant_array_append(try_variant_set(CAST(array(v) AS VARIANT), '$[2]', d), '$', day)) AS j, is_valid_variant(CAST(x AS VARIANT)) AS valid FROM s
