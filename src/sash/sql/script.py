"""An alias of `sash.script.reader.read_script` under its first name."""

from sash.script.reader import read_script

__all__ = ["read_script"]
