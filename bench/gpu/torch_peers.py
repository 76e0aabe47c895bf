"""What PyTorch takes for the shapes of bench/gpu/run: softmax, RMSNorm, attention, and the product of 8-bit operands (torch._scaled_mm,
torch._int_mm). Medians over rounds of device time.

usage: torch_peers.py '{"softmax": ["65536x4096"], ...}' OUT.json DTYPE ROUNDS [none|tensor|vector [fast]]

The last words are the scales of fp8, and whether its sums may stay in the tensor cores. What PyTorch does not support is reported as
"error" of its shape.
"""
import itertools
import json
import statistics
import sys

import torch

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp8e4nv": torch.float8_e4m3fn,
          "fp8e5": torch.float8_e5m2, "i8": torch.int8}


def microseconds(call, rounds):
    """The median over rounds of about 20 ms each, after a warm-up."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def timed(count):
        begin.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1000 / count

    timed(2)
    count = int(min(max(20000 / timed(3), 3), 2000))
    return statistics.median(timed(count) for _ in range(rounds))


def normal(dtype, *shape):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def narrow(dtype, *shape):
    """Normally distributed; int8 with a deviation of 40."""
    values = torch.randn(*shape, device="cuda")
    if dtype == torch.int8:
        values = (40 * values).round_().clamp_(-127, 127)
    return values.to(dtype)


def narrow_product(dtype, sizes, scales, fast):
    """A call of C [M, N] = A [M, K] * B, B in memory as [N, K]. Operands take turns among as many sets as make 256 MB, as those of
    `ditron bench gemm` do."""
    m, n, k = sizes
    result_bytes = 4 if dtype == torch.int8 else 2
    count = min(max(-(-(256 << 20) // ((m + n) * k + m * n * result_bytes)), 1), 8)
    sets = itertools.cycle([(narrow(dtype, m, k), narrow(dtype, n, k).t()) for _ in range(count)])
    if dtype == torch.int8:
        return lambda: torch._int_mm(*next(sets))
    if scales == "vector":
        scale_a, scale_b = torch.rand(m, 1, device="cuda") + 0.5, torch.rand(1, n, device="cuda") + 0.5
    else:
        value = 0.7 if scales == "tensor" else 1.0
        scale_a, scale_b = (torch.tensor(value, device="cuda") for _ in range(2))

    def call():
        a, b = next(sets)
        return torch._scaled_mm(a, b, scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast)
    return call


def main():
    shapes, path, dtype, rounds = json.loads(sys.argv[1]), sys.argv[2], DTYPES[sys.argv[3]], int(sys.argv[4])
    scales, fast = sys.argv[5] if len(sys.argv) > 5 else "none", "fast" in sys.argv[6:]
    result = {"version": torch.__version__}
    with torch.no_grad():
        for part, texts in shapes.items():
            result[part] = []
            for text in texts:
                sizes = [int(size) for size in text.split("x")]
                if part == "gemm":
                    call = narrow_product(dtype, sizes, scales, fast)
                    try:
                        call()
                        torch.cuda.synchronize()
                    except RuntimeError as error:
                        result[part].append({"shape": text, "error": str(error).strip().splitlines()[0]})
                        print(part, text, result[part][-1]["error"], flush=True)
                        continue
                elif part == "attention":
                    batch, heads, kv_heads, sequence, head_dim = sizes
                    q = normal(dtype, batch, heads, sequence, head_dim)
                    k, v = (normal(dtype, batch, kv_heads, sequence, head_dim) for _ in range(2))

                    def call():
                        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                                                enable_gqa=heads != kv_heads)
                else:
                    x, weight = normal(dtype, *sizes), normal(dtype, sizes[1])
                    if part == "softmax":
                        def call():
                            return torch.softmax(x, dim=1)
                    else:
                        def call():
                            return torch.nn.functional.rms_norm(x, (sizes[1],), weight, 1e-6)
                result[part].append({"shape": text, "microseconds": microseconds(call, rounds)})
                print(part, text, round(result[part][-1]["microseconds"], 1), "us", flush=True)
                # Operands of one shape must not stay while the next are made.
                x = weight = q = k = v = call = None
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
