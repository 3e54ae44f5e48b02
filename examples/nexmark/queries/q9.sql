-- Winning bids: the highest bid on each auction while it was open.
-- NEXMark joins for ever; here auctions and bids count for 5 minutes. Equal prices at one instant go by the bidder.
SELECT id, itemName, seller, category, reserve, auction, bidder, price, bid_ts
FROM (
  SELECT A.id, A.itemName, A.seller, A.category, A.reserve, B.auction, B.bidder, B.price, B.ts AS bid_ts,
    ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.ts ASC, B.bidder) AS place
  FROM auction [RANGE 5 MINUTES] AS A
  JOIN bid [RANGE 5 MINUTES] AS B ON A.id = B.auction AND B.ts BETWEEN A.ts AND A.expires
) AS ranked
WHERE place <= 1
