"""One cold compilation by Triton; bench/gpu/compile_time.py starts it with a description of the kernel and a fresh cache.

Prints a line of JSON: milliseconds until the machine code is loaded, and until a launch of it has run.
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
compiled = function.warmup(**arguments, grid=grid, num_warps=request["warps"], num_stages=request["stages"])
compiled_at = time.perf_counter()
compiled._init_handles()  # loads the machine code
loaded_at = time.perf_counter()
function[grid](**arguments, num_warps=request["warps"], num_stages=request["stages"])
torch.cuda.synchronize()
ran_at = time.perf_counter()
print(json.dumps({"version": triton.__version__, "compiled": (compiled_at - start) * 1e3, "loaded": (loaded_at - start) * 1e3,
                  "first_launch": (ran_at - start) * 1e3}))
