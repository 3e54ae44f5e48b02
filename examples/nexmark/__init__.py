"""NEXMark: an online auction with people, auctions and bids, and the 23 queries of the benchmark as Sash SQL."""
