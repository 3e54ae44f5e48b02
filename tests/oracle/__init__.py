"""The independent oracle: what a query must answer at every instant, computed by DuckDB from the definition."""
