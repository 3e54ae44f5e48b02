-- Find last bid: the latest bid of each bidder on each auction. NEXMark keeps bids for ever; here they count for 5 minutes.
SELECT auction, bidder, price, channel, url, ts, extra
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY ts DESC) AS rank_number
  FROM bid [RANGE 5 MINUTES]
) AS ranked
WHERE rank_number <= 1
