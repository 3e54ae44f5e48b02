"""Folders with a few small files, on a local path or on any file system that Spark supports."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from sash.private_folders import make_private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def local_path(location: str) -> Path | None:
    """The path of a location on this machine's file systems; None for another file system of Spark's."""
    parts = urlparse(location)
    if parts.scheme not in ("", "file"):
        return None
    return Path(parts.path if parts.scheme == "file" else location)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, target)


class Folder:
    """A folder, created by the first write."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self._local = local_path(location)
        self._location = location

    def inside(self, name: str) -> Folder:
        """A folder in this one."""
        return Folder(self._spark, f"{self._location.rstrip('/')}/{name}")

    @property
    def location(self) -> str:
        """The path, or the address in another file system."""
        return self._location

    def read(self, name: str) -> str | None:
        """Read a file; None if it does not exist."""
        found = self.read_bytes(name)
        return None if found is None else found.decode()

    def read_bytes(self, name: str) -> bytes | None:
        """Read a file; None if it does not exist."""
        if self._local is not None:
            path = self._local / name
            return path.read_bytes() if path.exists() else None
        system, path = self._remote(name)
        if not system.exists(path):
            return None
        stream = system.open(path)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def exists(self, name: str) -> bool:
        """Whether the file or folder exists."""
        if self._local is not None:
            return (self._local / name).exists()
        system, path = self._remote(name)
        return bool(system.exists(path))

    def names(self) -> list[str]:
        """The names of the files and folders in it, hidden ones left out."""
        if self._local is not None:
            found = [path.name for path in self._local.iterdir()] if self._local.exists() else []
        else:
            system, path = self._remote("")
            listed = system.listStatus(path) if system.exists(path) else ()
            found = [str(status.getPath().getName()) for status in listed]
        return sorted(name for name in found if not name.startswith("."))

    def append(self, name: str, text: str) -> None:
        """Add text to the end of a file."""
        if self._local is None:
            self.write(name, (self.read(name) or "") + text)
            return
        path = f"{self._local}/{name}"
        try:
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        except FileNotFoundError:
            make_private(self._local)
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)

    def write(self, name: str, text: str) -> None:
        """Write a file; readers never see a part of it on a local path."""
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file; readers never see a part of it on a local path."""
        if self._local is not None:
            make_private(self._local)
            draft = self._local / f".{name}.{os.getpid()}"
            draft.write_bytes(data)
            draft.replace(self._local / name)
            return
        system, path = self._remote(name)
        stream = system.create(path, True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        if self._local is not None:
            (self._local / name).unlink(missing_ok=True)
            return
        system, path = self._remote(name)
        system.delete(path, False)

    def remove_tree(self, name: str) -> None:
        """Remove a folder and everything in it, if it exists."""
        if self._local is not None:
            shutil.rmtree(self._local / name, ignore_errors=True)
            return
        system, path = self._remote(name)
        system.delete(path, True)

    def copy(self, name: str, to: Folder, new: str | None = None) -> None:
        """Copy a file or folder into another folder, if it exists."""
        if self._local is not None and to._local is not None:
            source, target = self._local / name, to._local / (new or name)
            make_private(target.parent)
            if source.is_dir():
                shutil.copytree(source, target)
            elif source.exists():
                shutil.copy2(source, target)
            return
        system, path = self._remote(name)
        target_system, target_path = to._remote(new or name)
        if system.exists(path):
            jvm: Any = self._spark.sparkContext._jvm  # noqa: SLF001
            settings = self._spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
            jvm.org.apache.hadoop.fs.FileUtil.copy(system, path, target_system, target_path, False, True, settings)

    @property
    def local(self) -> bool:
        """Whether it is on a file system of this machine."""
        return self._local is not None

    def link(self, name: str, to: Folder, rewrite: Mapping[str, Callable[[str], str]]) -> None:
        """Give another local folder the files below a folder of this one, without copying them where that is possible.

        Neither side may write into its files afterwards, only replace or delete them. Files in folders named in `rewrite`
        are texts, which are copied and changed.
        """
        assert self._local is not None
        assert to._local is not None
        for folder, _, files in os.walk(self._local / name):
            source = Path(folder)
            target = to._local / source.relative_to(self._local)
            make_private(target)
            change = next((rewrite[part] for part in source.relative_to(self._local).parts if part in rewrite), None)
            for file in files:
                if change is None:
                    with suppress(FileNotFoundError):  # what Spark deletes meanwhile, it does not need
                        _link(source / file, target / file)
                elif not file.startswith("."):
                    (target / file).write_text(change((source / file).read_text()))

    def rename(self, old: str, new: str) -> None:
        """Rename a folder in this one, replacing a folder of the new name."""
        if self._local is not None:
            shutil.rmtree(self._local / new, ignore_errors=True)
            (self._local / old).rename(self._local / new)
            return
        system, source = self._remote(old)
        _, target = self._remote(new)
        system.delete(target, True)
        system.rename(source, target)

    def _remote(self, name: str) -> tuple[Any, Any]:
        from sash.spark.connect import refuse_connect

        refuse_connect(self._spark, f"the folder {self._location}, which is on another file system,")
        jvm: Any = self._spark.sparkContext._jvm  # noqa: SLF001  (PySpark has no other access to Hadoop's file systems)
        whole = f"{self._location.rstrip('/')}/{name}" if name else self._location
        path = jvm.org.apache.hadoop.fs.Path(whole)
        configuration = self._spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        return path.getFileSystem(configuration), path
