-- Average price for a category: of the highest bids on its auctions.
-- NEXMark joins for ever; here auctions and bids count for 5 minutes.
SELECT Q.category, AVG(Q.final) AS average
FROM (
  SELECT A.id, A.category, MAX(B.price) AS final
  FROM auction [RANGE 5 MINUTES] AS A
  JOIN bid [RANGE 5 MINUTES] AS B ON A.id = B.auction AND B.ts BETWEEN A.ts AND A.expires
  GROUP BY A.id, A.category
) AS Q
GROUP BY Q.category
