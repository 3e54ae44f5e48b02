-- Pass through: what reading and writing costs.
SELECT auction, bidder, price, ts, extra
FROM bid
