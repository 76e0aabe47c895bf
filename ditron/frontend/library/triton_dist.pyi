"""`triton_dist.kernels.nvidia.common_ops`, and what the package triton_dist itself offers."""
from . import dl as language
# What its kernels share is found in the package itself.
from . import triton_dist as kernels, triton_dist as nvidia, triton_dist as common_ops
from .triton import (jit, autotune, heuristics, Config)
from .tl import constexpr_function
from .triton import next_power_of_2


# triton_dist.kernels.nvidia.common_ops.

@library("common_ops")
def barrier_on_this_grid(ptr, use_cooperative: const = False):
    """all blocks of the launch meet; a 32-bit word that is never reset; all blocks must be resident: launch it as
    cooperative"""

@library("common_ops")
def cooperative_barrier_on_this_grid(ptr=None):
    """the same; needs the word"""

@library("common_ops")
def unsafe_barrier_on_this_grid(ptr):
    """the same"""

@library("common_ops")
def barrier_all_intra_node_atomic_cas_block(local_rank, rank, local_world_size, symm_flag_ptr):
    """a block of each rank of the node meets; a flag per rank, zero before and after"""

@library("common_ops")
def barrier_all_intra_node_non_atomic_block(local_rank, rank, num_ranks, symm_flags, target_value):
    """the same with plain stores; 2 * num_ranks flags, another value in each call"""

@library("common_ops")
def barrier_all_intra_node_non_atomic(local_rank, rank, num_ranks, symm_flags, target_value,
                                      use_cooperative: const = False):
    """the same by whole grids; one more word, for the grid"""

@library("common_ops")
def bisect_left_kernel(sorted_values_ptr, target_value, N):
    """index of the first of N ascending values that is not less than the target"""

@library("common_ops")
def bisect_right_kernel(sorted_values_ptr, target_value, N):
    """index of the first of N ascending values that is greater than the target"""

@library("common_ops")
def bisect_left_kernel_aligned(sorted_values_ptr, target_value, N: const):
    """bisect_left_kernel for a power of two, by one load"""

@library("common_ops")
def bisect_right_kernel_aligned(sorted_values_ptr, target_value, N: const):
    """bisect_right_kernel for a power of two, by one load"""
