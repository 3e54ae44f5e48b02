from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import sash
import sash.errors


def test_users_find_classes_and_errors_in_the_package() -> None:
    raised = {name for name, kind in vars(sash.errors).items() if inspect.isclass(kind)}
    assert raised <= set(sash.__all__)
    assert {"Engine", "Query", "RunningQuery", "Snapshot"} <= set(sash.__all__)
    assert all(getattr(sash, name) is not None for name in sash.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Motor'"):
        sash.Motor  # noqa: B018


def test_a_wrong_option_is_an_option_error() -> None:
    assert issubclass(sash.StrategyError, sash.OptionError)
    assert issubclass(sash.IsolationError, sash.OptionError)
    assert not issubclass(sash.OptionError, sash.CatalogError)


def test_the_package_imports_neither_spark_nor_numba() -> None:
    text = "import sys, sash; assert not {'pyspark', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", text], check=True)
