"""The fixed cases, by topic."""
