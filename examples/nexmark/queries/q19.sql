-- Auction top 10: the highest bids on each auction. NEXMark keeps bids for ever; here they count for 5 minutes.
SELECT *
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number
  FROM bid [RANGE 5 MINUTES]
) AS ranked
WHERE rank_number <= 10
