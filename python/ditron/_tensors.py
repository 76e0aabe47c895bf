"""What host code may give a kernel as a pointer: NumPy arrays, PyTorch tensors, and whatever has data_ptr() and dtype.

Neither NumPy nor PyTorch is imported here: a program that has none of their objects does not need them.
"""
import gc
import sys

from . import _native
from ._values import DTYPES, dtype, pointer_dtype
from .descriptors import TensorDescriptor

_BY_NAME = {"bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
            "uint64": "u64", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "float8_e5m2": "fp8e5",
            "float8_e4m3fn": "fp8e4nv", "float8_e4m3b15": "fp8e4b15", "float4_e2m1fn_x2": "u8", "float8_e8m0fnu": "u8"}
_known = {}
# Larger tensors are not looked through for addresses; smaller numbers are none.
_MOST_POINTERS = 1 << 16
_LOWEST_ADDRESS = 1 << 32


def type_name(kind):
    """The element type of a NumPy or PyTorch dtype as signatures write it: "fp32"."""
    name = _known.get(kind)
    if name is None:
        if isinstance(kind, dtype):
            name = kind.signature
        else:
            word = str(kind).rpartition(".")[2]
            name = _BY_NAME.get(word)
            if name is None:
                raise TypeError(f"kernels have no element type {kind}; they have {', '.join(sorted(_BY_NAME))}")
        _known[kind] = name
    return name


class Pointer:
    """An address with its element type, and where it lies: `device` is None for host memory, else the number of a GPU."""

    __slots__ = ("address", "type", "device", "owner")

    def __init__(self, address, type_, device, owner):
        self.address, self.type, self.device, self.owner = address, type_, device, owner


def is_tensor(value):
    """True for what becomes a pointer."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return True
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return True
    return hasattr(value, "data_ptr") and not isinstance(value, type)


def is_type(value):
    """True for a PyTorch or NumPy dtype, which stands for a tensor in warmup()."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "dtype", ()))


def _maps_device(torch):
    """True where ditron.as_triton calls the host's memory "cuda"."""
    return getattr(torch, "_ditron_maps_device", False)


def pointer_of(value):
    """The Pointer of a tensor; a TypeError if kernels cannot address it."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        if not value.flags.writeable:
            raise TypeError("a read-only array cannot be given to a kernel, which may write into it: pass a copy")
        return Pointer(value.__array_interface__["data"][0], type_name(value.dtype), None, value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if _maps_device(torch):
            return Pointer(value.data_ptr(), type_name(value.dtype), None, value)
        device = value.device
        if device.type not in ("cpu", "cuda"):
            raise TypeError(f"a tensor on device '{device}' cannot be given to a kernel: CUDA tensors can, and on simulated GPUs CPU tensors")
        return Pointer(value.data_ptr(), type_name(value.dtype), (device.index or 0) if device.type == "cuda" else None, value)
    kind = getattr(value, "dtype", None)
    address = value.data_ptr()
    owner = getattr(value, "base", value)
    inner = pointer_of(owner) if owner is not value and is_tensor(owner) else None
    if isinstance(kind, pointer_dtype):
        kind = kind.element_ty
    return Pointer(address, type_name(kind) if kind is not None else inner.type, inner.device if inner else None, owner)


def extent(owner):
    """(address, bytes) of all the memory that a host tensor is a view of: what a kernel given the tensor may touch."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(owner, numpy.ndarray):
        while isinstance(owner.base, numpy.ndarray):
            owner = owner.base
        begin = end = owner.__array_interface__["data"][0]
        if owner.size == 0:
            return begin, 0
        for size, stride in zip(owner.shape, owner.strides):
            if stride < 0:
                begin += (size - 1) * stride
            else:
                end += (size - 1) * stride
        return begin, end + owner.itemsize - begin
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(owner, torch.Tensor):
        storage = owner.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    if hasattr(owner, "untyped_storage"):
        storage = owner.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    size = getattr(owner, "nbytes", None)
    if size is None and hasattr(owner, "numel"):
        size = owner.numel() * owner.element_size()
    return owner.data_ptr(), int(size or 0)


_told = None


def tell_native(device):
    """Tells the Dispatcher what PyTorch's tensors are, once the program has imported PyTorch."""
    global _told
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn") or _told == (torch, _maps_device(torch)):
        return
    _told = torch, _maps_device(torch)
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (lambda index: 0)
    _native.set_tensors((torch.Tensor, torch.nn.Parameter), TensorDescriptor, raw, lambda index, native: device.device(index).adopted(native), _told[1])


def ranges(owners):
    """The memory that a launch on the simulator may touch: that of its tensors, and where one of them holds addresses (a table of
    pointers), that of the program's tensors in which these lie."""
    found = [extent(owner) for owner in owners]
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        return found
    addresses = set()
    for owner in owners:
        if isinstance(owner, torch.Tensor) and owner.dtype in (torch.int64, torch.uint64) and 0 < owner.numel() <= _MOST_POINTERS:
            addresses.update(value for value in owner.flatten().tolist() if _LOWEST_ADDRESS < value < 2**47)
    if not addresses:
        return found
    storages = {}
    for each in gc.get_objects():
        if type(each) in (torch.Tensor, torch.nn.Parameter):
            begin, size = extent(each)
            storages[begin] = max(size, storages.get(begin, 0))
    for begin, size in storages.items():
        if any(begin <= address < begin + size for address in addresses):
            found.append((begin, size))
    return found


class TensorWrapper:
    """A tensor seen with another element type (triton.reinterpret)."""

    def __init__(self, base, dtype):
        self.dtype, self.base = dtype, base
        self.device, self.shape = base.device, base.shape
        self.data = base.data

    def data_ptr(self):
        return self.base.data_ptr()

    def stride(self, *arguments):
        return self.base.stride(*arguments)

    def element_size(self):
        return self.base.element_size()

    def cpu(self):
        return TensorWrapper(self.base.cpu(), self.dtype)

    def copy_(self, other):
        self.base.copy_(other.base)

    def clone(self):
        return TensorWrapper(self.base.clone(), self.dtype)

    def to(self, device):
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes):
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def __str__(self):
        return f"TensorWrapper[{self.dtype}]({self.base})"


class MockTensor:
    """Stands for a tensor of a type in warmup(): aligned, nowhere in memory."""

    def __init__(self, dtype, shape=None):
        self.dtype = dtype if isinstance(dtype, type(DTYPES["int32"])) else dtype
        self.shape = shape or [1]

    @staticmethod
    def wrap_dtype(value):
        return MockTensor(value) if is_type(value) else value

    def stride(self):
        strides = [1]
        for size in self.shape[:0:-1]:
            strides.append(strides[-1] * size)
        return tuple(reversed(strides))

    def data_ptr(self):
        return 0

    @staticmethod
    def ptr_range():
        return 0


def reinterpret(tensor, dtype):
    """The tensor as one of another element type of the same size."""
    if isinstance(tensor, TensorWrapper):
        base = tensor.base
        return base if dtype == base.dtype else TensorWrapper(base, dtype)
    if not is_tensor(tensor):
        raise TypeError(f"Cannot reinterpret a {type(tensor)}.")
    return TensorWrapper(tensor, dtype)
