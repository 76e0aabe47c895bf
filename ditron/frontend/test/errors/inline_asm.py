# RUN: not ditron-import %s:kernel --signature "*fp32, *i8, *fp64" 2>&1 | FileCheck %s
# Assembly on elements, libdevice, formats of other hardware.
import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language import core
from triton.language.extra import libdevice


@core.extern
def mine(x, _semantic=None):
    return core.extern_elementwise("mine", "mine.bc", [x], {(tl.float32,): ("my_function", tl.float32)}, False, _semantic=_semantic)


@core.extern
def root(x, _semantic=None):
    return core.extern_elementwise("libdevice", "", [x], {(tl.float64,): ("__nv_sqrt", tl.float64)}, True, _semantic=_semantic)


@triton.jit
def kernel(f, b, d):
    i = tl.arange(0, 64)
    x = tl.load(f + i)
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r", [x], tl.int32, True, 1)
    # CHECK: inline_asm.py:[[#@LINE-1]]:50: error: an operand of type fp32 fills 1 register with pack=1, which the constraints '=r' do not have
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,l", [x], tl.int32, True, 1)
    # CHECK: inline_asm.py:[[#@LINE-1]]:50: error: constraint 'l' is for 64 bits, but an operand of type fp32 fills registers of 32
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r,r", [x], tl.int32, True, 1)
    # CHECK: inline_asm.py:[[#@LINE-1]]:50: error: there are 3 constraints for 2 registers
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,m", [x], tl.int32, True, 1)
    # CHECK: inline_asm.py:[[#@LINE-1]]:50: error: constraint 'm' is no register class; they are h (16 bits), r and f (32), l and d (64)
    libdevice.brev(x)
    # CHECK: inline_asm.py:[[#@LINE-1]]:5: error: input arg type does not match: libdevice.brev takes (int32), (int64), but got (fp32)
    mine(x)
    # CHECK: error: tl.extern_elementwise knows no function 'my_function': foreign bitcode is not linked
    root(x)
    # CHECK: error: input arg type does not match: the dict has {{.*}}fp64{{.*}}, but got (fp32)
    dl.extern_elementwise("my_function", [x])
    # CHECK: error: dl.extern_elementwise knows no function 'my_function': foreign bitcode is not linked
    x.to(tl.float8e4b8)
    # CHECK: error: type fp8e4b8 not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e4nv', 'fp8e5')
