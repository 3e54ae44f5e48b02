-- Bitmaps, and sketches whose counters are sums, in Spark's format.
SELECT count_min_sketch(v, 0.5D, 0.8D, 7) AS c FROM s;
SELECT k, count_min_sketch(small, 0.3D, 0.9D, 1) AS c FROM s GROUP BY k;
SELECT k, count_min_sketch(g, 0.4D, 0.7D, 42) AS c FROM s GROUP BY k;
SELECT count_min_sketch(bin, 0.4D, 0.9D, 3) FILTER (WHERE b) AS c FROM s;
SELECT count_min_sketch(DISTINCT big, 0.4D, 0.6D, 11) AS c FROM s;
SELECT k, bitmap_count(bitmap_construct_agg(bitmap_bit_position(id))) AS n FROM s GROUP BY k;
SELECT md5(bitmap_construct_agg(id)) AS bits FROM s WHERE v IS NOT NULL;
SELECT k, md5(bitmap_or_agg(bin)) AS o, md5(bitmap_and_agg(bin)) AS a FROM s GROUP BY k;
SELECT bitmap_count(bitmap_or_agg(bits)) AS n FROM (SELECT bitmap_construct_agg(id) AS bits FROM s GROUP BY k) WHERE bits IS NOT NULL;
SELECT bitmap_bucket_number(id) AS bucket, bitmap_count(bitmap_construct_agg(bitmap_bit_position(id))) AS n FROM s GROUP BY bitmap_bucket_number(id)
