"""Compiled kernels: their texts and figures, and how their arguments are packed."""
import functools
import struct
import weakref

from . import _device, _hooks, _native
from ._errors import InvalidArgumentError, NotFoundError, UnsupportedError
from ._tensors import is_tensor, pointer_of, ranges
from ._values import BY_SIGNATURE, constexpr, dtype

_PACK = {"i1": "?7x", "i8": "b7x", "i16": "h6x", "i32": "i4x", "i64": "q", "u8": "B7x", "u16": "H6x", "u32": "I4x", "u64": "Q", "fp16": "e6x",
         "fp32": "f4x", "fp64": "d"}


_MOST_BLOCKS = (2**31 - 1, 65535, 65535)


def grid_of(grid, meta):
    """One to three numbers of blocks, as many as were given."""
    if callable(grid):
        grid = grid(meta)
    if isinstance(grid, int):
        grid = (grid,)
    sizes = [int(getattr(size, "value", size)) for size in grid]
    if len(sizes) > 3 or not sizes:
        raise InvalidArgumentError(f"a grid has one to three dimensions, this one has {len(sizes)}: {tuple(sizes)}")
    for size, most in zip(sizes, _MOST_BLOCKS):
        if not 0 <= size <= most:
            raise InvalidArgumentError(f"grid {tuple(sizes)}: a dimension is from 0 to {_MOST_BLOCKS[0]} (x) or {_MOST_BLOCKS[1]} (y, z) blocks")
    return tuple(sizes)


class CompiledKernel(_device.Loaded):
    """A variant: its texts and figures, and its launch."""

    class Metadata:
        def __init__(self, **fields):
            self.__dict__.update(fields)

        def _asdict(self):
            return dict(self.__dict__)

        def __repr__(self):
            return f"KernelMetadata({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __init__(self, function, device, key, handle, signature, numbers, bindings):
        super().__init__(device.context, function.variants, key, _native.variant_destroy, handle)
        self.function, self.index, self.numbers = function, device.index, numbers
        self.signature, self.bindings = signature, bindings
        self.name, target, warps, self.threads, shared, self.parameters = _native.variant_info(handle)
        self.metadata = CompiledKernel.Metadata(name=self.name, target=target, num_warps=warps, num_stages=numbers[1] or 3, num_ctas=1, shared=shared,
                                                debug=bool(numbers[2]), launch_cooperative_grid=bool(numbers[3]), hash=f"{abs(hash(signature)):x}")
        self.hash = self.metadata.hash
        self.src = function
        self.asm = _Texts(self)
        self._format = struct.Struct("=" + "".join(_PACK.get("u64" if kind[0] == "*" else "u16" if kind == "bf16" else kind, "Q") for _, kind in self.parameters))

    @functools.cached_property
    def _resources(self):
        """(registers, bytes of local memory) of a thread: what the driver says; of a simulated GPU so many registers that one block fits."""
        if self.context() is None:
            raise NotFoundError(f"n_regs, n_spills of kernel '{self.name}': the device that it was compiled for is gone")
        return _native.variant_resources(self.handle)

    n_regs = property(lambda self: self._resources[0])
    n_spills = property(lambda self: self._resources[1] // 4)  # words, as Triton counts: also arrays that are not in registers

    n_max_threads = property(lambda self: self.device.properties[4])

    @property
    def device(self):
        """Where this thread launches it."""
        return _device.of_thread.placed or _device.device(self.index)

    @property
    def kernel(self):
        return self.asm[self.device_code]

    @property
    def device_code(self):
        return "ptx" if self.index is not None else "asm"

    def launch(self, grid, call, device=None):
        """With the hooks of launches around it. A launch of no blocks is one, too."""
        device = device or self.device
        if not _hooks.of_launches:
            self._enqueue(grid, call, device)
            return
        metadata = self.launch_metadata(grid, device.native_stream, *call.arguments)
        before, after = _hooks.of_launches.chains
        before(metadata)
        self._enqueue(grid, call, device)
        after(metadata)

    def launch_metadata(self, grid, stream, *arguments):
        """What hooks of a launch are given; `arguments` in the order of the kernel's parameters."""
        metadata = _hooks.LazyDict({"name": self.name, "function": self.handle, "stream": stream})
        if self.function.launch_metadata is not None:
            metadata.add(self.function.launch_metadata, (grid, self.metadata, dict(zip(self.function.arg_names, arguments))))
        return metadata

    def _enqueue(self, grid, call, device):
        blocks = (*grid, 1, 1)[:3]
        if not all(blocks):
            return
        if call.uses_descriptors and self.needs_tensor_maps(device):
            self.launch_checked(blocks, call, device)
        else:
            self.launch_packed(blocks, self.pack(call.values), call.owners, device)

    def pack(self, values):
        """8 bytes for each parameter, from their values by name."""
        return self._format.pack(*[_bits(values[name], kind) for name, kind in self.parameters])

    @staticmethod
    def needs_tensor_maps(device):
        """On GPUs descriptors become tensor maps, which the library makes."""
        return device.index is not None

    def launch_checked(self, blocks, call, device):
        """Through the library's own binding of arguments."""
        arguments = [_native_argument(name, value) for name, value in zip(self.function.arg_names, call.arguments)]
        kernel = self.function.kernel(device.context, call.bindings)
        lent = ranges(call.owners) if device.index is None else ()
        device.run(lambda stream: _native.kernel_launch(kernel.handle, stream, blocks, *self.numbers, arguments), lent, call.owners)

    def launch_packed(self, blocks, raw, owners, device=None):
        """With the parameters as pack() gives them. On another device than the one it was compiled for (each thread has a simulated GPU), the
        same variant for that."""
        device = device or self.device
        own = self if self.context() is device.context else self.function.compiled_variant(device, self.signature, self.numbers, self.bindings)
        lent = ranges(owners) if device.index is None else ()
        device.run(lambda stream: _native.variant_launch(own.handle, stream, *blocks, raw), lent, owners)

    @property
    def plan(self):
        """What the Dispatcher needs to launch this: (handle, ((argument, part, code), ...)); None where only Python can. Of a descriptor part 0 is
        the address of its tensor, 1 + 3 * d the size and 2 + 3 * d the stride of dimension d."""
        numbers = {name: number for number, name in enumerate(self.function.arg_names)}
        codes = {"fp32": "f", "fp64": "d"}
        places = []
        for name, kind in self.parameters:
            argument, *field = name.split(".")
            if argument not in numbers or kind in ("fp16", "bf16"):
                return None
            part = 0
            if field:
                if len(field) != 2 or field[0] not in ("shape", "stride"):
                    return None
                part = 3 * int(field[1]) + (1 if field[0] == "shape" else 2)
            places.append((numbers[argument], part, codes.get(kind, "i")))
        return self.handle, tuple(places)

    def _init_handles(self):
        """There for programs that call it: the code is loaded already."""

    def __getitem__(self, grid):
        def runner(*arguments, **keywords):
            keywords.pop("stream", None)
            signature, call = self.function.specialise(self.function.bind(arguments, keywords))
            self.launch(grid_of(grid, {}), call)
        return runner


def _bits(value, kind):
    if kind == "bf16":
        bits = struct.unpack("=I", struct.pack("=f", value))[0]
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF if value == value else 0x7FC0
    if kind[0] in "iu":
        value = int(value)
        width = int(kind[1:])
        if kind == "i1":
            return bool(value)
        value &= (1 << width) - 1
        return value - (1 << width) if kind[0] == "i" and value >> (width - 1) else value
    if kind == "fp32":
        try:
            struct.pack("=f", value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return value


def _native_argument(name, value):
    """(name, kind, dtype, value) as ditron.h has them."""
    value = value.value if isinstance(value, constexpr) else value
    if value is None:
        return name, 0, 0, None
    if isinstance(value, bool):
        return name, 1, 0, int(value)
    if isinstance(value, int):
        return name, 2 if value < 2**63 else 3, 0, value
    if isinstance(value, float):
        return name, 4, 0, value
    if isinstance(value, str):
        return name, 6, 0, value
    if isinstance(value, dtype) and value.number is not None:
        return name, 7, value.number, None
    if hasattr(value, "block_shape"):
        base = pointer_of(value.base)
        sizes = [tuple(int(each) for each in sizes) for sizes in (value.shape, value.strides, value.block_shape)]
        return name, 8, BY_SIGNATURE[base.type].number, (base.address, *sizes, int(getattr(value, "padding", "zero") == "nan"))
    if is_tensor(value):
        pointer = pointer_of(value)
        return name, 5, BY_SIGNATURE[pointer.type].number, pointer.address
    raise UnsupportedError(f"argument '{name}': a kernel that takes tensor descriptors on a GPU cannot take a {type(value).__name__} from Python yet")


class _Texts(dict):
    """The stages of a compilation as texts, fetched when asked for: source, ttir, ttgir, llir, ptx (or asm)."""

    STAGES = {"source": "source", "ttir": "tile", "ttgir": "layout", "llir": "llvm", "ptx": "asm", "asm": "asm", "tile": "tile", "layout": "layout",
              "llvm": "llvm", "sass": "asm", "cubin": "asm"}

    def __init__(self, compiled):
        super().__init__()
        self.compiled = weakref.ref(compiled)

    def __missing__(self, stage):
        if stage not in self.STAGES:
            raise KeyError(f"'{stage}': there are {', '.join(self.STAGES)}")
        compiled = self.compiled()
        if compiled is None or compiled.context() is None:
            raise NotFoundError(f"asm['{stage}']: the device that this kernel was compiled for is gone, and its texts with it")
        text = self[stage] = _native.variant_text(compiled.handle, self.STAGES[stage])
        return text

    def __contains__(self, stage):
        return stage in self.STAGES

    def keys(self):
        return [stage for stage in ("source", "ttir", "ttgir", "llir", "ptx")]

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def items(self):
        return [(stage, self[stage]) for stage in self.keys()]

    def values(self):
        return [self[stage] for stage in self.keys()]

    def get(self, stage, default=None):
        return self[stage] if stage in self else default
