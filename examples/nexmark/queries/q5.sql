-- Hot items: the auctions with the most bids in each window of 10 seconds, every 2 seconds.
-- The windows are those that are open, with the bids so far; NEXMark reports a window when it has ended.
WITH bids AS (
  SELECT auction, window_start, window_end, COUNT(*) AS num
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECONDS, INTERVAL '10' SECONDS))
  GROUP BY auction, window_start, window_end
)
SELECT a.auction, a.num, a.window_end
FROM bids AS a
JOIN (SELECT window_start, window_end, MAX(num) AS most FROM bids GROUP BY window_start, window_end) AS b
  ON a.window_start = b.window_start AND a.window_end = b.window_end AND a.num = b.most
