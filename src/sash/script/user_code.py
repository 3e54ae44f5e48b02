"""The code that CREATE FUNCTION and CREATE AGGREGATE name, as 'module:name'.

`sash validate` reads the module without executing it: it finds the file, and in it the function or the class with its
methods. Modules are looked for in the current folder first, then where Python looks for them.
"""

from __future__ import annotations

import ast
import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from sash.errors import CatalogError
from sash.script.statements import CreateFunction

_METHODS = ("init", "add", "remove", "merge", "result")


def outlined_code(statement: CreateFunction) -> Any:
    """A function, or a class with the same methods as the user's, made by reading the module alone."""
    path, name = _parts(statement)
    spec = _found(statement, path)
    try:
        tree = ast.parse(Path(spec.origin or "").read_bytes())
    except (OSError, ValueError, SyntaxError) as problem:
        raise CatalogError(f"{statement.name}: the module {path} cannot be read: {problem}") from None
    defined = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef | ast.ClassDef)}
    bound = {
        target.id
        for part in tree.body
        if isinstance(part, ast.Assign | ast.AnnAssign)
        for target in (part.targets if isinstance(part, ast.Assign) else [part.target])
        if isinstance(target, ast.Name)
    } | {
        alias.asname or alias.name
        for part in tree.body
        if isinstance(part, ast.Import | ast.ImportFrom)
        for alias in part.names
    }
    node = defined.get(name)
    if node is None and name not in bound:
        raise CatalogError(f"{statement.name}: the module {path} has no {name}")
    if not statement.aggregate:
        if isinstance(node, ast.ClassDef):
            raise CatalogError(f"{statement.name}: {name} is a class; write CREATE AGGREGATE {statement.name}")
        return lambda *_: None
    if isinstance(node, ast.FunctionDef):
        raise CatalogError(f"{statement.name}: {name} is a function; write CREATE FUNCTION {statement.name}")
    if node is None or node.bases:
        methods: tuple[str, ...] = ("init", "add", "result")  # those that it inherits are not known
    else:
        own = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        methods = tuple(method for method in _METHODS if method in own)
    return type(name, (), dict.fromkeys(methods, lambda *_: None))


def loaded_code(statement: CreateFunction) -> Any:
    """The function or class, from its module, which is executed."""
    path, name = _parts(statement)
    _found(statement, path)
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        code = getattr(importlib.import_module(path), name, None)
    except Exception as problem:
        raise CatalogError(f"{statement.name}: the module {path} fails: {problem}") from problem
    if code is None:
        raise CatalogError(f"{statement.name}: the module {path} has no {name}")
    return code


def _parts(statement: CreateFunction) -> tuple[str, str]:
    path, separator, name = statement.code.partition(":")
    if not separator or not name.isidentifier() or not all(part.isidentifier() for part in path.split(".")):
        raise CatalogError(f"{statement.name}: the code is written 'module:name', not '{statement.code}'")
    return path, name


def _found(statement: CreateFunction, path: str) -> ModuleSpec:
    """The module, found without importing the packages around it."""
    places: list[str] | None = [str(Path.cwd()), *sys.path]
    spec: ModuleSpec | None = None
    so_far = ""
    for part in path.split("."):
        so_far = f"{so_far}.{part}" if so_far else part
        spec = None if places is None else PathFinder.find_spec(so_far, places)
        if spec is None:
            raise CatalogError(
                f"{statement.name}: there is no module {so_far} in the current folder, nor where Python looks for modules"
            )
        places = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
    assert spec is not None
    return spec
