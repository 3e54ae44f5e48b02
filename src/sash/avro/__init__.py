"""Avro: records of a schema become columns of Arrow, by loops that run over the bytes of a whole batch."""

from sash.avro.decode import Decoder
from sash.avro.framed import FramedRecords, PlainRecords
from sash.avro.registry import Login, Registry
from sash.avro.schema import Avro, parse_avro

__all__ = ["Avro", "Decoder", "FramedRecords", "Login", "PlainRecords", "Registry", "parse_avro"]
