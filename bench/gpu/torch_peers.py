"""What PyTorch takes for the shapes of bench/gpu/run: softmax, RMSNorm, attention. Medians over rounds of device time.

usage: torch_peers.py '{"softmax": ["65536x4096"], ...}' OUT.json DTYPE ROUNDS
"""
import json
import statistics
import sys

import torch

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


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


def main():
    shapes, path, dtype, rounds = json.loads(sys.argv[1]), sys.argv[2], DTYPES[sys.argv[3]], int(sys.argv[4])
    result = {"version": torch.__version__}
    with torch.no_grad():
        for part, texts in shapes.items():
            result[part] = []
            for text in texts:
                sizes = [int(size) for size in text.split("x")]
                if part == "attention":
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
