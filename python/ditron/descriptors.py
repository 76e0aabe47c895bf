"""Tensor descriptors that the host makes: what a parameter takes that a kernel loads and stores in tiles."""
from dataclasses import dataclass
from typing import Any, List


@dataclass
class TensorDescriptor:
    """A tensor in memory with the tile in which kernels move it."""

    base: Any
    shape: List[int]
    strides: List[int]
    block_shape: List[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self):
        rank = len(self.shape)
        assert len(self.strides) == rank, f"rank mismatch: {self}"
        assert len(self.block_shape) == rank, f"rank mismatch: {self}"
        assert rank > 0, "rank must not be zero"
        assert rank <= 5, "rank cannot be more than 5"
        assert self.base.data_ptr() % 16 == 0 if hasattr(self.base, "data_ptr") else True, "base must be 16-byte aligned"
        size = self.base.element_size() if hasattr(self.base, "element_size") else self.base.itemsize
        for stride in self.strides[:-1]:
            assert stride * size % 16 == 0, "strides must be 16-byte aligned"
        assert self.strides[-1] == 1, "Last dimension must be contiguous"
        assert self.padding in ("zero", "nan"), "Illegal value for padding"

    @staticmethod
    def from_tensor(tensor, block_shape, padding="zero", round_f32_to_tf32=False):
        strides = tensor.stride() if hasattr(tensor, "stride") else [each // tensor.itemsize for each in tensor.strides]
        return TensorDescriptor(tensor, list(tensor.shape), list(strides), list(block_shape), padding, round_f32_to_tf32)
