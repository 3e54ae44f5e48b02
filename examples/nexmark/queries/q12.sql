-- Windows of processing time: the bids of a user in each window of 10 seconds.
-- NEXMark takes the time at which a bid is processed. In Sash that is a property of the stream: register it without a time
-- column of its own, so that rows are stamped on arrival, and this text has that meaning.
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECONDS))
GROUP BY bidder, window_start, window_end
