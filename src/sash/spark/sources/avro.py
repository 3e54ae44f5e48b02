"""Values in Avro as columns: the schema comes from a file, or from a registry by the number in each value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from sash.avro.decode import Decoder
from sash.avro.framed import FramedRecords, PlainRecords
from sash.avro.registry import Login, Registry
from sash.avro.schema import Avro, parse_avro
from sash.errors import CatalogError
from sash.plan.types import Schema, type_name
from sash.script.sources import AvroOptions
from sash.secret_references import resolve
from sash.spark.sql_types import spark_struct

VALUE = "value"


def avro_records(options: AvroOptions, columns: Schema) -> PlainRecords | FramedRecords:
    """How values are decoded into columns. Raises CatalogError if no schema that is known so far has one of them."""
    if options.registry is None:
        try:
            text = Path(resolve(str(options.schema))).read_text()
        except OSError as problem:
            raise CatalogError(
                f"the Avro schema {options.schema} cannot be read: {problem.strerror or problem}"
            ) from problem
        schema = parse_avro(text)
        _check([schema], columns, f"the Avro schema {options.schema}")
        return PlainRecords(text, columns)
    login = None if options.user is None else Login(resolve(options.user), resolve(options.password or ""))
    registry = Registry(resolve(options.registry), login)
    if options.subject is not None:
        versions = registry.versions(options.subject)
        if not versions and options.expected:
            raise CatalogError(
                f"the schema registry {options.registry} has no subject {options.subject}: name it by the option subject"
            )
        found = [registry.version(options.subject, number) for number in versions]
        if found:
            _check([one for one in found if one is not None], columns, f"subject {options.subject} of the registry")
    return FramedRecords(registry, columns)


def _check(schemas: Sequence[Avro], columns: Schema, what: str) -> None:
    """Check the columns against schemas, the newest first, of which each must have some version."""
    if not schemas:
        raise CatalogError(f"{what} has no schema of Avro")
    for column in columns:
        owner = next((schema for schema in schemas if schema.part(column.name) is not None), None)
        if owner is None:
            raise CatalogError(f"{what} has no field {column.name}; it has {', '.join(schemas[0].fields) or 'none'}")
    Decoder(schemas[0], columns)


def decoded(frame: DataFrame, kept: Sequence[str], records: PlainRecords | FramedRecords) -> DataFrame:
    """The frame with the columns of its values instead of `value`, behind those that are kept."""
    for column in records.columns:
        if isinstance(column.dtype, pa.ExtensionType):
            raise CatalogError(f"Avro has no values of type {type_name(column.dtype)}: declare {column.name} otherwise")
    names = [StructField(name, frame.schema[name].dataType) for name in kept]
    schema = StructType([*names, *spark_struct(records.columns).fields])
    return frame.select(*kept, VALUE).mapInArrow(_Decode(records, len(names)), schema)


@dataclass(frozen=True)
class _Decode:
    """Decodes the last column of every batch."""

    records: PlainRecords | FramedRecords
    kept: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = self.records.decode(batch.column(self.kept))
            names = [*batch.schema.names[: self.kept], *(column.name for column in self.records.columns)]
            yield pa.RecordBatch.from_arrays([*batch.columns[: self.kept], *columns], names)
