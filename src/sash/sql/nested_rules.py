"""Typing rules of arrays, structs and maps: constructors and accessors."""

from __future__ import annotations

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Expression, Literal
from sash.plan.types import is_array, is_map, is_struct, type_name
from sash.sql.coercion import coerce, common_dtype, implicit, unify
from sash.sql.function_rules import Arguments


def array(name: str, arguments: Arguments) -> Expression:
    """ARRAY(a, b, ...) of the common type of its arguments."""
    elements = unify(arguments, "the elements of an array") if arguments else []
    return Call(name, tuple(elements), types.array_of(elements[0].dtype if elements else types.NULL))


def struct_of(names: list[str], arguments: Arguments) -> Expression:
    """A struct with these names of its fields."""
    dtype = types.struct_of([(name, each.dtype) for name, each in zip(names, arguments, strict=True)])
    return Call("struct", tuple(arguments), dtype)


def named_struct(name: str, arguments: Arguments) -> Expression:
    """NAMED_STRUCT(name, value, name, value, ...)."""
    names = [each.value if isinstance(each, Literal) else None for each in arguments[::2]]
    if len(arguments) % 2 or not all(isinstance(each, str) for each in names):
        raise TypeMismatchError("named_struct takes a constant name and a value for every field")
    return struct_of([str(each) for each in names], arguments[1::2])


def map_of(name: str, arguments: Arguments) -> Expression:
    """MAP(key, value, key, value, ...)."""
    if len(arguments) % 2:
        raise TypeMismatchError("map takes a key and a value for every entry")
    keys = unify(arguments[::2], "the keys of a map")
    values = unify(arguments[1::2], "the values of a map")
    dtypes = keys[0].dtype, values[0].dtype
    _refuse_map_keys(dtypes[0])
    pairs = tuple(part for pair in zip(keys, values, strict=True) for part in pair)
    return Call(name, pairs, types.map_of(*dtypes))


def _refuse_map_keys(dtype: pa.DataType) -> None:
    if types.holds(dtype, is_map):
        raise TypeMismatchError("the keys of a map cannot be, or contain, maps")
    if dtype == types.NULL:
        raise TypeMismatchError("the keys of a map cannot be NULL")


def map_from_arrays(name: str, arguments: Arguments) -> Expression:
    """MAP_FROM_ARRAYS(keys, values)."""
    for argument in arguments:
        _expect(name, is_array(argument.dtype), "arrays", argument)
    keys, values = arguments
    _refuse_map_keys(keys.dtype.value_type)
    return Call(name, (keys, values), types.map_of(keys.dtype.value_type, values.dtype.value_type))


def map_from_entries(name: str, arguments: Arguments) -> Expression:
    """MAP_FROM_ENTRIES(array of structs with two fields)."""
    dtype = arguments[0].dtype
    pairs = is_array(dtype) and is_struct(dtype.value_type) and len(types.parts_of(dtype.value_type)) == 2
    _expect(name, pairs, "an array of structs with two fields", arguments[0])
    key, value = types.parts_of(dtype.value_type)
    _refuse_map_keys(key)
    return Call(name, tuple(arguments), types.map_of(key, value))


def map_concat(name: str, arguments: Arguments) -> Expression:
    """MAP_CONCAT(map, map, ...) of one type."""
    for argument in arguments:
        _expect(name, is_map(argument.dtype), "maps", argument)
    if not arguments:
        return Call(name, (), types.map_of(types.STRING, types.STRING))
    maps = unify(arguments, f"the arguments of {name}")
    return Call(name, tuple(maps), maps[0].dtype)


def arrays_zip(names: list[str], arguments: Arguments) -> Expression:
    """ARRAYS_ZIP: an array of structs whose fields have these names."""
    for argument in arguments:
        _expect("arrays_zip", is_array(argument.dtype), "arrays", argument)
    parts = [(name, argument.dtype.value_type) for name, argument in zip(names, arguments, strict=True)]
    return Call("arrays_zip", tuple(arguments), types.array_of(types.struct_of(parts)))


def map_part(name: str, arguments: Arguments) -> Expression:
    """MAP_KEYS, MAP_VALUES and MAP_ENTRIES."""
    dtype = arguments[0].dtype
    _expect(name, is_map(dtype), "a map", arguments[0])
    element = {
        "map_keys": dtype.key_type,
        "map_values": dtype.item_type,
        "map_entries": types.struct_of([("key", dtype.key_type), ("value", dtype.item_type)]),
    }[name]
    return Call(name, tuple(arguments), types.array_of(element))


def size(name: str, arguments: Arguments) -> Expression:
    """SIZE of an array or map."""
    dtype = arguments[0].dtype
    _expect(name, is_array(dtype) or is_map(dtype) or dtype == types.NULL, "an array or a map", arguments[0])
    return Call(name, tuple(arguments), types.INT)


def array_contains(name: str, arguments: Arguments) -> Expression:
    """ARRAY_CONTAINS(array, value), both in their common type."""
    value, wanted = arguments
    _expect(name, is_array(value.dtype), "an array first", value)
    merged = common_dtype(value.dtype.value_type, wanted.dtype)
    if merged is None or merged == types.NULL or not types.is_orderable(merged):
        raise TypeMismatchError(f"{name} cannot look for {type_name(wanted.dtype)} in {type_name(value.dtype)}")
    return Call(name, (coerce(value, types.array_of(merged)), coerce(wanted, merged)), types.BOOLEAN)


def map_contains_key(name: str, arguments: Arguments) -> Expression:
    """MAP_CONTAINS_KEY(map, key)."""
    value, key = arguments
    _expect(name, is_map(value.dtype), "a map first", value)
    _expect(name, key.dtype != types.NULL, "a key with a type", key)
    return Call(name, (value, implicit(key, value.dtype.key_type, name)), types.BOOLEAN)


def element_at(name: str, arguments: Arguments) -> Expression:
    """ELEMENT_AT and TRY_ELEMENT_AT of an array or map, and GET of an array."""
    value, key = arguments
    if is_map(value.dtype) and name != "get":
        return Call(name, (value, _key_of(value, key, name)), value.dtype.item_type)
    _expect(name, is_array(value.dtype), "an array or a map first" if name != "get" else "an array first", value)
    return Call(name, (value, _index(key, name)), value.dtype.value_type)


def item_of(value: Expression, key: Expression) -> Expression:
    """`array[index]`, `map[key]`, or `struct['field']`."""
    dtype = value.dtype
    if dtype == types.NULL:
        return Call("get_item", (value, key), types.NULL)
    if is_map(dtype):
        return Call("get_item", (value, _key_of(value, key, "a map")), dtype.item_type)
    if is_struct(dtype) and isinstance(key, Literal) and isinstance(key.value, str):
        return field_of(value, key.value)
    if not is_array(dtype):
        raise TypeMismatchError(f"[ ] is for arrays and maps, not for {type_name(dtype)}")
    return Call("get_item", (value, _index(key, "an array")), dtype.value_type)


def _key_of(value: Expression, key: Expression, what: str) -> Expression:
    wanted = value.dtype.key_type
    if common_dtype(wanted, key.dtype) is None:
        raise TypeMismatchError(f"{what} has keys of {type_name(wanted)}, not {type_name(key.dtype)}")
    return coerce(key, wanted)


def _index(key: Expression, what: str) -> Expression:
    if not (types.is_integer(key.dtype) or key.dtype == types.NULL):
        raise TypeMismatchError(f"{what} takes a whole number as position, not {type_name(key.dtype)}")
    return key if types.is_integer(key.dtype) else coerce(key, types.INT)


def field_of(value: Expression, name: str) -> Expression:
    """`struct.field`; of an array of structs, the array of their fields; of a map, the value of that key."""
    dtype = value.dtype
    if dtype == types.NULL:
        return Call("get_field", (value, Literal(name, types.STRING)), types.NULL)
    if is_map(dtype) and dtype.key_type == types.STRING:
        return item_of(value, Literal(name, types.STRING))
    inner = dtype.value_type if is_array(dtype) else dtype
    if not is_struct(inner):
        raise TypeMismatchError(f"a {type_name(dtype)} has no field {name}")
    found = [field for field in inner if field.name.lower() == name.lower()]
    if len(found) != 1:
        problem = "has no field" if not found else "has several fields"
        raise TypeMismatchError(f"{type_name(inner)} {problem} {name}")
    made = types.array_of(found[0].type) if is_array(dtype) else found[0].type
    return Call("get_field", (value, Literal(found[0].name, types.STRING)), made)


def _expect(name: str, fits: bool, wanted: str, found: Expression) -> None:
    if not fits:
        raise TypeMismatchError(f"{name} takes {wanted}, not {type_name(found.dtype)}")
