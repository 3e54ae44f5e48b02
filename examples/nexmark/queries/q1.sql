-- Currency conversion: the price of each bid in euros.
SELECT auction, bidder, 0.908 * price AS price, ts, extra
FROM bid
