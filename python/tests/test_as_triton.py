"""ditron.as_triton in processes of their own: what `import triton` gives then, with and without PyTorch."""
import subprocess
import sys
import textwrap

import pytest
from conftest import environment, needs_no_gpu, needs_torch

KERNEL = """
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
"""


def run(arguments, folder, text=None, **variables):
    if text is not None:
        (folder / "program.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=600, env=environment(**variables))


def passes(tmp_path, text):
    result = run(["-m", "ditron.as_triton", "program.py", "one", "two"], tmp_path, text)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_a_program_for_triton_runs_on_numpy_arrays(tmp_path):
    out = passes(tmp_path, KERNEL + """
import sys
import numpy as np
x = np.arange(300, dtype=np.float32)
out = np.zeros_like(x)
add[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, x, out, 300)
assert (out == 2 * x).all()
print(sys.argv[1:], __name__, add.best_config.num_warps)
""")
    assert out == "['one', 'two'] __main__ 2\n"


def test_what_programs_look_at(tmp_path):
    passes(tmp_path, """
    import importlib.util
    import triton, triton.testing, triton.runtime.jit
    import triton.language as tl
    from triton import Config, JITFunction, next_power_of_2
    from triton.compiler.errors import CompilationError
    from triton.language.extra import libdevice
    from triton.language.extra.cuda import libdevice as same
    from triton.language import core
    from triton.runtime import Autotuner, driver
    from triton.tools.tensor_descriptor import TensorDescriptor
    assert importlib.util.find_spec("triton") and triton.__version__ >= "3"
    assert driver.active.get_current_target().backend == "cuda"
    assert next_power_of_2(100) == 128 and triton.cdiv(7, 2) == 4
    assert tl.float16.primitive_bitwidth == 16 and str(tl.bfloat16) == "bf16" and tl.int1.is_int()
    assert libdevice.tanh is same.tanh and tl.math.exp is not None and core.load is tl.load
    """)


def test_modules_have_every_name_that_the_stubs_declare(tmp_path):
    out = passes(tmp_path, """
    import ast, importlib, pathlib
    import ditron

    stubs = pathlib.Path(ditron.__file__).parent / "stubs"

    def declared(path):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                source = stubs.joinpath(*node.module.split(".")[2:])
                yield from declared(source / "__init__.pyi" if source.is_dir() else source.with_suffix(".pyi"))
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                yield from (alias.asname or alias.name for alias in node.names)
            else:
                yield getattr(node, "name", None) or getattr(getattr(node, "target", None), "id", "_")

    names = 0
    for path in sorted(stubs.rglob("*.pyi")):
        dotted = ".".join(path.relative_to(stubs).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        for name in declared(path) if dotted else ():
            if not name.startswith("_"):
                names += 1
                assert hasattr(importlib.import_module(dotted), name), f"{dotted}.{name}"
    print(names)
    """)
    assert int(out) > 500


def test_dependent_launches_and_distributed_names(tmp_path):
    passes(tmp_path, """
    import numpy as np
    import triton
    import triton.language as tl
    import triton_dist.language as dl
    from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait
    from triton_dist.language.extra.language_extra import tid

    @triton.jit
    def add(x, out, BLOCK: tl.constexpr):
        tl.extra.cuda.gdc_launch_dependents()
        gdc_wait()
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i) + dl.rank())

    x = np.arange(256, dtype=np.float32) + 1
    out = np.zeros_like(x)
    add[(2,)](x, out, BLOCK=128)
    assert (out == x).all()
    """)


def test_what_is_missing_says_so_by_name(tmp_path):
    out = passes(tmp_path, """
    import triton
    for look in (lambda: triton.nonsense, lambda: triton.language.nonsense, lambda: triton.compile(None)):
        try:
            look()
        except (AttributeError, NotImplementedError) as error:
            print(error)
    try:
        from triton.runtime.jit import nonsense
    except ImportError as error:
        print(error)
    import importlib
    for name in ("triton.experimental.gluon", "triton.tools.mxfp", "triton._C", "triton.profiler.language"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(error)
    """).splitlines()
    assert out[0].startswith("module 'triton' has no 'nonsense': Ditron does not have it")
    assert out[1].startswith("module 'triton.language' has no 'nonsense'")
    assert out[2].startswith("triton.compile: Ditron does not have it")
    assert "cannot import name 'nonsense' from 'triton.runtime.jit'" in out[3] and "No module named 'triton.experimental'" in out[4]
    assert [f"'{name}'" in line for name, line in zip(("triton.tools.mxfp", "triton._C", "triton.profiler.language"), out[5:])] == [True] * 3


@needs_no_gpu
def test_the_simulated_gpu_is_a_hopper_unless_told(tmp_path):
    text = """
    import triton
    import ditron
    print(triton.runtime.driver.active.get_current_target().arch, ditron.target(), triton.knobs.runtime.override_arch)
    """
    assert run(["-m", "ditron.as_triton", "program.py"], tmp_path, text, TRITON_OVERRIDE_ARCH="").stdout == "90 sim:sm_90a None\n"
    for name in ("sm80", "sm_80"):
        assert run(["-m", "ditron.as_triton", "program.py"], tmp_path, text, TRITON_OVERRIDE_ARCH=name).stdout == f"80 sim:sm_80 {name}\n"
    wrong = run(["-m", "ditron.as_triton", "program.py"], tmp_path, text, TRITON_OVERRIDE_ARCH="hopper")
    assert wrong.returncode == 1 and "sim:hopper" in wrong.stderr and "sim:sm_90a" in wrong.stderr


PRE_HOOK = """
import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

calls = []

def set_block(nargs):
    calls.append((nargs["B"], nargs["num_warps"], nargs["n"]))
    nargs["d"].block_shape = [nargs["B"], nargs["B"]]

@triton.autotune(configs=[triton.Config({"B": size}, pre_hook=set_block) for size in (256, 32, 64)], key=["n"])
@triton.jit
def step(d, n, B: tl.constexpr):
    tl.static_assert(B < 256)
    d.store([0, 0], d.load([0, 0]) + 1)

x = np.zeros((64, 64), np.float16)
d = TensorDescriptor.from_tensor(x, [1, 1])
"""


def test_hooks_of_configurations_set_the_tiles_of_descriptors(tmp_path):
    passes(tmp_path, PRE_HOOK + """
step[(1,)](d, 64)
assert x.sum() == 32 * 32 and step.best_config.kwargs == {"B": 32} and d.block_shape == [32, 32]
assert calls == [(256, 4, 64), (32, 4, 64), (32, 4, 64)]
d.block_shape = [1, 1]
step[(1,)](d, 64)  # the choice is known
assert x.sum() == 2 * 32 * 32 and len(calls) == 4
step.configs = step.configs[1:]
del calls[:]
small, large = step.warmup(d, 64, grid=(1,))
assert [each[0] for each in calls] == [32, 64] and d.block_shape == [64, 64]
assert "32x32" in small.asm["ttir"] and "64x64" in large.asm["ttir"]
""")


def test_hooks_of_configurations_that_are_timed(tmp_path):
    passes(tmp_path, PRE_HOOK + """
import sys, types
import ditron._tuning

class Event:
    def __init__(self, enable_timing):
        pass
    record = synchronize = lambda self: None
    def elapsed_time(self, end):
        return {32: 2.0, 64: 1.0}[d.block_shape[0]]

sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(Event=Event))
ditron._tuning._is_simulated = lambda values: False
step[(1,)](d, 64)
assert step.best_config.kwargs == {"B": 64} and d.block_shape == [64, 64]
assert calls[-1][0] == 64 and calls[-2][0] == 64 and (calls[0][0], calls[1][0]) == (256, 32)
assert (x[32:, 32:] == 12).all() and (x[:32, :32] == 23).all()  # 11 runs with each, and the launch
""")


def test_registers_of_a_simulated_kernel(tmp_path):
    out = passes(tmp_path, """
    import numpy as np
    import triton
    import triton.language as tl

    @triton.jit
    def softmax(x, n, B: tl.constexpr):
        i = tl.arange(0, B)
        v = tl.load(x + i, mask=i < n)
        tl.store(x + i, v - tl.max(v, axis=0), mask=i < n)

    properties = triton.runtime.driver.active.utils.get_device_properties(0)
    for warps in (4, 8, 16, 32):
        kernel = softmax.warmup(np.zeros(1000, np.float32), 1000, B=1024, num_warps=warps, grid=(1,))
        kernel._init_handles()
        occupancy = properties["max_num_regs"] // (kernel.n_regs * properties["warpSize"] * warps)
        print(kernel.n_regs, kernel.n_spills, occupancy)
    """)
    assert out == "248 0 2\n248 0 1\n128 0 1\n64 0 1\n"


def test_hooks_of_launches(tmp_path):
    passes(tmp_path, """
    import numpy as np
    import triton
    import triton.language as tl

    computed = []

    def describe(grid, kernel, args):
        computed.append(grid)
        return {"name": f"{kernel.name} {args['n']} {args['B']}", "flops": 2 * args["n"], "elements": args["x"].size}

    @triton.jit(launch_metadata=describe)
    def put(x, n, B: tl.constexpr = 4):
        tl.store(x, n)

    @triton.jit
    def plain(x):
        tl.store(x, 7)

    runtime = triton.knobs.runtime
    x = np.zeros(3, np.int32)
    order, found = [], []
    launch = put[lambda meta: (2, meta["B"])]
    launch(x, 5)
    runtime.launch_enter_hook = lambda metadata: order.append(("enter", x[0])) or found.append(metadata)
    runtime.launch_exit_hook = lambda metadata: order.append(("exit", x[0])) or found.append(metadata)
    launch(x, 6)
    assert order == [("enter", 5), ("exit", 6)] and found[0] is found[1] and not computed
    metadata = found[0].get()
    assert metadata["name"] == "put 6 4" and metadata["flops"] == 12 and metadata["elements"] == 3 and metadata["stream"] == 0
    assert found[1].get() is metadata and computed == [(2, 4)] and "function" in metadata
    plain[(1,)](x)
    plain[(0,)](x)
    assert found[2].get()["name"] == "plain" and len(found) == 6
    compiled = plain.warmup(x, grid=(1,))
    assert len(found) == 6
    compiled[(1,)](x)
    assert len(found) == 8

    runtime.launch_exit_hook = None
    with runtime.scope():
        runtime.launch_enter_hook = triton.knobs.HookChain()
        first, second = (lambda metadata: order.append(1)), (lambda metadata: order.append(2))
        for hook in (first, second, first):
            runtime.launch_enter_hook.add(hook)
        del order[:]
        launch(x, 8)
        assert order == [1, 2] and runtime.launch_enter_hook.calls == [first, second]
        runtime.launch_enter_hook.remove(first)
        launch(x, 9)
        assert order == [1, 2, 2]
    launch(x, 10)
    assert order[3:] == [("enter", 9)]
    runtime.launch_enter_hook = None
    launch(x, 11)
    assert len(order) == 4 and x[0] == 11
    try:
        runtime.launch_enter_hook = 5
    except TypeError as problem:
        assert "not 5" in str(problem)
    """)


def test_the_profiler_says_that_it_records_nothing(tmp_path):
    result = run(["-m", "ditron.as_triton", "program.py"], tmp_path, """
    import triton.profiler as proton

    session = proton.start("matmul", hook="triton")
    assert session == 0 and proton.start("again") == 1
    proton.deactivate()
    proton.activate(0)
    with proton.scope("torch [M=1]", {"flops": 2.0}):
        pass

    @proton.scope("function")
    def function():
        return 5

    assert function() == 5
    proton.deactivate(0)
    proton.finalize()
    import triton.profiler.viewer as viewer
    tree, metrics = viewer.parse(["tflop16/s", "time/ms"], "matmul.hatchet")
    viewer.print_tree(tree, metrics)
    try:
        proton.activate(2)
    except ValueError as problem:
        print(problem)
    """)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["triton.profiler: nothing was recorded (tflop16/s, time/ms)",
                                          "triton.profiler: there is no session 2; 2 have been started"]
    assert result.stderr.count("Ditron records nothing") == 1 and "program.py:4" in result.stderr


def test_wrong_command_lines(tmp_path):
    for arguments, words in ([[], "usage:"], [["-m"], "-m needs the name of a module"], [["none.py"], "there is no file none.py"]):
        result = run(["-m", "ditron.as_triton", *arguments], tmp_path)
        assert result.returncode == 2 and words in result.stdout + result.stderr


def test_pytest_through_it(tmp_path):
    (tmp_path / "test_it.py").write_text(KERNEL + """
import numpy as np

def test_add():
    out = np.zeros(10, np.int32)
    add[(1,)](np.ones(10, np.int32), np.ones(10, np.int32), out, 10)
    assert (out == 2).all()
""", encoding="utf-8")
    for arguments in (["-m", "ditron.as_triton", "-m", "pytest"], ["-m", "pytest", "-p", "ditron.as_triton"]):
        result = run([*arguments, "-q", "-p", "no:cacheprovider", "test_it.py"], tmp_path)
        assert "1 passed" in result.stdout, result.stdout + result.stderr


@needs_torch
@needs_no_gpu
@pytest.mark.parametrize("order", ["import torch, ditron.as_triton", "import ditron.as_triton, torch"])
def test_cuda_is_the_simulator_without_a_gpu(tmp_path, order):
    (tmp_path / "program.py").write_text(order + KERNEL + """
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
x = torch.arange(1000, device="cuda", dtype=torch.float32)
out = torch.empty_like(x)
assert x.is_cuda and x.device == torch.device("cuda:0") and torch.zeros(2).cuda().device.type == "cuda"
add[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, x, out, 1000)
torch.testing.assert_close(out, 2 * x)
layer = torch.nn.Linear(4, 4).to("cuda", torch.float16)
assert layer(torch.ones(2, 4, device=torch.device("cuda"), dtype=torch.float16)).shape == (2, 4)
with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
    assert (torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype == torch.bfloat16
class Doubled(torch.autograd.Function):
    forward = staticmethod(lambda context, x: 2 * x)
    backward = staticmethod(lambda context, g: torch.full(g.shape, 2.0, device=g.device) * g)
leaf = torch.ones(3, device="cuda", requires_grad=True)
assert torch.autograd.grad(Doubled.apply(leaf).sum(), leaf)[0].tolist() == [2.0] * 3
torch.set_default_device("cuda")
assert torch.zeros(2).device.type == "cuda" and torch.Generator(device="cuda") is not None
torch.cuda.synchronize()
assert triton.testing.do_bench(lambda: add[(8,)](x, x, out, 1000)) > 0
""", encoding="utf-8")
    result = run(["program.py"], tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


@needs_torch
def test_torch_tensors_on_the_host(tmp_path):
    passes(tmp_path, """
    import torch
    import triton, triton.language as tl

    @triton.jit
    def scale(x, n, factor, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

    for kind in (torch.float32, torch.bfloat16, torch.float16):
        for factor in (2.0, 3, 1):
            x = torch.ones(20, dtype=kind)
            for repeat in range(2):  # the second is the Dispatcher's
                scale[(1,)](x[4:], 8, factor, BLOCK=16)
            assert x.tolist() == [1.0] * 4 + [factor * factor] * 8 + [1.0] * 8, (kind, factor, x)
    compiled = scale.warmup(torch.float32, 8, 2.0, BLOCK=16, grid=(1,))
    assert compiled.metadata.num_warps == 4
    """)


@needs_torch
def test_tables_of_pointers(tmp_path):
    passes(tmp_path, """
    import torch
    import triton, triton.language as tl

    @triton.jit
    def fill(table, value):
        pointer = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
        tl.store(pointer + tl.arange(0, 4), value)

    tensors = [torch.zeros(4, device="cuda") for _ in range(3)]
    fill[(3,)](torch.tensor([each.data_ptr() for each in tensors], dtype=torch.int64, device="cuda"), 2.5)
    assert all(each.tolist() == [2.5] * 4 for each in tensors)
    """)
