"""AllReduce, residual and RMSNorm as one launch."""
import math
from functools import partial

from . import _native
from ._errors import InvalidArgumentError
from ._named import NamedOperands, rows_of
from ._sizes import check_counts, check_sizes, number_or_zero
from ._tensors import is_tensor
from ._transfers import _element_type
from ._values import BY_SIGNATURE


class AllReduceRmsNorm(NamedOperands):
    """What stands between two products of a tensor-parallel layer, row by row:

        residual_out = sum over ranks of x + residual
        out = residual_out / sqrt(mean(residual_out ** 2) + epsilon) * weight

    The values of the three steps one after the other: the sum is rounded to the type, then residual_out is, and the norm is of that. bfloat16, float16 or
    float32; rows are multiples of 16 bytes, of at most 32768 elements. Made and called as AllReduce is: by all ranks, in the same order."""

    name, alignment, without_rows = "all_reduce_rms_norm", 16, ""

    def __init__(self, world, max_rows, columns, dtype, *, epsilon=1e-6, concurrent_calls=0):
        self.type, self.columns = _element_type(self.name, dtype), columns
        check_sizes(self.name, max_rows=max_rows, columns=columns)
        check_counts(self.name, concurrent_calls=concurrent_calls)
        super().__init__(world, _native.all_reduce_rms_norm_create, _native.all_reduce_rms_norm_destroy, BY_SIGNATURE[self.type].number, columns, max_rows,
                         number_or_zero(self.name, epsilon=epsilon), concurrent_calls)

    def prepare(self, rows):
        """Compiles and loads what calls with so many rows need, on all ranks of this process; before the first call anywhere."""
        _native.all_reduce_rms_norm_prepare(self.handle, rows)

    def __call__(self, x, residual, weight, out=None, residual_out=None):
        """x and residual [rows, columns], weight [columns]. Lists of tensors by local rank, or single ones of this process's rank, in world.run of this
        thread's. Without out in the place of x, without residual_out in that of residual. Enqueued; gives out and residual_out."""
        out, residual_out = x if out is None else out, residual if residual_out is None else residual_out
        is_one_of_several, seen = not is_tensor(x), set()

        def call(device, given):
            rows = rows_of(self.name, "x", given["x"], self.columns)
            for word, tensor in given.items():
                wanted = [self.columns] if word == "weight" else [rows, self.columns]
                *leading, columns = shape = list(tensor.shape) or [0]
                if columns != self.columns or math.prod(leading) != math.prod(wanted[:-1]) or (word == "weight" and leading):
                    raise InvalidArgumentError(f"{self.name}: {word} is {shape}; {wanted} is accepted")
            seen.add(rows)
            if len(seen) > 1:
                raise InvalidArgumentError(f"{self.name}: {sorted(seen)} rows on the ranks of this process; accepted is the same number on all")
            arguments = self.handle, device.stream(), rows, *self.addresses(device, given, [(word, self.type, None) for word in given])
            if is_one_of_several:
                _native.all_reduce_rms_norm_check(*arguments)
            return partial(_native.all_reduce_rms_norm_enqueue, *arguments)
        self.spread({"x": x, "residual": residual, "weight": weight, "out": out, "residual_out": residual_out}, call,
                    needed=("x", "residual", "weight", "out", "residual_out"))
        return out, residual_out
