"""The kernel language: triton.language, and with it what Ditron adds for several GPUs.

The names are stand-ins: kernels that use them are compiled, the host cannot call them. For editors there are stubs beside this file.
"""
import sys as _sys

from .._table import all_modules as _all_modules, module as _module

_distributed = _module("triton_dist.language")
_triton = _module("triton.language")
for _source in (_distributed, _triton):
    globals().update({_name: _value for _name, _value in vars(_source).items() if not _name.startswith("__")})
for _name, _value in _all_modules().items():
    _sys.modules[_name.replace("triton.language", __name__, 1)] = _value if _name != "triton.language" else _sys.modules[__name__]
