"""Ditron: a distributed tensor compiler for kernels in the Triton language, on simulated and NVIDIA GPUs.

    import numpy as np
    import ditron
    import ditron.language as tl

    @ditron.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

    x = np.arange(1000, dtype=np.float32)
    out = np.empty_like(x)
    add[(8,)](x, x, out, 1000, BLOCK=128)     # on a simulated GPU, in place, with bounds checks

PyTorch CUDA tensors run on their GPU, on PyTorch's current stream. docs/python.md has the rest.
"""
from . import language
from ._device import current as _current
from ._errors import (CompilationError, DataRaceError, DeadlockError, Error, InternalError, InvalidArgumentError, NotFoundError, OutOfBoundsError,
                      ResourceExhaustedError, TimeoutError, UnsupportedError)
from ._device import set_simulated_target
from ._jit import CompiledKernel, JITFunction, KernelInterface, aggregate, constexpr_function, jit
from ._native import version_text as _version_text
from ._table import _cdiv as cdiv, _next_power_of_2 as next_power_of_2
from ._attention import Attention, AttentionDecode, RingAttention, SequenceParallelAttention, TensorParallelAttention
from ._collectives import AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter
from ._mixture import ExpertParallel, ExpertParallelMoe, GroupedGemm, Routing, TensorParallelMoe
from ._operators import AllGatherGemm, GemmAllReduce, GemmReduceScatter
from ._rms_norm import AllReduceRmsNorm
from ._tensors import MockTensor, TensorWrapper, reinterpret
from ._program import ProgramResult, run_program
from ._transfers import AllToAllV, Barrier, SendReceive
from ._tuning import Autotuner, Config, Heuristics, autotune, heuristics
from ._world import SymmetricTensor, World
from .descriptors import TensorDescriptor

__version__ = _version_text().split()[0]


def target():
    """The target of launches without tensors: "cuda:sm_90a", or "sim:sm_80" where there is no GPU."""
    return _current().context.target
