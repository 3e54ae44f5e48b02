# noqa: INP001  (Python finds it by its folder)
"""Python imports this when a worker process of the embedded session starts, before anything else.

Spark puts a zip file of PySpark first on the path. Python compiles the modules of a zip file again in every process, which
takes a second; installed modules are compiled once. Spark gives a process ten seconds to start, which on a busy machine
was not always enough.
"""

import os
import sys

sys.path.sort(key=lambda path: path.endswith("pyspark.zip"))

# A sitecustomize of the user's comes next.
_here = os.path.dirname(__file__)  # noqa: PTH120  (pathlib takes longer to import)
sys.path[:] = [path for path in sys.path if path != _here]
_own = sys.modules.pop(__name__)
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
except ImportError:
    sys.modules[__name__] = _own
