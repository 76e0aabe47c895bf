"""What tests written beside Triton's own import from triton._internal_testing."""

import ditron
from ditron import _device
from ditron import language as tl

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = ["uint8", "uint16", "uint32", "uint64"]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = float_dtypes + ["bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = dtypes + ["bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool"] + int_dtypes + ["uint8"] + float_dtypes + ["bfloat16"]
tma_dtypes = sorted(set(dtypes_with_bfloat16) - {"int64", "uint64", "float64"})


def is_interpreter():
    return False


def get_current_target():
    import triton
    return triton.runtime.driver.active.get_current_target()


def is_cuda():
    return True


def is_hip():
    return False


is_hip_cdna = is_hip_cdna2 = is_hip_cdna3 = is_hip_cdna4 = is_hip_rdna = is_hip_rdna3 = is_hip_rdna4 = is_hip_gfx1250 = is_xpu = is_hip


def _major():
    return _device.current().capability // 10


def is_ampere_or_newer():
    return _major() >= 8


def is_hopper_or_newer():
    return _major() >= 9


def is_hopper():
    return _major() == 9


def is_blackwell():
    return _major() == 10


def is_blackwell_ultra():
    return False


def is_sm12x():
    return _major() == 12


def get_arch():
    return str(_device.current().capability)


def numpy_random(shape, dtype_str, rs=None, low=None, high=None):
    """Random values of a type given by name; bfloat16 as float32 with the low bits cleared."""
    import numpy

    shape = (shape,) if isinstance(shape, int) else shape
    rs = rs or numpy.random.RandomState(seed=17)
    if dtype_str in integral_dtypes:
        limits = numpy.iinfo(getattr(numpy, dtype_str))
        low = limits.min if low is None else max(low, limits.min)
        high = limits.max if high is None else min(high, limits.max)
        values = rs.randint(low, high, shape, dtype=getattr(numpy, dtype_str))
        values[values == 0] = 1
        return values
    if dtype_str and "float8" in dtype_str:
        return rs.randint(20, 40, shape, dtype=numpy.int8)
    if dtype_str in float_dtypes:
        return rs.normal(0, 1, shape).astype(dtype_str)
    if dtype_str == "bfloat16":
        return (rs.normal(0, 1, shape).astype("float32").view("uint32") & numpy.uint32(0xFFFF0000)).view("float32")
    if dtype_str in ("bool", "int1", "bool_"):
        return rs.normal(0, 1, shape) > 0.0
    raise RuntimeError(f"Unknown dtype {dtype_str}")


def to_triton(values, device="cuda", dst_type=None):
    """An array as a tensor; unsigned types are the signed ones seen differently."""
    import torch

    kind = values.dtype.name
    if kind in uint_dtypes:
        return ditron.reinterpret(torch.tensor(values.view(kind.lstrip("u")), device=device), getattr(tl, kind))
    if dst_type and "float8" in dst_type:
        return ditron.reinterpret(torch.tensor(values, device=device), getattr(tl, dst_type))
    if kind == "float32" and dst_type == "bfloat16":
        return torch.tensor(values, device=device).bfloat16()
    return torch.tensor(values, device=device)


def str_to_triton_dtype(name):
    return getattr(tl, {"bool": "int1"}.get(name, name))


def torch_dtype_name(kind):
    import torch

    if isinstance(kind, torch.dtype):
        return str(kind).removeprefix("torch.")
    return str(kind)


def to_numpy(tensor):
    """A tensor as an array; bfloat16 as float32."""
    import numpy
    import torch

    if isinstance(tensor, ditron.TensorWrapper):
        return tensor.base.cpu().numpy().astype(getattr(numpy, tensor.dtype.codegen_name()))
    if tensor.dtype is torch.bfloat16:
        return tensor.cpu().float().numpy()
    return tensor.cpu().numpy()


def unwrap_tensor(tensor):
    return tensor.base if isinstance(tensor, ditron.TensorWrapper) else tensor


def supports_tma(byval_only=False):
    return _major() >= 9


def supports_ws():
    return False


def tma_skip_msg(byval_only=False):
    return "needs a simulated or real GPU of sm_90 or newer"


def default_alloc_fn(size, align, _):
    import torch
    return torch.empty(size, dtype=torch.int8, device="cuda")




def _requires_tma():
    try:
        import pytest
    except ImportError:
        return lambda function: function
    return pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())


requires_tma = _requires_tma()
