-- Expand bid with auction: bids on auctions of category 10.
-- NEXMark joins for ever; here auctions and bids count for 5 minutes.
SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.ts AS bid_ts, B.extra AS bid_extra, A.itemName, A.description,
  A.initialBid, A.reserve, A.ts AS auction_ts, A.expires, A.seller, A.category, A.extra AS auction_extra
FROM bid [RANGE 5 MINUTES] AS B
INNER JOIN auction [RANGE 5 MINUTES] AS A ON B.auction = A.id
WHERE A.category = 10
