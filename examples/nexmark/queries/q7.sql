-- Highest bid of each window of 10 seconds. The window is the open one; NEXMark reports it when it has ended.
SELECT B.auction, B.price, B.bidder, B.ts, B.extra
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECONDS)) AS B
JOIN (
  SELECT MAX(price) AS most, window_end
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECONDS))
  GROUP BY window_start, window_end
) AS M ON B.price = M.most AND B.window_end = M.window_end
