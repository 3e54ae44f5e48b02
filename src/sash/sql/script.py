"""Where `read_script` was first: scripts are read in `sash.script.reader`."""

from sash.script.reader import read_script

__all__ = ["read_script"]
