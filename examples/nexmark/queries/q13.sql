-- Bounded side input: bids with the values of a fixed table.
SELECT B.auction, B.bidder, B.price, B.ts, S.value
FROM bid AS B
JOIN side_input AS S ON MOD(B.auction, 10000) = S.key
