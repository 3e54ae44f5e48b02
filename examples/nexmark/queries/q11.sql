-- User sessions: the bids of a user without a pause of more than 10 seconds. The sessions are those that are open.
SELECT bidder, COUNT(*) AS bid_count, session_window.start AS starttime, session_window.end AS endtime
FROM bid
GROUP BY bidder, session_window(ts, '10 seconds')
