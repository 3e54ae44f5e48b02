"""Scalar expressions, evaluated a batch at a time over Arrow arrays with Spark's meaning."""

from sash.operators.scalar.evaluate import evaluate, supports

__all__ = ["evaluate", "supports"]
