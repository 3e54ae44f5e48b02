-- Calculation: prices in euros within a range, the time of day, and how often the letter c is in a text.
-- NEXMark counts with a function of the user's; REPLACE and LENGTH do the same.
SELECT auction, bidder, 0.908 * price AS price,
  CASE
    WHEN HOUR(ts) >= 8 AND HOUR(ts) <= 18 THEN 'dayTime'
    WHEN HOUR(ts) <= 6 OR HOUR(ts) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END AS bidTimeType,
  ts, extra, LENGTH(extra) - LENGTH(REPLACE(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
