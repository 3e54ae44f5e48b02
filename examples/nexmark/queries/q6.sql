-- Average selling price by seller: of the last 10 auctions before each, and of itself.
-- NEXMark joins for ever; here auctions and bids count for 5 minutes.
WITH winners AS (
  SELECT A.id, A.seller, B.price, B.ts
  FROM auction [RANGE 5 MINUTES] AS A
  JOIN bid [RANGE 5 MINUTES] AS B ON A.id = B.auction AND B.ts BETWEEN A.ts AND A.expires
  QUALIFY ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.ts) = 1
)
SELECT id, seller,
  AVG(price) OVER (PARTITION BY seller ORDER BY ts, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM winners
