"""Python: functions that Python itself provides."""


# Python's own functions and compile-time tools.

@handler("pythonRange")
def range(start, stop=None, step=None, num_stages=None, loop_unroll_factor=None, disallow_acc_multi_buffer=None, flatten=None,
          warp_specialize=None, disable_licm=None) -> any:
    """iterable of a run-time loop; the options are those of tl.range, and Triton drops them here"""

@handler("pythonMin")
def min(*values) -> any:
    """smallest argument; run-time ones through tl.minimum"""

@handler("pythonMax")
def max(*values) -> any:
    """largest argument; run-time ones through tl.maximum"""

@handler("pythonInt")
def int(x: const = 0) -> int:
    """compile-time integer"""

@handler("pythonFloat")
def float(x: const = 0) -> float:
    """compile-time float, also of "inf", "-inf" and "nan" """

@handler("pythonBool")
def bool(x: const = False) -> bool:
    """compile-time truth value"""

@handler("pythonStr")
def str(x: const) -> str:
    """compile-time text of a value"""

@handler("absolute")
def abs(x: num) -> tensor:
    """absolute value"""

@handler("pythonLen")
def len(x) -> int:
    """length of a tuple or string; first size of a block"""

@handler("pythonTuple")
def tuple(x=()) -> tuple:
    """the argument's elements as a tuple"""

@handler("pythonTuple")
def list(x=()) -> tuple:
    """the argument's elements as a tuple"""

@handler("pythonIsinstance")
def isinstance(x, cls: const) -> bool:
    """whether a value is of a class: tl.tensor, tl.tensor_descriptor, tl.constexpr, tl.dtype, int, float, bool, str, tuple"""

@handler("pythonGetattr")
def getattr(x, name: str, *default) -> any:
    """attribute by name"""

@handler("pythonHasattr")
def hasattr(x, name: str) -> bool:
    """whether an attribute exists"""

@handler("pythonPrint")
def print(*values) -> None:
    """prints while the kernel runs, as tl.device_print"""
