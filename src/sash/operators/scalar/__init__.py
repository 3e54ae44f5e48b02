"""Scalar expressions, evaluated a batch at a time over Arrow arrays with Spark's meaning."""

from sash.operators.scalar.evaluate import evaluate, evaluate_all, supports

__all__ = ["evaluate", "evaluate_all", "supports"]
