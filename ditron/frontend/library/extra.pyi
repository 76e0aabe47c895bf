"""`triton.language.extra`: the target and dependent launches (tl.target_info, tl.extra.cuda)."""
from . import extra as cuda, extra as hip
from . import language_extra, language_extra as tma_language
from . import libdevice, libshmem_device


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
