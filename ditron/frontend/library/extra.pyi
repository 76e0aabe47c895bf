"""`triton.language.extra`: the target and dependent launches (tl.target_info, tl.extra.cuda)."""
from . import extra as cuda, extra as hip
from . import language_extra, language_extra as tma_language
from . import libdevice, libshmem_device, libshmem_device as libnvshmem_device
from .language_extra import gdc_wait, gdc_launch_dependents
from . import extra as utils, extra as gdc


# The target (tl.target_info), dependent launches (tl.extra.cuda).

@handler("targetIsCuda")
def is_cuda() -> bool:
    """True, in the simulator too"""

@handler("targetIsOther")
def is_hip() -> bool:
    """False"""

@handler("targetIsOther")
def is_hip_cdna3() -> bool:
    """False"""

@handler("targetIsOther")
def is_hip_cdna4() -> bool:
    """False"""

@handler("cudaCapabilityAtLeast")
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """whether the target has this compute capability or more, at compile time"""

@refused("there is no target object; ask is_cuda() or cuda_capability_geq(major, minor)")
def current_target(*args): ...

# tl.extra.cuda.

def num_warps() -> int:
    """warps of the block, at compile time"""

def num_threads() -> int:
    """threads of the block, at compile time"""

@handler("multiprocessor", type=ScalarKind.Int32)
def smid() -> tensor:
    """int32: number of the multiprocessor (in the simulator: of the block's slot)"""

@handler("clockValue", clock="globaltimer", type=ScalarKind.Int64)
def globaltimer() -> tensor:
    """int64: nanoseconds of a clock of the whole GPU (in the simulator: virtual time)"""

@library("standard")
def convert_custom_float8(arg, dst_ty: const, fp_downcast_rounding: const = None, has_minx2: const = True):
    """to or from fp8e4b15"""

@library("standard")
def convert_custom_float8_sm80(arg, dst_ty: const, fp_downcast_rounding: const = None):
    """to or from fp8e4b15"""

@library("standard")
def convert_custom_float8_sm70(arg, dst_ty: const, fp_downcast_rounding: const = None):
    """to or from fp8e4b15"""
