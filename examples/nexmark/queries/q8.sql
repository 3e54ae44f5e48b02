-- Monitor new users: people who are new and sell something in the same window of 10 seconds.
SELECT P.id, P.name, P.window_start
FROM (
  SELECT id, name, window_start, window_end
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(ts), INTERVAL '10' SECONDS))
  GROUP BY id, name, window_start, window_end
) AS P
JOIN (
  SELECT seller, window_start, window_end
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(ts), INTERVAL '10' SECONDS))
  GROUP BY seller, window_start, window_end
) AS A ON P.id = A.seller AND P.window_start = A.window_start AND P.window_end = A.window_end
