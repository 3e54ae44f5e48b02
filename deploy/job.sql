CREATE STREAM sales (ts TIMESTAMP, item_id INT, price DOUBLE)
USING kafka OPTIONS (kafka.bootstrap.servers 'kafka:9092', subscribe 'sales', format 'json')
SLACK '5 seconds';

CREATE QUERY totals AS
  SELECT item_id, COUNT(*) AS n, SUM(price) AS total FROM sales [RANGE 1 MINUTE] GROUP BY item_id
INTO postgres (url 'postgresql://sash@postgres/shop', table 'totals')
TRIGGER '1 second';
