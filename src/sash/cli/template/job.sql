-- Orders arrive as JSON files in the folder orders (generate.py makes some).
CREATE STREAM orders (ts TIMESTAMP, customer STRING, amount DOUBLE)
USING json OPTIONS (path 'orders')
SLACK '2 seconds';

-- What every customer has spent in the last minute; it shrinks as orders leave the window.
CREATE QUERY spending AS
  SELECT customer, COUNT(*) AS orders, SUM(amount) AS total
  FROM orders [RANGE 1 MINUTE]
  GROUP BY customer
INTO changelog (path 'answers/spending');

-- Customers with an order in the last minute, and none in the last ten seconds.
CREATE QUERY silent AS
  SELECT customer FROM orders [RANGE 1 MINUTE]
  EXCEPT
  SELECT customer FROM orders [RANGE 10 SECONDS]
INTO changelog (path 'answers/silent');
