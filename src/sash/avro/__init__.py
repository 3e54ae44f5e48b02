"""Avro: records of a schema become columns of Arrow, by loops that run over the bytes of a whole batch."""
