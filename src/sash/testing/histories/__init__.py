"""Histories of queries and window updates: their notation, their serialization graph, and their isolation levels."""

from sash.testing.histories.history import classify
from sash.testing.histories.notation import HistoryOperation, parse_history
from sash.testing.histories.serialization_graph import CommittedQuery, SerializationGraph
from sash.window_store.scheduling.recorder import Recorder

__all__ = ["CommittedQuery", "HistoryOperation", "Recorder", "SerializationGraph", "classify", "parse_history"]
