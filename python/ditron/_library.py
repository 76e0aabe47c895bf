"""Opens libditron.so, which lies beside this file."""
import os

from . import _native
from ._errors import make_error
from ._interruption import may_interrupt

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libditron.so")
if not os.path.exists(PATH):
    raise ImportError(f"ditron: {PATH} is not there; install the package with pip, or use the folder python/ of a build")
_native.load_library(PATH, make_error, may_interrupt)
