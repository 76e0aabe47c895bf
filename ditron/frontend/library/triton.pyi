"""`triton`: decorators and tools of a kernel file."""
from . import tl as language
from .tl import (aggregate_replace, constexpr_function, cdiv)


# Python's own functions and compile-time tools.

@handler("decoratorOnly", ...)
def aggregate(cls) -> any:
    """decorator: a class whose instances are values in kernels, with annotated fields and methods"""

@handler("decoratorOnly", ...)
def jit(fn) -> any:
    """decorator: a kernel or a function that kernels call; takes do_not_specialize, do_not_specialize_on_alignment,
    noinline"""

@handler("decoratorOnly", ...)
def autotune(configs, key) -> any:
    """decorator: configurations of a kernel, one of which a launch uses"""

@handler("decoratorOnly", ...)
def heuristics(values) -> any:
    """decorator: parameters that are computed from the other arguments of a launch"""

@handler("decoratorOnly", ...)
def Config(kwargs, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None, pre_hook=None) -> any:
    """a configuration for triton.autotune: values of parameters, and launch options"""

@handler("decoratorOnly", ...)
def must_use_result(function) -> any:
    """decorator: a call as a statement, which drops the result, is an error; takes an extra message"""


# Elementwise mathematics.

def next_power_of_2(n: int) -> int:
    """smallest power of two that is not below n, at compile time"""
