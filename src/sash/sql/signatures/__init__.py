"""Signatures of scalar functions, by family."""
