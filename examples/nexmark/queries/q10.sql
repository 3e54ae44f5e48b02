-- Log to the file system: bids with the day and the minute by which a sink partitions them.
SELECT auction, bidder, price, ts, extra, DATE_FORMAT(ts, 'yyyy-MM-dd') AS dt, DATE_FORMAT(ts, 'HH:mm') AS hm
FROM bid
