"""One cold compilation by Triton; bench/gpu/compile_time.py starts it with a description of the kernel and a fresh cache.

Prints a line of JSON in milliseconds: from the kernel's source to machine code, the same with loading it, and everything that a first
launch needs (Triton's own C modules built by the C compiler, the kernel loaded once more by its launcher).
"""
import importlib.util
import json
import sys
import time

import torch
import triton

request = json.loads(sys.argv[1])
spec = importlib.util.spec_from_file_location("kernel", request["path"])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
function = getattr(module, request["function"])

size = request["size"]
matrices = [torch.zeros(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
arguments = dict(zip(request["parameters"], matrices + [size] * (len(request["parameters"]) - 3)))
arguments.update(request["constants"])
constants = request["constants"]
grid = ((size // constants["BLOCK_M"]) * (size // constants["BLOCK_N"]),)
if hasattr(triton, "set_allocator"):  # descriptors that a kernel makes itself need memory
    triton.set_allocator(lambda bytes, alignment, stream: torch.empty(bytes, device="cuda", dtype=torch.int8))
torch.cuda.synchronize()

start = time.perf_counter()
utilities = triton.runtime.driver.active.utils  # builds a C module, once per cache: not part of compiling a kernel
device = triton.runtime.driver.active.get_current_device()
begin = time.perf_counter()
compiled = function.warmup(**arguments, grid=grid, num_warps=request["warps"], num_stages=request["stages"])
compiled_at = time.perf_counter()
utilities.load_binary(compiled.name, compiled.kernel, compiled.metadata.shared, device)
loaded_at = time.perf_counter()
function[grid](**arguments, num_warps=request["warps"], num_stages=request["stages"])
torch.cuda.synchronize()
ran_at = time.perf_counter()
print(json.dumps({"version": triton.__version__, "compiled": (compiled_at - begin) * 1e3, "loaded": (loaded_at - begin) * 1e3,
                  "first_launch": (ran_at - start) * 1e3}))
