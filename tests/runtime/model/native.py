"""The native library of this machine, built once into the cache folder, for tests of the native step."""

from functools import cache

import pytest

from lmc.embed import cache_folder
from lmc.runtime.native.build import find_compiler
from lmc.runtime.native.library import Library, load_library

#: Every test of the native step is one of these: without a compiler there is nothing to test.
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")


@cache
def library() -> Library:
    return load_library(cache_folder())


@cache
def levels() -> tuple[str, ...]:
    """The dispatch levels of this machine; empty without a compiler."""
    return library().levels() if find_compiler() is not None else ()
