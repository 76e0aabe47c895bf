"""Kernels of the user's on NumPy arrays: launches, arguments, specialisation."""
import copy
import gc
import pickle
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import ditron
import ditron.language as tl

FACTOR: tl.constexpr = tl.constexpr(3)
PLAIN = 5


@ditron.jit
def scaled(value, factor: tl.constexpr = FACTOR):
    return value * factor


@ditron.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, scaled(tl.load(x + i, mask=i < n)) + tl.load(y + i, mask=i < n), mask=i < n)


def blocks(n, size):
    return (ditron.cdiv(n, size),)


@pytest.mark.parametrize("n", [1, 16, 1000])
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int64, np.uint8])
def test_add(n, kind):
    x = np.arange(n).astype(kind)
    out = np.zeros_like(x)
    add[blocks(n, 128)](x, x, out, n, BLOCK=128)
    np.testing.assert_array_equal(out, (4 * x).astype(kind))


def test_grid_may_be_a_function_of_the_arguments():
    x = np.ones(300, np.float32)
    out = np.zeros_like(x)
    seen = {}

    def grid(meta):
        seen.update(meta)
        return (ditron.cdiv(meta["n"], meta["BLOCK"]),)

    add[grid](x, x, out, n=300, BLOCK=64)
    assert (out == 4).all() and seen["BLOCK"] == 64 and seen["n"] == 300


def test_views_are_taken_in_place():
    x = np.zeros((4, 100), np.float32)
    row = np.ones(100, np.float32)
    add[blocks(100, 128)](row, row, x[2], 100, BLOCK=128)
    assert (x[2] == 4).all() and (x[[0, 1, 3]] == 0).all()


@ditron.jit
def kinds(out, a, b, c, d, WHAT: tl.constexpr):
    tl.store(out + 0, a)
    tl.store(out + 1, b)
    tl.store(out + 2, c)
    tl.store(out + 3, d)
    tl.static_assert(WHAT[1] == "text")


@pytest.mark.parametrize("values", [(1, 2, 3, 4), (2**40, -1, True, 1.5), (2**63, 0, False, -2.25), (np.int32(7), np.float32(2), 16, 1)])
def test_scalars(values):
    out = np.zeros(4, np.float64)
    kinds[(1,)](out, *values, WHAT=(1, "text"))
    np.testing.assert_array_equal(out, np.array([float(value) for value in values]))


@ditron.jit
def call(out, x, F: tl.constexpr):
    tl.store(out, F(tl.load(x)))


@ditron.jit
def square(v):
    return v * v


def test_functions_are_compile_time_arguments():
    x, out = np.array([3.0], np.float32), np.zeros(1, np.float32)
    call[(1,)](out, x, square)
    assert out[0] == 9
    call[(1,)](out, x, F=scaled)
    assert out[0] == 9
    x[0] = 2
    call[(1,)](out, x, square)
    assert out[0] == 4


def test_closures_are_captured():
    def make(constant):
        constant = tl.constexpr(constant)

        @ditron.jit
        def kernel(out):
            tl.store(out, constant)

        return kernel

    out = np.zeros(1, np.int32)
    for value in (7, 8):
        make(value)[(1,)](out)
        assert out[0] == value


@ditron.jit
def tuples(out, pair, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(pair[0] + i) * pair[1])


def test_tuples():
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    tuples[(1,)](out, (x, 3), 8)
    np.testing.assert_array_equal(out, 3 * x)
    tuples[(1,)](out, (x, 1), 8)
    np.testing.assert_array_equal(out, x)


@ditron.jit
def copy_tile(source, target, M: tl.constexpr, N: tl.constexpr):
    target.store([0, 0], source.load([0, 0]) + 1)


def test_descriptors_of_the_host():
    x = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    y = np.zeros_like(x)
    copy_tile[(1,)](ditron.TensorDescriptor.from_tensor(x, [16, 32]), ditron.TensorDescriptor.from_tensor(y, [16, 32]), 16, 32)
    np.testing.assert_array_equal(y, x + 1)


def test_descriptors_as_gpus_get_them(monkeypatch):
    monkeypatch.setattr(ditron.CompiledKernel, "needs_tensor_maps", staticmethod(lambda device: True))
    test_descriptors_of_the_host()


def pretended_torch():
    """What the Dispatcher asks of PyTorch: tensors of the host."""

    class Tensor:
        device = types.SimpleNamespace(type="cpu", index=None)

        def __init__(self, array):
            self.array, self.dtype, self.itemsize = array, sys.intern(f"torch.{array.dtype}"), array.itemsize
            self.shape = array.shape

        def stride(self):
            return tuple(each // self.itemsize for each in self.array.strides)

        def get_device(self):
            return -1

        def data_ptr(self):
            return self.array.ctypes.data

        def untyped_storage(self):
            whole = self.array if self.array.base is None else self.array.base
            return types.SimpleNamespace(data_ptr=lambda: whole.ctypes.data, nbytes=lambda: whole.nbytes)

    return types.SimpleNamespace(Tensor=Tensor, nn=types.SimpleNamespace(Parameter=type("Parameter", (), {})), _C=None, int64="torch.int64",
                                 uint64="torch.uint64")


def test_descriptors_that_the_dispatcher_knows(monkeypatch):
    torch = pretended_torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    slow = []
    run_slowly = ditron.JITFunction.run_slowly
    monkeypatch.setattr(ditron.JITFunction, "run_slowly", lambda self, *call: (slow.append(call), run_slowly(self, *call))[1])

    @ditron.jit
    def copy_behind(source, target, row, M: tl.constexpr, N: tl.constexpr):
        target.store([row, 0], source.load([row, 0]) + 1)

    def launch(rows, columns, row, tile, padding="zero", lead=0):
        x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        room = np.zeros((rows, columns + lead), np.float32)
        y = room[:, :columns]
        source, target = [ditron.TensorDescriptor(torch.Tensor(a), list(a.shape), [s // 4 for s in a.strides], list(tile), padding) for a in (x, y)]
        copy_behind[(1,)](source, target, row, *tile)
        wanted = np.zeros_like(x)
        wanted[row:row + tile[0], :tile[1]] = x[row:row + tile[0], :tile[1]] + 1
        np.testing.assert_array_equal(y, wanted)
        assert not room[:, columns:].any()

    for _ in range(2):  # the first one tells the Dispatcher of PyTorch
        launch(48, 32, 2, (16, 32))
    assert len(slow) == 2
    # Other tensors, sizes, strides and places, for which the same variant serves.
    for rows, columns, row, lead in [(48, 32, 2, 0), (20, 32, 17, 0), (80, 48, 3, 0), (48, 32, 6, 16), (64, 16, 5, 48)]:
        launch(rows, columns, row, (16, 32), lead=lead)
    assert len(slow) == 2
    # Others: another tile, a size and a stride that are no multiple of 16, another padding.
    for n, changed in enumerate([dict(tile=(32, 32)), dict(columns=36), dict(lead=4), dict(padding="nan")], 3):
        launch(**{**dict(rows=48, columns=32, row=2, tile=(16, 32)), **changed})
        assert len(slow) == n


@ditron.jit
def product_by_descriptors(a_ptr, b_ptr, c_ptr, K, TILE: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, shape=[TILE, K], strides=[K, 1], block_shape=[TILE, TILE])
    b = tl.make_tensor_descriptor(b_ptr, shape=[TILE, K], strides=[K, 1], block_shape=[TILE, TILE])
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, TILE), warp_specialize=True):
        sums = tl.dot(a.load([0, k * TILE]), b.load([0, k * TILE]).T, sums)
    c = tl.make_tensor_descriptor(c_ptr, shape=[TILE, TILE], strides=[TILE, 1], block_shape=[TILE, TILE])
    c.store([0, 0], sums)


@ditron.jit
def product_of_descriptors(a, b, c, K, TILE: tl.constexpr):
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, TILE), warp_specialize=True):
        sums = tl.dot(a.load([0, k * TILE]), b.load([0, k * TILE]).T, sums)
    c.store([0, 0], sums)


def test_descriptors_that_become_tensor_maps():
    world = ditron.World(1, target="sim:sm_90a")
    values = np.random.default_rng(0).integers(-3, 4, (2, 64, 192)).astype(np.float16)
    a, b = values[0].copy(), values[1].copy()
    made, given = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    with world.on(0):
        assert "dgpu.tensor" in product_by_descriptors[(1,)](a, b, made, 192, 64).asm["ttgir"]
        described = [ditron.TensorDescriptor.from_tensor(x, [64, 64]) for x in (a, b, given)]
        product_of_descriptors[(1,)](*described, 192, 64)
    world.synchronize()
    wanted = a.astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_array_equal(made, wanted)
    np.testing.assert_array_equal(given, wanted)


@ditron.jit
def nothing(x):
    pass


def test_an_empty_grid_runs_nothing():
    nothing[(0,)](np.zeros(1))
    with pytest.raises(ditron.InvalidArgumentError, match="one to three dimensions"):
        nothing[(1, 1, 1, 1)](np.zeros(1))


def test_wrong_calls():
    x = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
        add[(1,)](x, x, x, BLOCK=4)
    with pytest.raises(KeyError, match="specified but unrecognised"):
        add[(1,)](x, x, x, 4, BLOCK=4, BLOKC=8)
    with pytest.raises(TypeError, match="multiple values for argument 'x'"):
        add[(1,)](x, x, x, 4, BLOCK=4, x=x)
    with pytest.raises(TypeError, match="kernels cannot take"):
        add[(1,)](object(), x, x, 4, BLOCK=4)
    with pytest.raises(RuntimeError, match="outside of the scope of a kernel"):
        add(x, x, x, 4, 4)


def test_warmup_compiles_and_tells():
    x = np.zeros(4, np.float32)
    compiled = add.warmup(x, x, x, 4, BLOCK=4, grid=(1,), num_warps=2)
    assert compiled.metadata.num_warps == 2 and compiled.name == "add"
    assert "tile.load" in compiled.asm["ttir"] and set(compiled.asm.keys()) >= {"ttir", "ttgir", "llir"}
    assert compiled.n_spills == 0


@ditron.autotune(configs=[ditron.Config({"BLOCK": 32}, num_warps=1), ditron.Config({"BLOCK": 64})], key=["n"])
@ditron.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
@ditron.jit
def tuned(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, BLOCK + EVEN, mask=i < n)


@pytest.mark.parametrize("n, even", [(64, 1), (65, 0)])
def test_configurations_and_heuristics(n, even):
    x = np.zeros(n, np.int32)
    tuned[lambda meta: (ditron.cdiv(n, meta["BLOCK"]),)](x, n)
    assert (x == 32 + even).all() and tuned.best_config.num_warps == 1
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
        tuned[(1,)](x, n, BLOCK=16)


def test_arrays_are_tuned_on_the_simulator_beside_a_gpu(monkeypatch):
    monkeypatch.setattr(ditron._device, "current_index", lambda: 0)
    x = np.zeros(17, np.int32)
    tuned[(1,)](x, 17)
    assert (x == 32).all()


@ditron.jit
def staged(x, num_stages: tl.constexpr):
    tl.store(x, num_stages)


def test_a_parameter_may_have_the_name_of_an_option():
    x = np.zeros(1, np.int32)
    compiled = staged[(1,)](x, num_stages=2)
    assert x[0] == 2 and compiled.metadata.num_stages == 2


def test_read_only_arrays_are_refused():
    x = np.zeros(16, np.float32)
    x.flags.writeable = False
    with pytest.raises(TypeError, match="read-only"):
        add[(1,)](x, x, np.zeros(16, np.float32), 16, BLOCK=16)


def test_every_thread_has_a_simulated_gpu():
    results = {}

    def work(number):
        x = np.full(100, number, np.float32)
        out = np.zeros_like(x)
        add[(1,)](x, x, out, 100, BLOCK=128)
        results[number] = out.tolist()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work(5)
    one = results[1][0]
    assert one > 1 and results == {number: [one * number] * 100 for number in range(1, 6)}


def test_the_simulated_gpu_of_a_thread_goes_with_it():
    context = []

    def work():
        x = np.zeros(4, np.int32)
        compiled = staged[(1,)](x, num_stages=3)
        context.append(weakref.ref(ditron._device.device().context))
        context.append(compiled)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    assert context[0]() is None and context[1] not in staged.variants.values()
    x = np.zeros(4, np.int32)
    context[1][(1,)](x, 3)  # compiled again for this thread
    assert x[0] == 3
    with pytest.raises(ditron.NotFoundError, match="is gone"):
        context[1].asm["llir"]


def test_kernels_are_copied_and_pickled_as_functions_are():
    assert copy.deepcopy({"kernel": staged})["kernel"] is staged and copy.copy(staged) is staged
    assert pickle.loads(pickle.dumps(staged)) is staged
    copied = copy.deepcopy(tuned)
    x = np.zeros(4, np.int32)
    copied[(1,)](x, 4)
    assert (x == 32).all()


def test_calls_that_the_extension_does_not_have():
    context = ditron._device.device().context
    with pytest.raises(ValueError, match=r"context_call\('sychronize'\): there are synchronize"):
        ditron._native.context_call("sychronize", context.handle)
