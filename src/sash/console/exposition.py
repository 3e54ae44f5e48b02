"""The metrics of several jobs in one text: every sample gets the name of its job as a label."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
_ABOUT = re.compile(r"^# (?:HELP|TYPE) (\S+) ")


def joined(texts: Mapping[str, str]) -> str:
    r"""The metrics of jobs by name. What is about one metric stands together, as the format demands.

    >>> print(joined({"a": "# TYPE up gauge\nup 1\n", "b": '# TYPE up gauge\nup{query="q"} 1\n'}), end="")
    # TYPE up gauge
    up{job="a"} 1
    up{job="b",query="q"} 1
    """
    families: dict[str, list[str]] = {}
    for job, text in texts.items():
        label = job.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        family = ""
        for line in text.splitlines():
            about = _ABOUT.match(line)
            if about is not None:
                family = about[1]
                known = families.setdefault(family, [])
                if line not in known:
                    known.append(line)
            elif (sample := _SAMPLE.match(line)) is not None:
                more = f",{sample[2]}" if sample[2] else ""
                families.setdefault(family, []).append(f'{sample[1]}{{job="{label}"{more}}} {sample[3]}')
    return "".join(f"{line}\n" for lines in families.values() for line in lines)
