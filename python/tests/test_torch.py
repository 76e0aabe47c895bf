"""ditron.torch: operators with gradients on simulated ranks, torch.compile, CUDA graphs, process groups, and the example that trains."""
import gc
import pathlib
import subprocess
import sys
import weakref

import pytest
from conftest import HAS_TORCH, environment, needs_gpus, needs_no_gpu, needs_torch

import ditron

if HAS_TORCH:
    import torch

    import ditron.torch

pytestmark = needs_torch
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "tensor_parallel_mlp.py"
LIMITS = {"float32": 3e-3, "bfloat16": 3e-2, "float16": 4e-3}


def run(*arguments, **options):
    result = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=600, env=environment(), **options)
    return result.returncode, result.stdout + result.stderr


def torchrun(*arguments, ranks=2):
    return run("-m", "torch.distributed.run", "--nproc_per_node", ranks, *arguments)


def close(found, expected):
    limit = LIMITS[str(found.dtype).removeprefix("torch.")]
    torch.testing.assert_close(found.float(), expected.float(), rtol=0, atol=limit * expected.abs().max().item())


def mlp(world, x, up, down, transposed=True):
    hidden = ditron.torch.ag_gemm(x, up, world, transposed)
    return ditron.torch.gemm_rs(torch.tanh(hidden), down, world, transposed)


def check_mlp(world, forward, dtype, transposed=True, m=64, d=32, h=48):
    """The rank's part of the result and of all gradients is that of the same MLP on one rank."""
    numbers = torch.Generator().manual_seed(1)
    ranks, rank = world.ranks, world.rank
    x, up, down = torch.randn(m, d, generator=numbers), torch.randn(h * ranks, d, generator=numbers) / 6, torch.randn(d, h * ranks, generator=numbers) / 14
    x, up, down = (each.to(dtype).to("cuda" if world.is_gpu else "cpu") for each in (x, up, down))
    parts = [x.chunk(ranks)[rank], up.chunk(ranks)[rank], down.chunk(ranks, 1)[rank]]
    parts = [each.clone().requires_grad_() for each in parts]
    own = parts if transposed else [parts[0], parts[1].t(), parts[2].t()]
    out = forward(world, *own, transposed)
    out.square().sum().backward()

    whole = [each.float().requires_grad_() for each in (x, up, down)]
    expected = torch.tanh(whole[0] @ whole[1].T) @ whole[2].T
    expected.square().sum().backward()
    close(out, expected.chunk(ranks)[rank])
    for part, all_of_it, dimension in zip(parts, whole, (0, 0, 1)):
        close(part.grad, all_of_it.grad.chunk(ranks, dimension)[rank])


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("dtype", LIMITS)
def test_gradients(dtype, transposed):
    ditron.World(4, target="sim").run(check_mlp, mlp, getattr(torch, dtype), transposed)


def check_all_reduce(world, transposed, m):
    numbers = torch.Generator().manual_seed(2)
    ranks, rank = world.ranks, world.rank
    x, weight = torch.randn(m, 16 * ranks, generator=numbers), torch.randn(24, 16 * ranks, generator=numbers) / 8
    own = [x.chunk(ranks, 1)[rank].clone().requires_grad_(), weight.chunk(ranks, 1)[rank].clone().requires_grad_()]
    out = ditron.torch.gemm_ar(own[0], own[1] if transposed else own[1].t(), world, transposed)
    out.square().sum().backward()
    whole = [x.requires_grad_(), weight.requires_grad_()]
    expected = whole[0] @ whole[1].T
    expected.square().sum().backward()
    close(out, expected)
    for part, all_of_it in zip(own, whole):
        close(part.grad, all_of_it.grad.chunk(ranks, 1)[rank])
    return out.detach()


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("m", [3, 140])
def test_all_reduce(m, transposed):
    results = ditron.World(3, target="sim").run(check_all_reduce, transposed, m)
    assert all(torch.equal(each, results[0]) for each in results)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("size", [5, 3000, 30000])
def test_collectives(size, dtype):
    def program(world):
        x = ((torch.arange(world.ranks * size) * 7 + world.rank) % 13).to(getattr(torch, dtype)).reshape(world.ranks, size)
        results = [(ditron.torch.all_reduce(x, world), ditron.torch.all_reduce(x, world, "max"), ditron.torch.reduce_scatter(x, world),
                    ditron.torch.all_to_all(x, world)) for _ in range(2)]
        assert all(torch.equal(*pair) for pair in zip(*results))
        return x, *results[0]

    results = ditron.World(3, target="sim").run(program)
    xs = torch.stack([each[0] for each in results])
    for rank, (_, total, most, part, exchanged) in enumerate(results):
        assert torch.equal(total, xs.sum(0, dtype=xs.dtype)) and torch.equal(most, xs.amax(0))
        assert torch.equal(part, total[rank:rank + 1]) and torch.equal(exchanged, xs[:, rank])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_all_to_all_v(dtype):
    ranks, most, width = 3, 50, 6
    generator = torch.Generator().manual_seed(3)
    counts = torch.randint(0, most + 1, (2, ranks, ranks), generator=generator) * torch.randint(0, 2, (2, ranks, ranks), generator=generator)
    given = torch.randint(0, 200, (2, ranks, ranks * most, width), generator=generator).to(getattr(torch, dtype))

    def program(world):
        results = [ditron.torch.all_to_all_v(given[call, world.rank], counts[call, world.rank], world, most, ranks * most) for call in range(2)]
        ditron.torch.check_transfers(world)
        return results

    for rank, results in enumerate(ditron.World(ranks, target="sim").run(program)):
        for call, (out, received) in enumerate(results):
            ends = counts[call].cumsum(1)
            wanted = torch.cat([given[call, peer, ends[peer, rank] - counts[call, peer, rank]:ends[peer, rank]] for peer in range(ranks)])
            assert torch.equal(received, counts[call, :, rank])
            assert torch.equal(out[:len(wanted)], wanted) and not out[len(wanted):].any()


def check_gradient_of_all_to_all_v(world):
    counts = torch.tensor([2, 0, 3])
    x = torch.arange(24.0).reshape(8, 3).requires_grad_()
    out, received = ditron.torch.all_to_all_v(x, counts, world, 4, 12)
    assert received.tolist() == [counts[world.rank]] * 3
    (out * (world.rank + 1)).sum().backward()
    close(x.grad, torch.tensor([1.0, 1, 3, 3, 3, 0, 0, 0])[:, None].expand(8, 3))
    ditron.torch.all_to_all_v(x, torch.tensor([0, 5, 0]), world, 4, 12)
    with pytest.raises(ditron.InvalidArgumentError, match="5; 0 to 4 rows are accepted"):
        ditron.torch.check_transfers(world)
    with pytest.raises(Exception, match=r"send_counts is torch.int32 \[3\]; int64 \[3\] is accepted"):
        ditron.torch.all_to_all_v(x, counts.int(), world, 4, 12)


def test_gradient_of_all_to_all_v():
    ditron.World(3, target="sim").run(check_gradient_of_all_to_all_v)


def check_gradients_of_collectives(world):
    x = (torch.arange(12.0).reshape(6, 2) + world.rank).requires_grad_()
    weight = torch.arange(12.0).reshape(6, 2) + 1
    (ditron.torch.all_reduce(x, world, "average") * weight).sum().backward()
    close(x.grad, weight / world.ranks)
    x.grad = None
    (ditron.torch.reduce_scatter(x, world) * (world.rank + 1)).sum().backward()
    close(x.grad, torch.arange(1.0, world.ranks + 1).repeat_interleave(6 // world.ranks)[:, None].expand(6, 2))
    x.grad = None
    (ditron.torch.all_to_all(x, world) * (world.rank + 1)).sum().backward()
    close(x.grad, torch.arange(1.0, world.ranks + 1).repeat_interleave(6 // world.ranks)[:, None].expand(6, 2))
    with pytest.raises(ditron.InvalidArgumentError, match="op 'max' has no gradient"):
        ditron.torch.all_reduce(x, world, "max").sum().backward()
    for call, words in [(lambda: ditron.torch.all_reduce(x, world, "add"), "op 'add'; accepted are sum, max, min, average"),
                        (lambda: ditron.torch.all_reduce(x > 0, world), "convert them to uint8"),
                        (lambda: ditron.torch.all_to_all(x[0, 0], world), "x is a scalar")]:
        with pytest.raises(ditron.InvalidArgumentError, match=words):
            call()
    with pytest.raises(Exception, match="x has 5 rows, which 3 ranks cannot share equally"):
        ditron.torch.reduce_scatter(x[:5], world)


def test_gradients_of_collectives():
    ditron.World(3, target="sim").run(check_gradients_of_collectives)


def test_collectives_compiled_without_graph_breaks():
    torch._dynamo.reset()

    def summed(x, world):
        return ditron.torch.all_to_all(ditron.torch.all_reduce(2 * x, world), world) + 1

    compiled = torch.compile(summed, fullgraph=True, backend="aot_eager")
    results = ditron.World(2, target="sim").run(lambda world: compiled(torch.arange(4.0), world))
    assert [each.tolist() for each in results] == [[1, 5, 1, 5], [9, 13, 9, 13]]


def test_a_world_goes_with_its_operators():
    world = ditron.World(2, target="sim")
    world.run(lambda world: ditron.torch.all_gather(ditron.torch.ag_gemm(torch.ones(8, 16), torch.ones(16, 16), world), world))
    context = weakref.ref(world.context)
    gc.disable()
    del world
    gc.enable()
    assert context() is None


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_without_graph_breaks(backend):
    torch._dynamo.reset()
    ditron.World(2, target="sim").run(check_mlp, torch.compile(mlp, fullgraph=True, backend=backend), torch.float32)


def test_compiled_for_any_number_of_rows():
    torch._dynamo.reset()
    world = ditron.World(2, target="sim")
    compiled = torch.compile(mlp, fullgraph=True, backend="aot_eager", dynamic=True)
    for m in (64, 32, 16):
        world.run(lambda world: check_mlp(world, compiled, torch.float32, m=m))


def check_operators(world):
    x, weight = torch.randn(32, 48, requires_grad=True), torch.randn(16, 48, requires_grad=True)
    torch.library.opcheck(torch.ops.ditron.ag_gemm.default, (x, weight, world.name, True))
    torch.library.opcheck(torch.ops.ditron.gemm_rs.default, (x, weight.t(), world.name, False))
    torch.library.opcheck(torch.ops.ditron.gemm_ar.default, (x, weight, world.name, True))
    torch.library.opcheck(torch.ops.ditron.all_gather.default, (x.detach(), world.name))
    torch.library.opcheck(torch.ops.ditron.all_reduce.default, (x, world.name, "sum"))
    torch.library.opcheck(torch.ops.ditron.reduce_scatter.default, (x, world.name, "average"))
    torch.library.opcheck(torch.ops.ditron.all_to_all.default, (x, world.name))
    q = torch.randn(1, 2, 17, 16, dtype=torch.float16, requires_grad=True)
    torch.library.opcheck(torch.ops.ditron.attention.default, (q, q[:, :1].detach(), q[:, :1].detach(), world.name, True, None, 5, None, False),
                          rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("ranks", [1, 2])
def test_operators_are_registered_as_pytorch_wants(ranks):
    ditron.World(ranks, target="sim").run(check_operators)


def check_attention(world, dtype, rows_first, compiled):
    """Heads of each rank against PyTorch's own in fp32, with gradients."""
    numbers = torch.Generator().manual_seed(world.rank)
    given = [torch.randn(2, heads, rows, 32, generator=numbers).to(dtype) for heads, rows in ((4, 40), (2, 50), (2, 50), (4, 40))]
    q, k, v = (each.clone().requires_grad_() for each in given[:3])
    turn = (lambda each: each.transpose(1, 2)) if rows_first else (lambda each: each)
    attend = lambda q, k, v: ditron.torch.attention(q, k, v, world, causal=True, rows_first=rows_first, soft_cap=5.0)
    attend = torch.compile(attend, fullgraph=True, backend="aot_eager") if compiled else attend
    out = turn(attend(turn(q), turn(k), turn(v)))
    out.backward(given[3])
    whole = [each.float().requires_grad_() for each in given[:3]]
    scores = whole[0] @ whole[1].repeat_interleave(2, 1).transpose(2, 3) / 32 ** 0.5
    hidden = torch.ones(40, 50).triu(11).bool()
    expected = torch.softmax((5 * torch.tanh(scores / 5)).masked_fill(hidden, -torch.inf), -1) @ whole[2].repeat_interleave(2, 1)
    expected.backward(given[3].float())
    close(out, expected)
    for each, of_it in zip((q, k, v), whole):
        close(each.grad, of_it.grad)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("rows_first, compiled", [(False, False), (True, False), (True, True)])
def test_attention(dtype, rows_first, compiled):
    ditron.World(2, target="sim").run(check_attention, getattr(torch, dtype), rows_first, compiled)


def check_ring_of_packed_sequences(world):
    """Other numbers of sequences and tokens share an operator."""
    numbers = torch.Generator().manual_seed(3)
    for tokens, ends in ((30, [0, 4, 4, 30]), (19, [0, 10, 15, 16, 17]), (30, [0, 1, 2, 30])):
        given = [torch.randn(1, 2, tokens, 16, generator=numbers).half() for _ in range(3)]
        own = [index for first, count in ditron.RingAttention.sections_of(world.ranks, world.rank, tokens, True) for index in range(first, first + count)]
        found = ditron.torch.ring_attention(*(each[:, :, own] for each in given), world, tokens, causal=True, offsets=torch.tensor(ends, dtype=torch.int32))
        expected = torch.zeros(given[0].shape)
        for begin, end in zip(ends, ends[1:]):
            part = [each[:, :, begin:end].float() for each in given]
            expected[:, :, begin:end] = torch.nn.functional.scaled_dot_product_attention(*part, is_causal=True) if end > begin else 0
        real = torch.tensor(own) < ends[-1]
        close(found[:, :, real], expected[:, :, own][:, :, real])
    assert len([key for key in world.collectives if key[0] is ditron.RingAttention]) == 1
    for offsets in (torch.zeros(1, 3, dtype=torch.int32), torch.zeros(1, dtype=torch.int32), torch.zeros(3, dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="sequences . 1. of 1 sequence and more is accepted"):
            ditron.torch.ring_attention(*given, world, 30, offsets=offsets)


def test_ring_of_packed_sequences():
    ditron.World(2, target="sim").run(check_ring_of_packed_sequences)


@pytest.mark.parametrize("m, n, k", [(8, 1, 40), (8, 16, 1), (1, 1, 24)])
def test_strides_of_single_columns(m, n, k):
    """PyTorch gives them any, and calls them contiguous."""
    def program(world):
        x, weight = torch.ones(k, m).t(), torch.ones(n, k).t()
        return ditron.torch.gemm_ar(x, weight, world, weight_transposed=False), ditron.torch.gemm_ar(x, weight.t(), world)

    for results in ditron.World(2, target="sim").run(program):
        assert all(each.shape == (m, n) and (each == 2 * k).all() for each in results)


def test_ranks_without_rows():
    """Of which PyTorch's tensors are at no address."""
    ranks = 4
    with ditron.World(ranks, target="sim") as world:
        ones = lambda *shape: torch.ones(shape, dtype=torch.float16)
        out = [ones(rows, 16) for rows in (1, 1, 0, 0)]
        scatter = ditron.GemmReduceScatter(world, 64, 16, 64, torch.float16)
        scatter([ones(2, 16) for _ in range(ranks)], [ones(16, 16) for _ in range(ranks)], out, 2)
        gathered = [ones(2, 16) for _ in range(ranks)]
        gather = ditron.AllGatherGemm(world, 64, 64, 16, torch.float16)
        gather([ones(rows, 16) for rows in (1, 1, 0, 0)], [ones(16, 16) for _ in range(ranks)], gathered, 2)
        world.synchronize()
        assert (out[0] == 64).all() and (out[1] == 64).all() and all((each == 16).all() for each in gathered)


def check_ring_attention(world, dtype, causal, compiled):
    """Tokens dealt out to the ranks, with gradients, against PyTorch's own of all of them in fp32."""
    tokens = 21
    numbers = torch.Generator().manual_seed(3)
    given = [torch.randn(2, heads, tokens, 32, generator=numbers).to(dtype) for heads in (4, 2, 2, 4)]
    own = [index for first, count in ditron.RingAttention.sections_of(world.ranks, world.rank, tokens, causal) for index in range(first, first + count)]
    q, k, v = (each[:, :, own].clone().requires_grad_() for each in given[:3])
    attend = lambda q, k, v: ditron.torch.ring_attention(q, k, v, world, tokens, causal=causal)
    attend = torch.compile(attend, fullgraph=True, backend="aot_eager") if compiled else attend
    for _ in range(2):
        for each in (q, k, v):
            each.grad = None
        out = attend(q, k, v)
        out.backward(given[3][:, :, own])
    with torch.no_grad():
        assert torch.equal(attend(q, k, v), out)
    whole = [each.float().requires_grad_() for each in given[:3]]
    scores = whole[0] @ whole[1].repeat_interleave(2, 1).transpose(2, 3) / 32 ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -torch.inf)
    expected = torch.softmax(scores, -1) @ whole[2].repeat_interleave(2, 1)
    expected.backward(given[3].float())
    close(out, expected[:, :, own])
    for each, of_it in zip((q, k, v), whole):
        close(each.grad, of_it.grad[:, :, own])
    with pytest.raises(ditron.InvalidArgumentError, match=r"q has \d+ tokens; rank \d has \d+ of 30"):
        ditron.torch.ring_attention(q, k, v, world, 30, causal=causal)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("ranks, causal, compiled", [(2, True, False), (3, False, False), (2, True, True)])
def test_ring_attention(dtype, ranks, causal, compiled):
    ditron.World(ranks, target="sim").run(check_ring_attention, getattr(torch, dtype), causal, compiled)


@pytest.mark.parametrize("compiled", [False, True])
def test_all_reduce_rms_norm(compiled):
    def program(world):
        x = torch.randn(2, 9, 40, generator=torch.Generator().manual_seed(world.rank)).bfloat16()
        residual, weight = (torch.randn(*shape, generator=torch.Generator().manual_seed(7)).bfloat16() for shape in ((2, 9, 40), (40,)))
        norm = lambda x, residual: ditron.torch.all_reduce_rms_norm(x, residual, weight, world, 1e-5)
        norm = torch.compile(norm, fullgraph=True, backend="aot_eager") if compiled else norm
        results = norm(x, residual)
        assert all(torch.equal(*pair) for pair in zip(results, norm(x, residual)))
        with pytest.raises(RuntimeError, match=r"weight \[39\]; \[..., columns\] of x"):
            ditron.torch.all_reduce_rms_norm(x, residual, weight[:39], world)
        with pytest.raises(RuntimeError, match="epsilon is nan; positive"):
            ditron.torch.all_reduce_rms_norm(x, residual, weight, world, float("nan"))
        assert ditron.torch.all_reduce_rms_norm(x[:0], residual[:0], weight, world)[0].shape == (0, 9, 40)
        return x, residual, weight, *results

    results = ditron.World(3, target="sim").run(program)
    total = sum(x.float() for x, *_ in results).bfloat16()
    _, residual, weight, *_ = results[0]
    sums = total + residual
    wide = sums.float()
    expected = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5) * weight.float()
    for *_, out, residual_out in results:
        assert torch.equal(residual_out, sums)
        close(out, expected)


def test_complex_numbers_are_moved():
    def program(world):
        x = torch.complex(torch.arange(6.0) + world.rank, torch.arange(6.0)).reshape(2, 3)
        return x, ditron.torch.all_gather(x.conj(), world), ditron.torch.all_to_all(x, world)

    results = ditron.World(2, target="sim").run(program)
    for rank, (_, gathered, exchanged) in enumerate(results):
        assert torch.equal(gathered, torch.cat([x.conj().resolve_conj() for x, *_ in results]))
        assert torch.equal(exchanged, torch.stack([x[rank] for x, *_ in results]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8", "bool", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(3, 5), (1,), (0, 4), (9000,)])
def test_all_gather(dtype, shape):
    def program(world):
        x = (torch.arange(torch.Size(shape).numel()) % 7 + world.rank).reshape(shape).to(getattr(torch, dtype))
        return x, ditron.torch.all_gather(x, world), ditron.torch.all_gather(x, world)

    results = ditron.World(3, target="sim").run(program)
    expected = torch.cat([x.view(torch.uint8) for x, _, _ in results])
    assert all(torch.equal(each.view(torch.uint8), expected) for _, *gathered in results for each in gathered)


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn", "bfloat16"])
def test_scales_bias_and_activation(dtype):
    dtype = getattr(torch, dtype)
    ranks, m, n, k = 2, 24, 32, 48
    numbers = torch.Generator().manual_seed(3)
    wide = torch.randn(m, k, generator=numbers), torch.randn(ranks * n, k, generator=numbers)
    narrow = [(each * (30 if dtype is torch.int8 else 1)).round().clamp(-127, 127).to(dtype) if dtype is torch.int8 else each.to(dtype) for each in wide]
    scales = torch.rand(m, generator=numbers) / 30, torch.rand(ranks * n, generator=numbers) / 30
    bias = torch.randn(n, generator=numbers)

    def program(world):
        # Rows of x lie further apart than they are long.
        x = torch.zeros(m // ranks, 64, dtype=dtype)[:, :k]
        x.view(torch.uint8).copy_(narrow[0].chunk(ranks)[world.rank].view(torch.uint8)) if dtype.itemsize == 1 else x.copy_(narrow[0].chunk(ranks)[world.rank])
        weight, own = narrow[1].chunk(ranks)[world.rank], scales[0].chunk(ranks)[world.rank]
        columns = scales[1].chunk(ranks)[world.rank]
        swiglu = ditron.torch.ag_gemm(x, weight, world, scales_x=own, scales_weight=columns, bias=bias, activation="swiglu", out_dtype=torch.float32)
        whole = narrow[0].contiguous()
        reduced = ditron.torch.gemm_ar(whole, narrow[1][:n], world, scales_x=scales[0], scales_weight=columns[:1], bias=bias, out_dtype=torch.float32)
        scattered = ditron.torch.gemm_rs(whole, narrow[1][:n], world, scales_x=scales[0], bias=bias)
        assert scattered.dtype == torch.bfloat16
        return swiglu, reduced, scattered

    results = ditron.World(ranks, target="sim").run(program)
    a, b = narrow[0].double(), narrow[1].double()
    for rank, (swiglu, reduced, scattered) in enumerate(results):
        columns = scales[1].chunk(ranks)[rank].double()
        value = a @ b.chunk(ranks)[rank].T * scales[0].double()[:, None] * columns + bias
        torch.testing.assert_close(swiglu.double(), torch.nn.functional.silu(value[:, ::2]) * value[:, 1::2], rtol=2e-3, atol=2e-3)
        ones = [scales[1].chunk(ranks)[each][0].double() for each in range(ranks)]
        product = a @ b[:n].T * scales[0].double()[:, None]
        torch.testing.assert_close(reduced.double(), product * sum(ones) + bias, rtol=2e-3, atol=2e-3)
        expected = (product * ranks + bias).chunk(ranks)[rank]
        torch.testing.assert_close(scattered.double(), expected, rtol=0, atol=2e-2 * expected.abs().max().item())


def test_an_epilogue_has_no_gradient():
    def program(world):
        x, weight = torch.randn(16, 32, requires_grad=True), torch.randn(16, 32)
        ditron.torch.ag_gemm(x, weight, world, activation="relu").sum().backward()

    with pytest.raises(ditron.InvalidArgumentError, match="has no gradient"):
        ditron.World(1, target="sim").run(program)


def test_wrong_tensors():
    world = ditron.World(2, target="sim")
    x, weight = torch.zeros(5, 8), torch.zeros(4, 8)
    with pytest.raises(RuntimeError, match="x has 8 columns, weight takes 4"):
        ditron.torch.ag_gemm(x, weight.t(), world)
    with pytest.raises(RuntimeError, match="x is torch.float32 and weight torch.float16"):
        ditron.torch.ag_gemm(x, weight.half(), world)
    with pytest.raises(RuntimeError, match="5 rows, which 2 ranks cannot share equally"):
        ditron.torch.gemm_rs(x, weight, world)
    with pytest.raises(RuntimeError, match="x has 1 dimensions and weight 2"):
        ditron.torch.ag_gemm(x[0], weight, world)
    with pytest.raises(ditron.InvalidArgumentError, match="known in a function that world.run starts"):
        ditron.torch.ag_gemm(x, weight, world)
    with pytest.raises(ditron.UnsupportedError, match="fp64; bf16, fp16, fp32, fp8e4nv, fp8e5 and i8 are accepted"):
        ditron.World(1, target="sim").run(lambda world: ditron.torch.ag_gemm(x.double(), weight.double(), world))
    with pytest.raises(ditron.InvalidArgumentError, match="the world 'nowhere' is gone"):
        torch.ops.ditron.ag_gemm(x, weight, "nowhere", True)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "int64", "bool", "float8_e4m3fn", "float8_e5m2"])
def test_symmetric_tensors(dtype):
    dtype = getattr(torch, dtype)
    world = ditron.World(2, target="sim")
    tensor = world.symmetric((3, 4), dtype)
    for rank in world.local_ranks:
        assert tensor[rank].dtype == dtype and tensor[rank].shape == (3, 4) and not tensor[rank].view(torch.uint8).any()
        tensor[rank].copy_(torch.full((3, 4), rank + 1).to(dtype))
    assert (tensor[0].float() == 1).all() and (tensor[1].float() == (1 if dtype == torch.bool else 2)).all()
    assert world.symmetric((0, 4), dtype)[1].shape == (0, 4)


@needs_no_gpu
def test_the_example_trains_on_simulated_ranks():
    code, text = run(EXAMPLE, "--steps", 11)
    assert code == 0 and "4 ranks of sim" in text and "step 10" in text, text


@needs_gpus(2)
@pytest.mark.parametrize("options", [[], ["--compile", "inductor"]])
def test_the_example_trains_on_gpus(options):
    for start in (run, torchrun):
        code, text = start(EXAMPLE, *options)
        assert code == 0 and "2 ranks of cuda" in text, text


GROUP = """
import os
import sys
import torch
import torch.distributed as distributed
import ditron.torch

if torch.cuda.is_available():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
try:
    ditron.World.from_process_group()
except ditron.InvalidArgumentError as error:
    assert "call init_process_group first" in str(error)
distributed.init_process_group("gloo")
try:
    world = ditron.World.from_process_group()
except ditron.Error as error:
    sys.exit(str(error))
x = torch.full((2, 4), float(distributed.get_rank()), device="cuda")
assert world.rank == distributed.get_rank() and world.ranks == 2
assert ditron.torch.all_gather(x, world).tolist() == [[0.0] * 4] * 2 + [[1.0] * 4] * 2
"""


@needs_no_gpu
def test_processes_cannot_share_simulated_ranks(tmp_path):
    (tmp_path / "program.py").write_text(GROUP, encoding="utf-8")
    code, text = torchrun(tmp_path / "program.py")
    assert code and "the processes of ranks [0, 1] have no GPU" in text and "ditron.World(2).run(function)" in text, text


@needs_gpus(2)
def test_a_world_from_a_process_group(tmp_path):
    (tmp_path / "program.py").write_text(GROUP, encoding="utf-8")
    code, text = torchrun(tmp_path / "program.py")
    assert code == 0, text


def captured(world):
    """A captured step, replayed, is the step."""
    torch.manual_seed(world.rank)
    x, up, down = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((64, 128), (256, 128), (128, 256)))

    def step():
        return mlp(world, x, up, down), ditron.torch.all_gather(x, world)

    step()
    world.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, gathered = step()
    for scale in (1, 2, 0.5):
        x.mul_(scale)
        graph.replay()
        expected = step()
        torch.cuda.synchronize()
        assert torch.equal(out, expected[0]) and torch.equal(gathered, expected[1])


def compiled_into_graphs(world):
    """What torch.compile captures and replays itself is the step."""
    torch.manual_seed(world.rank)
    x, up, down = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((64, 128), (256, 128), (128, 256)))
    compiled = torch.compile(mlp, fullgraph=True, mode="reduce-overhead")
    for scale in (1, 2, 0.5, 1):  # run, captured, replayed
        x.mul_(scale)
        torch.compiler.cudagraph_mark_step_begin()
        close(compiled(world, x, up, down), mlp(world, x, up, down))


@needs_gpus(1)
@pytest.mark.parametrize("program", ["captured", "compiled_into_graphs"])
def test_cuda_graphs(program):
    ditron.World(1, target="cuda").run(globals()[program])


@needs_gpus(1)
def test_a_capture_of_what_was_never_called():
    world, x = ditron.World(1, target="cuda"), torch.zeros(8, device="cuda")
    with pytest.raises(ditron.InvalidArgumentError, match="captured before it was ever called"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        ditron.torch.all_gather(x, world)


@needs_gpus(2)
@pytest.mark.parametrize("program", ["captured", "compiled_into_graphs"])
def test_cuda_graphs_of_two_processes(tmp_path, program):
    (tmp_path / "program.py").write_text(f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import ditron
from test_torch import {program}

ditron.World(from_environment=True).run({program})
""", encoding="utf-8")
    code, text = torchrun(tmp_path / "program.py")
    assert code == 0, text


@needs_gpus(2)
def test_gradients_on_gpus():
    ditron.World(2, target="cuda").run(check_mlp, mlp, torch.bfloat16)
