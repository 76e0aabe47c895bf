"""Worlds and tensors of the operators."""
import torch

from .._errors import InvalidArgumentError
from .._tensors import pointer_of
from .._world import worlds


def world_of(name):
    """The world of a name, by which operators of torch.library know it."""
    world = worlds.get(name)
    if world is None:
        raise InvalidArgumentError(f"the world '{name}' is gone; there are {sorted(worlds) or 'none'}")
    return world


def dense(tensor):
    """Rows one behind the other, at a multiple of 16 bytes."""
    tensor = tensor.resolve_conj().contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


def rows_of(tensor):
    """Rows without gaps in them, at a multiple of 16 bytes, as the products take them; there may be gaps between them."""
    is_row_major = tensor.dim() == 2 and tensor.stride(1) == 1 and tensor.stride(0) >= tensor.shape[1]
    return tensor if is_row_major and tensor.data_ptr() % 16 == 0 else dense(tensor)


def lend(device, tensors):
    """Kernels of the device may touch them from now on."""
    for tensor in tensors:
        if device.index is None or tensor.get_device() != device.index:
            # Which refuses other GPUs' tensors. Complex numbers are moved only, as what they consist of.
            device.lend_tensor(pointer_of(torch.view_as_real(tensor) if tensor.is_complex() else tensor))
