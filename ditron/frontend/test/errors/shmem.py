# RUN: not ditron-import %s:kernel --signature "*i64, *fp32, i32" 2>&1 | FileCheck %s
# Wrong calls of libshmem_device.
import triton
import triton.language as tl
from triton_dist.language.extra import libshmem_device as shmem


@triton.jit
def kernel(sig, p, n):
    shmem.signal_op(p, 1, shmem.NVSHMEM_SIGNAL_SET, 0)
    # CHECK: shmem.py:[[#@LINE-1]]:21: error: argument 'sig_addr' of libshmem_device.signal_op must be a pointer to 32 or 64 bit integers
    shmem.signal_op(sig, 1, 7, 0)
    # CHECK: shmem.py:[[#@LINE-1]]:29: error: argument 'sig_op' of libshmem_device.signal_op must be NVSHMEM_SIGNAL_SET (9) or NVSHMEM_SIGNAL_ADD (10)
    shmem.signal_wait_until(sig, 6, 0)
    # CHECK: shmem.py:[[#@LINE-1]]:34: error: argument 'cmp' of libshmem_device.signal_wait_until must be NVSHMEM_CMP_EQ
    shmem.barrier_block(4)
    # CHECK: shmem.py:[[#@LINE-1]]:25: error: argument 'team' of libshmem_device.barrier_block must be NVSHMEM_TEAM_WORLD (0)
    shmem.putmem_block(p + tl.arange(0, 4), p, 4, 0)
    # CHECK: shmem.py:[[#@LINE-1]]:24: error: argument 'dest' of libshmem_device.putmem_block must be a scalar pointer
    shmem.putmem_block(p, p, 1.5, 0)
    # CHECK: shmem.py:[[#@LINE-1]]:30: error: argument 'bytes' of libshmem_device.putmem_block must be a scalar integer
    shmem.fcollect(0, sig, p, n)
    # CHECK: shmem.py:[[#@LINE-1]]:28: error: argument 'src' of libshmem_device.fcollect must be a pointer to int64, as dest is
    shmem.set_rocshmem_ctx(n)
    # CHECK: shmem.py:[[#@LINE-1]]:5: error: {{.*}}contexts of rocSHMEM do not exist here
