"""Compiles kernels for one architecture and has ptxas assemble each: usage assemble.py DITRON PTXAS ARCH KERNELS_FOLDER.

Prints one line per kernel: name, registers, bytes of spills. Fails when a kernel does not compile or ptxas refuses it, or
when a kernel of the list that must not spill does.

Architectures whose code is that of sm_80 but for single instructions get one variant of each kernel, sm_89 also all that have to do with
fp8, which is what it adds; with CONFORMANCE_ALL=1 in the environment (`./dev test --all`) they get all variants.
"""
import os
import re
import subprocess
import sys
import tempfile

ditron, ptxas, arch, kernels_folder = sys.argv[1:]
small = os.path.join(os.path.dirname(__file__), "kernels.py")
moves = os.path.join(os.path.dirname(__file__), "rearrange.py")


def library(name):
    """A file of kernels/: "folder/file", or "folder" for the file of the same name."""
    return os.path.join(kernels_folder, (name if "/" in name else name + "/" + name) + ".py")


def constexpr(**values):
    return "".join(f", constexpr {name}={value!r}" for name, value in values.items())


def dot(a, c, precision="tf32", size=64):
    return f"*{a}:16, *{a}:16, *{c}:16" + constexpr(M=size, N=size, K=size, PRECISION=precision)


def gemm(a, c, m, n, k):
    return f"*{a}:16, *{a}:16, *{c}:16" + ", i32:16" * 6 + constexpr(BLOCK_M=m, BLOCK_N=n, BLOCK_K=k)


block = constexpr(BLOCK=1024)
matrices = "*bf16:16, *bf16:16, *bf16:16" + ", i32:16" * 6
tiles = dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP_SIZE_M=8, B_TRANSPOSED=False, PRECISION="tf32")
nodes = dict(WORLD_SIZE=8, NUM_NODES=1)
exchange = dict(CHUNKS=8, BLOCKS=128)

# file, kernel, signature, options, "tight" if it must not spill; "nearly" if scalars may that the loop over programs carries past the loop inside:
# four words, out and back once for each program
may_spill = {"tight": 0, "nearly": 32}
cases = []
for t in ["fp32", "fp16", "bf16", "fp64"]:
    cases.append((small, "vector_add", f"*{t}:16, *{t}:16, *{t}:16, i32:16" + block))
for t in ["bf16:16", "i8", "i8:16", "i1", "i16:16", "i64:16", "fp8e4nv:16", "fp8e5"]:
    cases.append((small, "copy_aligned", f"*{t}, *{t}" + block))
for t in ["i8", "i16", "i32", "i64"]:
    cases.append((small, "copy_hints", f"*{t}:16, *{t}:16, i32" + block))
for t in ["fp32", "fp16", "bf16", "i8", "i64", "fp8e5"]:
    cases.append((moves, "rearrange", f"*{t}:16, *i32:16, *{t}:16" + constexpr(M=64, N=32)))
for t in ["fp32", "bf16", "i8", "i64"]:
    cases.append((moves, "sort_rows", f"*{t}:16, *{t}:16, *i32:16" + constexpr(M=16, N=64)))
for n in [2, 32, 512]:
    cases.append((moves, "functions", "*i32:16, *i32:16" + constexpr(N=n)))
cases += [
    (small, "mathematics", "*fp32:16, *fp32:16, i32" + block),
    (small, "mathematics", "*fp64:16, *fp64:16, i32" + constexpr(BLOCK=128)),
    (small, "softmax", "*bf16:16, *bf16:16, i32" + block),
    (small, "softmax", "*fp32:16, *fp32:16, i32:16" + constexpr(BLOCK=16384), "--num-warps 16"),
    (small, "scan", "*i32:16, *i32:16" + block),
    (small, "reductions", "*fp32:16, *fp32:16" + constexpr(M=1, N=16384), "--num-warps 16"),
    (small, "reductions", "*fp32:16, *fp32:16" + constexpr(M=256, N=16), "--num-warps 8"),
    (small, "reductions", "*bf16:16, *bf16:16" + constexpr(M=32, N=64)),
    (small, "multicast", "*fp32:16, *i64:16, *fp32:16"),
    (small, "scan", "*fp32:16, *fp32:16" + block),
    (small, "transpose", "*i32:16, *i32:16" + constexpr(N=64)),
    (small, "transpose", "*i8:16, *i8:16" + constexpr(N=64)),
    (small, "dot", dot("bf16", "fp32")),
    (small, "dot", dot("fp16", "fp32")),
    (small, "dot", dot("fp32", "fp32")),
    (small, "dot", dot("fp32", "fp32", "ieee", 32)),
    (small, "dot", dot("i8", "i32")),
    (small, "dot", dot("fp64", "fp64", "ieee", 16)),
    (small, "dot", dot("fp8e4nv", "fp32", size=32)),
    (small, "gemm", gemm("bf16", "bf16", 128, 128, 32), "--num-warps 8", "tight"),
    (small, "gemm", gemm("fp16", "fp16", 128, 64, 32), "--num-warps 4", "tight"),
    (small, "gemm", gemm("fp32", "fp32", 128, 128, 32), "--num-warps 8", "tight"),
    (small, "gemm", gemm("bf16", "fp32", 64, 64, 64), "--num-warps 4 --num-stages 1", "tight"),
    (small, "atomics_int", "*i32:16, *i32:16" + constexpr(BLOCK=256)),
    (small, "atomics_int", "*u64:16, *u64:16" + constexpr(BLOCK=256)),
    (small, "atomics_float", "*fp32:16, *fp32:16" + constexpr(BLOCK=256)),
    (small, "atomics_float", "*fp64:16, *fp64:16" + constexpr(BLOCK=256)),
    (small, "atomic_add_only", "*bf16:16, *bf16:16" + constexpr(BLOCK=256)),
    (small, "atomic_add_only", "*fp16:16, *fp16:16" + constexpr(BLOCK=256)),
    (small, "threads", "*i32, *i32, i32"),
    (small, "signals", "*fp32:16, *u64, i32"),
    (library("tensor_parallel_gemm"), "enter", "*u64:16, *u64:16, *i32:16, *u64:16, *u64:16, *bf16:16, *bf16:16, i32, i32, i32, i64:16, i32:16, i32:16, i32, i32" +
     constexpr(BLOCK=8192)),
    (library("tensor_parallel_gemm"), "enter", "*u64:16, *u64:16, *i32:16, *u64:16, *u64:16, *fp8e4nv:16, *fp8e4nv:16, i32, i32, i32, i32:16, i32:16, i32:16, i32, i32" +
     constexpr(BLOCK=8192) + ", *fp32:16, *fp32:16, i32, i32" + constexpr(SHARD_SCALES=True)),
    (library("tensor_parallel_gemm"), "copy_rows", "*bf16:16, *bf16:16, i32, i32:16, i32:16, i32:16" + constexpr(BLOCK=1024)),
    (library("tensor_parallel_gemm"), "all_gather_gemm", "*bf16:16, *bf16:16, *bf16:16, *u64:16, *u64:16" + ", i32:16" * 8 + ", i32" +
     constexpr(**nodes, CHUNKS=2, **tiles), "--num-warps 8", "tight"),
    (library("tensor_parallel_gemm"), "gemm_reduce_scatter", "*bf16:16, *bf16:16, *bf16:16, *i32:16, *u64:16" + ", i32:16" * 6 + ", i32" +
     constexpr(**nodes, **tiles), "--num-warps 8", "tight"),
    (library("tensor_parallel_gemm"), "reduce_segments", "*bf16:16, *bf16:16, *bf16:16, *u64:16, *u64:16, i32, i32:16, i32:16, i32" +
     constexpr(WORLD_SIZE=8, BLOCK_M=128, BLOCK_N=256), "--num-warps 16"),
    (library("inter_node"), "enter_nodes", "*i64:16, *i64:16, *i32:16" + ", *i64:16" * 3 + ", *i32:16, *bf16:16, *bf16:16" + ", i32" * 4 + ", i32:16" * 3 +
     ", i64:16, i64:16" + ", i32" * 3 + constexpr(BLOCK=8192)),
    (library("inter_node"), "reduce_and_send", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *i64:16, *i64:16, i32, i32, i32:16, i32, i32" +
     constexpr(NODE_SIZE=8, MOST_PARTS=16, BLOCK_M=16, BLOCK_N=128)),
    (library("inter_node"), "reduce_nodes", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *i64:16, *i64:16, i32, i32, i32:16, i32:16, i32" +
     constexpr(NUM_NODES=4, NODE_SIZE=8, MOST_PARTS=16, BLOCK_M=128, BLOCK_N=256), "--num-warps 16"),
    (library("gemm_all_reduce"), "gemm_all_reduce", "*bf16:16, *bf16:16, *bf16:16, *i32:16, *i64:16" + ", i32:16" * 6 + ", i32" +
     constexpr(WORLD_SIZE=8, **tiles),
     "--num-warps 8", "tight"),
    (library("gemm_all_reduce"), "reduce_rows_beside", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *i64:16, *i64:16, *i32:16, *i64:16, *i64:16, i32" + ", i32:16" * 4 + ", i32" +
     constexpr(WORLD_SIZE=8, CHUNKS=8, EXCHANGE_M=32, EXCHANGE_N=256), "--num-warps 32", "tight"),
    (library("gemm_all_reduce"), "reduce_rows", "*bf16:16, *bf16:16, *bf16:16, *bf16:16" + ", *i64:16" * 4 + ", i32, i32:16, i32:16, i32:16, i32:16, i32" +
     constexpr(WORLD_SIZE=8, **exchange, EXCHANGE_M=16, EXCHANGE_N=256), "--num-warps 16"),
    (library("gemm_all_reduce"), "gather_rows", "*bf16:16, *bf16:16, *i64:16, *i64:16, i32, i32:16, i32:16, i32:16, i32:16, i32" +
     constexpr(WORLD_SIZE=8, **exchange, EXCHANGE_M=16, EXCHANGE_N=256), "--num-warps 16", "tight"),
    (library("pushed_product"), "pushed_product", ", ".join(["*bf16:16"] * 4 + ["*i32:16", "*i64:16"] + ["i32:16"] * 7 + ["i32"] * 8) +
     constexpr(WORLD_SIZE=8, CHUNKS=8, PART_M=32, **tiles) + ", *bf16:16" * 8 + ", *bf16:16, *i64:16", "--num-warps 8", "tight"),
    (library("tile_link"), "begin_call", "*i64:16, *i64:16, *i64:16, *i64:16, i32"),
    (library("tile_link"), "gemm_ring_reduce_scatter", "*fp16:16, *fp16:16, *fp32:16, *fp32:16, *bf16:16, *i64, *i64, *i64" + ", i32" * 5 +
     constexpr(RING_BLOCKS=20, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, RING_M=64, RING_N=128), "--num-warps 8"),
    (library("tile_link"), "all_gather_moe", "*fp16:16, *fp16:16, *fp16:16" + ", *i32:16" * 8 + ", *fp16:16, *i64, *i64" + ", i32" * 6 +
     constexpr(TOPK=2, GATHER_BLOCKS=20, GATHER_M=64, GATHER_N=128, BLOCK_M=64, BLOCK_N=128, BLOCK_K=32)),
    (library("tile_link"), "all_gather_attention", "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *i64, *i64, i32, i32, i32, fp32" +
     constexpr(HEAD_DIM=64, BLOCK_M=64, BLOCK_N=32)),
    (small, "debug", "*fp32:16, *i64:16, i32", "--debug"),
]

for transposed in [True, False]:
    tile = constexpr(BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP_M=8, B_TRANSPOSED=transposed, PRECISION="tf32")
    cases.append((library("gemm"), "gemm", matrices + tile, "--num-warps 8", "tight"))
    cases.append((library("gemm"), "gemm_pointers", matrices + tile, "--num-warps 8"))  # may spill 16 bytes on sm_100a
    # Other GPUs are not what these are for.
    wide, tight = (128, ["tight"]) if arch == "sm_90a" else (64, [])
    tile = dict(BLOCK_M=wide, BLOCK_N=wide, BLOCK_K=64, GROUP_M=8, B_TRANSPOSED=transposed, PRECISION="tf32")
    cases.append((library("hopper_gemm"), "gemm_two_widths", matrices + constexpr(MORE_N=wide // 2, **tile), "--num-warps 8 --num-stages 4", *tight))
    cases.append((library("hopper_gemm"), "gemm_split_tail", "*bf16:16, *bf16:16, *bf16:16, *fp32:16, *i64:16" + ", i32:16" * 6 + ", i32" * 2 +
                  constexpr(**tile), "--num-warps 8 --num-stages 5", *tight))
# Attention: plain, with every option, of packed rows, in pages, of 8 bits.
strides, hopper = ", i32:16" * 3, arch == "sm_90a"
all_options = ", i32, fp32, *fp32:16, *fp32:16, *i32:16, *i32:16"
no_options = constexpr(window=None, soft_cap=None, sinks_ptr=None, slopes_ptr=None, query_offsets_ptr=None, key_offsets_ptr=None)
forward, fetched = library("attention/forward"), library("attention/forward_by_descriptors")
for options, depths, m, n, paged in [("", (64, 64), 128, 128, 64), (", *fp32:16" + all_options, (128, 128), 128, 64, 64), (", *fp32:16", (192, 128), 128, 64, 64),
                                     (", *fp32:16", (96, 96), 128, 128, 16)]:
    tile = dict(BLOCK_M=m, BLOCK_N=n) if hopper else dict(BLOCK_M=64, BLOCK_N=32)
    for causal in [True, False]:
        sizes = constexpr(CAUSAL=causal, HEAD_DIM=depths[0], VALUE_DIM=depths[1], **tile)
        cases.append((forward, "attention_forward", "*bf16:16" + ", *bf16:16" * 3 + ", i32" * 4 + strides * 4 + ", fp32" + sizes + options, "--num-warps 8 --num-stages 2"))
        cases.append((fetched, "attention_forward_by_descriptors", "*bf16:16" + ", *bf16:16" * 3 + ", i32" * 9 + strides * 4 + ", fp32" + sizes + options,
                      "--num-warps 8 --num-stages 2", *(["tight"] if hopper and options == "" else [])))
    sizes = constexpr(CAUSAL=True, HEAD_DIM=depths[0], VALUE_DIM=depths[1], BLOCK_M=64, BLOCK_N=32)
    cases.append((forward, "attention_forward", "*bf16:16" + ", *bf16:16" * 3 + ", i32" * 4 + strides * 4 + ", fp32" + sizes + ", *fp32:16" + no_options +
                  ", *i32:16, *i32:16, i32" + constexpr(PAGE=paged), "--num-warps 4 --num-stages 2"))
if hopper:
    sizes = constexpr(CAUSAL=True, HEAD_DIM=128, VALUE_DIM=128, BLOCK_M=128, BLOCK_N=128)
    cases.append((fetched, "attention_forward_by_descriptors", "*fp8e4nv:16" + ", *fp8e4nv:16" * 2 + ", *bf16:16" + ", i32" * 9 + strides * 4 + ", fp32" + sizes +
                  constexpr(VALUES_TRANSPOSED=True), "--num-warps 8 --num-stages 2"))
# Heads of a prefill normed, turned and put into pages; of a step of decoding as they are; with keys over ranks; of tokens that the host knows the places of.
placed = "*bf16:16, *bf16:16, *bf16:16, i32, i32, i32, i32:16, i32:16, i32:16" + constexpr(HEAD_DIM=128, BATCH=64, BLOCK_HEADS=8)
changed = ", *bf16:16, *bf16:16, fp32, *fp32:16" + constexpr(ROTARY_DIM=128, INTERLEAVED=False)
as_they_are = constexpr(q_weight_ptr=None, k_weight_ptr=None, epsilon=0.0, rotary_ptr=None, ROTARY_DIM=0, INTERLEAVED=False)
one_token, no_pages = constexpr(rows_of_sequence=1, first_position=0), constexpr(table_ptr=None, table_stride=0, PAGE=1)
cases += [
    (library("attention/heads"), "place_heads", placed + ", *bf16:16, *i32:16, *i32:16" + constexpr(places_ptr=None, positions_ptr=None) + one_token +
     ", *i32:16, i32" + constexpr(PAGE=64) + changed + constexpr(GROUPS=1)),
    (library("attention/heads"), "place_heads", placed + ", *bf16:16, *i32:16" + constexpr(offsets_ptr=None, places_ptr=None, positions_ptr=None) + one_token +
     no_pages + as_they_are + constexpr(GROUPS=1)),
    (library("attention/heads"), "place_heads", placed + ", *bf16:16" + constexpr(lengths_ptr=None, offsets_ptr=None) + ", *i32:16, *i32:16" + one_token +
     ", *i32:16, i32" + constexpr(PAGE=64) + changed + constexpr(GROUPS=4)),
    (library("attention/heads"), "place_heads", placed + constexpr(q_ptr=None, lengths_ptr=None, offsets_ptr=None, places_ptr=None, positions_ptr=None) +
     ", i32, i32" + no_pages + changed.replace("False", "True") + constexpr(GROUPS=4)),
]
cases.append((library("attention/backward"), "gradient_rows", "*bf16:16, *bf16:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, i32" + strides + ", i32:16" +
              constexpr(HEAD_DIM=128, BLOCK_M=32)))
cases.append((library("attention/backward"), "sink_gradients", "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, i32:16" + constexpr(BLOCK=1024)))
for depth, causal, options in [(64, True, ""), (128, False, ""), (128, True, ", i32, fp32, *fp32:16, *i32:16, *i32:16")]:
    inputs, scales = "*bf16:16" + ", *bf16:16" * 3 + ", *fp32:16, *fp32:16", strides * 2 + ", i32:16, fp32, fp32"
    for kernel, results, m, n in [("key_gradients", 2, 64, 128), ("query_gradient", 1, 128, 64)]:
        outputs = ", *bf16:16" * results
        sizes = constexpr(CAUSAL=causal, HEAD_DIM=depth, BLOCK_M=64, BLOCK_N=64)
        cases.append((library("attention/backward"), kernel, inputs + outputs + ", i32" * 4 + scales + sizes + options, "--num-warps 8 --num-stages 2"))
        sizes = constexpr(CAUSAL=causal, HEAD_DIM=depth, **(dict(BLOCK_M=m, BLOCK_N=n) if hopper else dict(BLOCK_M=64, BLOCK_N=32)))
        cases.append((library("attention/backward_by_descriptors"), kernel + "_by_descriptors", inputs + outputs + ", i32" * (10 if kernel == "key_gradients" else 9) + scales + sizes + options,
                      "--num-warps 8 --num-stages 2", *(["tight"] if hopper and depth == 64 else [])))
decoded = ["*bf16:16"] * 4 + ["*fp32:16", "*i32:16", "*i32:16", "SINKS", "*fp32:16", "*fp32:16", "*i32:16"]
alike, latent, latents = constexpr(value_page=None, value_row=0, value_head=0), (576, 512), 64 if arch == "sm_90a" else 32
for page, rows, depths, keys, warps in [(0, 16, (128, 128), 64, 4), (16, 16, (64, 64), 128, 4), (64, 64, (256, 256), 32, 8), (16, 16, (96, 96), 64, 4),
                                        (64, 16, (192, 128), 32, 4), (64, 16, latent, latents, 8), (16, 32, latent, latents, 8)]:
    # With every option where V is narrower than K.
    narrow = depths == (192, 128)
    pointers = ", ".join(decoded).replace("SINKS", "*fp32:16" if narrow else "constexpr sinks_ptr=None")
    sizes = ", i32" * 4 + ", i64:16" * 4 + (", i64:16" * 3 if narrow else alike) + ", fp32"
    window, soft_cap = (", i32", ", fp32") if narrow else (constexpr(window=None), constexpr(soft_cap=None))
    stages = 2 if arch == "sm_89" or (depths, keys) == (latent, 64) else 4 if rows == 16 and depths == latent else 3
    wide = 1 << (depths[1] - 1).bit_length()
    together = min(rows // 2 if rows > 16 else rows, 8192 // wide)
    values = constexpr(HEAD_DIM=depths[0], VALUE_DIM=depths[1], VALUES_IN_KEYS=depths == latent, PAGE_SIZE=page, BATCH=16, BLOCK_M=rows, BLOCK_N=keys,
                       ROWS=together, PARTS=max(8192 // (together * wide), 1), EVEN=False)
    options = f"--num-warps {warps} --num-stages {stages}"
    # Of 64 latents some addresses spill: with strides known when it was compiled none did, and it took as long (docs/ops/attention_decode.md).
    unspilt = ["tight" if rows == 16 else "nearly"] if (rows == 16 or depths == latent) and not narrow and (depths, keys) != (latent, 64) and arch in ("sm_90a", "sm_80") else []
    cases.append((library("attention_decode"), "attention_decode", pointers + sizes + window + soft_cap + values + constexpr(STARTS_EARLY=hopper), options,
                  *unspilt))
    cases.append((library("attention_decode"), "attention_decode_over_ranks", pointers + ", *fp32:16, *fp32:16, *i64:16, *i64:16" + sizes + soft_cap +
                  ", i64, i32, i32" + constexpr(WORLD=4) + values, options))
for rows, transposed in [(16, True), (16, False), (64, False)]:
    side = (128, 256 if arch == "sm_90a" else 128, 64 if arch == "sm_90a" else 32) if rows == 16 else (64, 64, 32)
    tile = dict(BLOCK_M=side[0], BLOCK_N=side[1], BLOCK_K=side[2], GROUP_SIZE_M=8, B_TRANSPOSED=transposed, PRECISION="tf32")
    cases.append((library("sequence_parallel/ulysses"), "gemm_all_to_all", "*bf16:16, *bf16:16, *bf16:16, *i32:16, *i64:16, *i64:16" + ", i32" * 5 + ", i32:16" * 5 + ", i32" +
                  constexpr(WORLD_SIZE=4, TO_PEERS=True, **tile), "--num-warps 8"))
    cases.append((library("sequence_parallel/ulysses"), "all_to_all_gemm", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *i64:16, *i64:16" + ", i32" * 6 + ", i32:16" * 8 + ", i32" +
                  constexpr(WORLD_SIZE=4, CHUNKS=2, **tile), "--num-warps 8", *(["tight"] if arch == "sm_90a" and rows == 16 else [])))
cases.append((library("sequence_parallel/ulysses"), "wait_for_ranks", "*i64:16, *i64:16" + constexpr(WORLD_SIZE=4)))
cases.append((library("sequence_parallel/attention"), "stage_shard", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, i32, i32, i32" + constexpr(HEAD_DIM=128, BLOCK=4096)))
cases.append((library("sequence_parallel/attention"), "find_sequences", "*i32:16, *i32:16, *i32:16" + ", i32" * 6 + constexpr(BLOCK=256)))
for causal in [True, False]:
    tile = dict(BLOCK_M=128, BLOCK_N=128) if arch == "sm_90a" else dict(BLOCK_M=64, BLOCK_N=32)
    cases.append((library("sequence_parallel/attention"), "all_gather_attention", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *fp32:16, *i64:16, *i64:16" + ", i32" * 10 +
                  ", i64:16" * 9 + ", i32, fp32, i32" + constexpr(WORLD_SIZE=4, PARTS=2 if causal else 1, MOST_PIECES=2, CAUSAL=causal, HEAD_DIM=128, **tile),
                  f"--num-warps {8 if arch == 'sm_90a' else 4} --num-stages 2"))
    cases.append((library("sequence_parallel/attention"), "all_gather_attention", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *fp32:16, *i64:16, *i64:16" + ", i32" * 10 +
                  ", i64:16" * 9 + ", i32, fp32, i32" + constexpr(WORLD_SIZE=4, PARTS=2 if causal else 1, MOST_PIECES=2, CAUSAL=causal, HEAD_DIM=128, **tile) +
                  ", *i32:16, *i32:16", f"--num-warps {8 if arch == 'sm_90a' else 4} --num-stages 2"))
    parts = dict(PARTS=2 if causal else 1, CAUSAL=causal, HEAD_DIM=128)
    sizes, step = ", i32" * 9 + ", i64:16" * 4 + ", fp32", ", i32" * 9
    long = 128 if arch == "sm_90a" else 64
    for packed in ["", ", *i32:16, *i32:16"]:
        cases.append((library("sequence_parallel/ring"), "ring_attention", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *fp32:16, *fp32:16, *fp32:16" + sizes + step +
                      constexpr(**parts, **tile) + packed, f"--num-warps {8 if arch == 'sm_90a' else 4} --num-stages 2"))
        cases.append((library("sequence_parallel/ring_backward"), "ring_query_gradient", "*bf16:16, *bf16:16, *fp32:16, *fp32:16, *bf16:16, *bf16:16, *bf16:16, *fp32:16, i32" +
                      sizes + ", fp32" + step + constexpr(**parts, BLOCK_M=long, BLOCK_N=64) + packed, f"--num-warps 8 --num-stages {3 if arch == 'sm_90a' else 2}"))
        cases.append((library("sequence_parallel/ring_backward"), "ring_key_gradients", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *fp32:16, *fp32:16, *bf16:16, *bf16:16, *fp32:16, *fp32:16, i32" +
                      sizes.replace(", i64", ", i32:16, i64", 1) + ", fp32" + step + constexpr(**parts, BLOCK_M=64 if arch == "sm_90a" else 32, BLOCK_N=long) + packed, f"--num-warps 8 --num-stages {4 if arch == 'sm_90a' else 2}"))
    cases.append((library("sequence_parallel/ring_backward"), "stage_queries", "*bf16:16, *bf16:16, *bf16:16, *fp32:16, *bf16:16, *bf16:16, *fp32:16, *fp32:16" + ", i32" * 5 +
                  constexpr(PARTS=2 if causal else 1, HEAD_DIM=128, BLOCK_M=32)))
cases.append((library("sequence_parallel/ring"), "send_to_node", "*u8:16, *u8:16, i64, *i64:16, i32"))
for t, result, limit in [("fp32", "fp32", None), ("i8", "i32", None), ("fp8e4nv", "fp32", None), ("fp8e4nv", "fp32", 32), ("fp8e5", "fp32", 128)]:
    if t != "fp8e4nv" or arch != "sm_80":
        cases.append((small, "descriptor_product", f"*{t}:16, *{t}:16, *{result}:16" + ", i32:16" * 3 +
                      constexpr(BLOCK_M=128, BLOCK_N=128, BLOCK_K=32 if t == "fp32" else 128, LIMIT=limit), "--num-warps 8", *(["nearly"] if tight else [])))
if arch == "sm_90a":  # tiles that only its shared memory has room for
    cases.append((library("hopper_gemm"), "gemm_split_tail", "*bf16:16, *bf16:16, *bf16:16, *fp32:16, *i64:16" + ", i32:16" * 6 + ", i32" * 2 +
                  constexpr(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8, B_TRANSPOSED=True, PRECISION="tf32"), "--num-warps 8 --num-stages 3", "tight"))
    cases.append((library("hopper_gemm"), "gemm_two_widths", matrices + constexpr(BLOCK_M=128, BLOCK_N=128, MORE_N=0, BLOCK_K=64, GROUP_M=8, B_TRANSPOSED=True,
                                                                                  PRECISION="tf32", A_POLICY="evict_first", B_POLICY="evict_last", CLUSTER=2),
                  "--num-warps 4 --num-stages 2", "tight"))
    cases.append((small, "descriptor_product", "*fp8e4nv:16, *fp8e4nv:16, *fp32:16" + ", i32:16" * 3 +
                  constexpr(BLOCK_M=128, BLOCK_N=256, BLOCK_K=128, LIMIT=128), "--num-warps 8", "nearly"))
    cases.append((library("gemm"), "gemm", matrices + constexpr(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8,
                                                                B_TRANSPOSED=True, PRECISION="tf32"), "--num-warps 8", "tight"))
for two_shot, m, n, k, split, options in [(False, 16, 64, 128, False, "--num-stages 4"), (False, 32, 64, 128, True, "--num-stages 3"),
                                          (True, 64, 64, 64, False, "--num-stages 4"), (True, 128, 128, 64, True, "--num-warps 8 --num-stages 3")]:
    turned = arch == "sm_90a"
    cases.append((library("one_launch"), "gemm_all_reduce_one_launch", "*bf16:16, *bf16:16, *bf16:16, *fp32:16, *i32:16, *bf16:16, *bf16:16, *i64:16, *i64:16" +
                  ", i32:16" * 8 + ", i32, i32" + constexpr(WORLD_SIZE=4, SPLIT=split, TWO_SHOT=two_shot, SCATTER=n == 128, LAMPORT=m != 16, PART_M=-(-m // 4), BLOCK_M=m, BLOCK_N=n, BLOCK_K=k,
                                                            TURNED=turned, B_TRANSPOSED=split, PRECISION="tf32"), options))
    cases.append((library("one_launch"), "all_gather_gemm_one_launch", ", ".join(["*bf16:16"] * 5 + ["*fp32:16", "*i32:16"] + ["*i64:16"] * 3 + ["i32:16"] * 12 + ["i32"] * 3) +
                  constexpr(WORLD_SIZE=4, SPLIT=split, BLOCK=2048, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, TURNED=turned, B_TRANSPOSED=split, PRECISION="tf32"), options))

# 8-bit operands with scales of rows and columns, bias and activations.
for a, bias, scales, activation in [("fp8e4nv", "*bf16:16", "*fp32:16", "swiglu"), ("fp8e5", None, "*fp32:16", "silu"), ("i8", "*fp32:16", "*fp32:16", "none"),
                                    ("bf16", "*bf16:16", None, "gelu"), ("bf16", None, None, "relu")]:
    vectors = constexpr(ROW_SCALES=a != "fp8e5", COLUMN_SCALES=a != "fp8e5")
    optional = lambda type, name: f", {type}" if type else constexpr(**{name: None})
    scaled, biased = optional(scales, "a_scale_ptr") + optional(scales, "b_scale_ptr"), optional(bias, "bias_ptr") + ", i32"
    gathered = optional(scales, "a_scale_ptr") + ", i32" + optional(scales, "b_scale_ptr") + biased
    tile = constexpr(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, B_TRANSPOSED=True, PRECISION="tf32")
    wide = {**tiles, "BLOCK_K": 64, "B_TRANSPOSED": True}
    if arch == "sm_90a":
        # The tiles that warpgroups multiply and promote by turns, in clusters; and with more columns.
        sums = "*i32:16" if a == "i8" else "*fp32:16"
        for kernel, extra, workspace, columns, stages in [("gemm_two_widths", dict(MORE_N=64), "", 128, 4), ("gemm_split_tail", {}, f", {sums}, *i64:16", 256, 3)]:
            cut = {**dict(BLOCK_M=128, BLOCK_N=columns), **extra, **dict(BLOCK_K=128 if a != "bf16" else 64, GROUP_M=8, B_TRANSPOSED=True, PRECISION="tf32", A_POLICY="",
                                                                        B_POLICY="", CLUSTER=2)}
            cases.append((library("hopper_gemm"), kernel, f"*{a}:16, *{a}:16, *bf16:16" + workspace + ", i32:16" * 6 + (", i32" * 2 if workspace else "") + constexpr(**cut) +
                          scaled + biased + vectors + constexpr(ACTIVATION=activation), f"--num-warps 8 --num-stages {stages}", *(["tight"] if activation != "swiglu" else [])))
    for kernel in ["gemm", "gemm_pointers"]:
        cases.append((library("gemm"), kernel, f"*{a}:16, *{a}:16, *bf16:16" + ", i32:16" * 6 + tile + scaled + biased + vectors + constexpr(ACTIVATION=activation), "--num-warps 8"))
    cases.append((library("tensor_parallel_gemm"), "all_gather_gemm", f"*{a}:16, *{a}:16, *bf16:16, *u64:16, *u64:16" + ", i32:16" * 8 + ", i32" +
                  constexpr(**nodes, CHUNKS=2, **wide) + gathered + vectors + constexpr(ACTIVATION=activation), "--num-warps 8"))
    cases.append((library("tensor_parallel_gemm"), "gemm_reduce_scatter", f"*{a}:16, *{a}:16, *bf16:16, *i32:16, *u64:16" + ", i32:16" * 6 + ", i32" +
                  constexpr(**nodes, **wide) + scaled + biased + vectors, "--num-warps 8"))
    cases.append((library("pushed_product"), "pushed_product", ", ".join([f"*{a}:16"] * 2 + ["*bf16:16"] * 2 + ["*i32:16", "*i64:16"] + ["i32:16"] * 7 + ["i32"] * 8) +
                  constexpr(WORLD_SIZE=8, CHUNKS=8, PART_M=16, **wide) + ", *bf16:16" * 8 + constexpr(reduced_ptr=None, fetch_ptr=None) + scaled + biased + vectors, "--num-warps 8"))
    cases.append((library("gemm_all_reduce"), "gemm_all_reduce", f"*{a}:16, *{a}:16, *bf16:16, *i32:16, *i64:16" + ", i32:16" * 6 + ", i32" +
                  constexpr(WORLD_SIZE=8, **wide) + scaled + biased + vectors, "--num-warps 8"))
    turned, parts = arch == "sm_90a", "*i32:16" if a == "i8" else "*fp32:16"
    cases.append((library("one_launch"), "gemm_all_reduce_one_launch", f"*{a}:16, *{a}:16, *bf16:16, {parts}, *i32:16, *bf16:16, *bf16:16, *i64:16, *i64:16" +
                  ", i32:16" * 8 + ", i32, i32" + constexpr(WORLD_SIZE=4, SPLIT=True, TWO_SHOT=True, SCATTER=a == "i8", LAMPORT=False, PART_M=8, BLOCK_M=32, BLOCK_N=64, BLOCK_K=128,
                                                            TURNED=turned, B_TRANSPOSED=True, PRECISION="tf32") + scaled + biased + vectors, "--num-stages 3"))
    cases.append((library("one_launch"), "all_gather_gemm_one_launch",
                  ", ".join([f"*{a}:16"] * 4 + ["*bf16:16", parts, "*i32:16"] + ["*i64:16"] * 3 + ["i32:16"] * 12 + ["i32"] * 3) +
                  constexpr(WORLD_SIZE=4, SPLIT=True, BLOCK=2048, BLOCK_M=32, BLOCK_N=64, BLOCK_K=128, TURNED=turned, B_TRANSPOSED=True, PRECISION="tf32") +
                  optional(scales, "shard_scale_ptr") + gathered + constexpr(SHARD_SCALES=a != "fp8e5") + vectors + constexpr(ACTIVATION=activation), "--num-stages 3"))
packets, ranks_and_sums = "*bf16:16, *bf16:16, *i64:16, *i64:16, i32, i32, i32, i32, fp32", dict(WORLD=8, REDUCTION=0, SCALED=False)
chunks, rows = "*bf16:16, *bf16:16, *bf16:16, *i64:16, *i64:16, i32:16", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *bf16:16"
for scatter, reduce in [(False, False), (True, True)]:
    cases.append((library("collectives/packets"), "packet_exchange", packets + constexpr(PER_PACKET=4, SCATTER=scatter, REDUCE=reduce, ALIGNED=reduce, **ranks_and_sums),
                  "--num-warps 16"))
    cases.append((library("collectives/chunks"), "chunk_exchange", chunks + ", i32, i32, i32:16, fp32" +
                  constexpr(CHUNK=8192, SCATTER=scatter, REDUCE=reduce, ROOTED=False, **ranks_and_sums), "--num-warps 16"))
cases.append((library("collectives/packets"), "packet_all_reduce", packets + constexpr(PER_PACKET=4, ALIGNED=True, **ranks_and_sums), "--num-warps 16"))
lamport = packets.replace("*i64:16", "*i64:16, *i64:16", 1)
for scatter, reduce in [(False, False), (True, True)]:
    cases.append((library("collectives/lamport"), "lamport_exchange", lamport + constexpr(PER_PACKET=8, SCATTER=scatter, REDUCE=reduce, ALIGNED=reduce, **ranks_and_sums),
                  "--num-warps 16"))
cases.append((library("collectives/lamport"), "lamport_all_reduce", lamport + constexpr(PER_PACKET=8, ALIGNED=True, **ranks_and_sums), "--num-warps 16"))
cases.append((library("collectives/chunks"), "chunk_all_reduce", chunks + ", i32:16, i32, i32:16, fp32" + constexpr(CHUNK=4096, **ranks_and_sums), "--num-warps 16"))
for reduce, gather in [(True, True), (True, False), (False, True)]:
    kinds = constexpr(REDUCE=reduce, GATHER=gather, REDUCTION=0, SCALED=False)
    cases.append((library("collectives/ring"), "ring_exchange", chunks + ", i32:16, i32, i32:16, fp32" + constexpr(WORLD=8, CHUNK=4096) + kinds, "--num-warps 16"))
    cases.append((library("collectives/two_level"), "two_level_exchange", rows + ", *i64:16, *i64:16, i32:16, i32:16, i32, i32:16, fp32" +
                  constexpr(NODES=2, LOCAL=8, CHUNK=4096) + kinds, "--num-warps 8"))
for reduce in [True, False]:
    cases.append((library("collectives/two_level_packets"), "two_level_packet_exchange", "*bf16:16, *bf16:16, *i64:16, *bf16:16, *i64:16, *i64:16, i32, i32, i32, i32, fp32" +
                  constexpr(NODES=2, LOCAL=8, PER_PACKET=4, REDUCE=reduce, REDUCTION=0, SCALED=False, ALIGNED=True), "--num-warps 16"))
cases.append((library("collectives/ring"), "ring_broadcast", chunks + ", i32, i32, i32:16" + constexpr(WORLD=8, CHUNK=16384), "--num-warps 16"))
for rooted in [False, True]:
    cases.append((library("collectives/copy_engine"), "copy_arrived", "*bf16:16, *bf16:16, *bf16:16, *i64:16, *i64:16, i32:16, i32, i32" +
                  constexpr(WORLD=8, ROOTED=rooted, BLOCK=8192), "--num-warps 16"))
not_for_arch = []
shared, of_chunks = "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *i64:16, *i64:16, i32:16", dict(WORLD=8, CHUNK=8192)
if arch == "sm_90a":
    for flag in [False, True]:
        cases.append((library("collectives/tensor_copies"), "tensor_copy_exchange", chunks + ", i32, i32:16" + constexpr(SCATTER=flag, **of_chunks), "--num-warps 4"))
        cases.append((library("collectives/tensor_copies"), "tensor_copy_reduce", shared + ", i32:16, i32, i32:16, fp32" +
                      constexpr(GATHER=flag, REDUCTION=0, SCALED=False, X_ALIGNED=True, OUT_ALIGNED=flag, **of_chunks), "--num-warps 8"))
else:
    not_for_arch.append(library("collectives/tensor_copies"))
if arch in ["sm_80", "sm_89"]:
    not_for_arch.append(library("collectives/multimem"))
else:
    cases.append((library("collectives/multimem"), "multimem_all_gather", shared + ", i32, i32:16" + constexpr(**of_chunks), "--num-warps 16"))
    cases.append((library("collectives/multimem"), "multimem_one_shot_all_reduce", shared + ", i32, i32:16, fp32" + constexpr(SCALED=False, **of_chunks), "--num-warps 16"))
    cases.append((library("collectives/multimem"), "multimem_all_reduce", shared + ", i32:16, i32, i32:16, fp32" + constexpr(SCALED=False, **of_chunks), "--num-warps 16"))
for two_shot in [False, True]:
    cases.append((library("collectives/rms_norm"), "lamport_all_reduce_rms_norm", rows + ", *i64:16, *i64:16, *i64:16, i32, i32, i32, i32, fp32" +
                  constexpr(WORLD=8, COLUMNS=8192, PER_PACKET=8, TWO_SHOT=two_shot), "--num-warps 16"))
cases.append((library("collectives/rms_norm"), "chunk_all_reduce_rms_norm", rows + ", *bf16:16, *i64:16, *i64:16, i32, i32, fp32" +
              constexpr(WORLD=8, COLUMNS=8192, CHUNK=8192), "--num-warps 16"))
words = ", ".join(["*i64"] * 4)
for aligned, row in [(True, "i64:16"), (False, "i64")]:
    cases.append((library("collectives/pairs"), "all_to_all_v", f"*i16:16, *i16:16, {words}, *i64:16, *i16:16" + ", *i64:16" * 5 + f", i64, i64, {row}, i64, i64, i64, i32" +
                  constexpr(WORLD=8, PER_PACKET=4, CHUNK=4096, LINE=64, PACKED=aligned, RINGS=True, ALIGNED=aligned), "--num-warps 16"))
messages = ", ".join(f"({', '.join([each] * 8)})" for each in ["*i16:16", "i64"] * 2)
cases.append((library("collectives/pairs"), "send_receive", messages + ", *i16:16" + ", *i64:16" * 5 + ", i32" + constexpr(WORLD=8, CHUNK=4096, LINE=64),
              "--num-warps 16"))
cases.append((library("collectives/pairs"), "barrier", "*i64:16, *i64:16, i32" + constexpr(WORLD=8), "--num-warps 1"))
experts = dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, PRECISION="tf32")
no_scales = constexpr(a_scale_ptr=None, b_scale_ptr=None)
for transposed, activation in [(True, "none"), (False, "swiglu")]:
    cases.append((library("moe/grouped_gemm"), "grouped_gemm", "*bf16:16, *bf16:16, *bf16:16, *i32:16, *i32:16, i32" + ", i32:16" * 5 +
                  constexpr(B_TRANSPOSED=transposed, ACTIVATION=activation, **experts), "--num-warps 8 --num-stages 2"))
    cases.append((library("moe/grouped_gemm"), "grouped_gemm", "*bf16:16, *bf16:16, *bf16:16, *i32:16, *i32:16, i32" + ", i32:16" * 5 +
                  constexpr(B_TRANSPOSED=transposed, ACTIVATION=activation, **experts) + no_scales +
                  constexpr(spans_ptr=None, segment_tiles_ptr=None, counter_ptr=None, gate_ptr=None, first_rank=0, WORLD_SIZE=1) + ", *i32:16" +
                  constexpr(SLOTS=2), f"--num-warps 8 --num-stages {2 if arch == 'sm_89' else 4}", *tight))
    cases.append((library("moe/grouped_gemm"), "grouped_gemm_pointers", "*bf16:16, *bf16:16, *bf16:16, *i32:16, *i32:16, *i32:16" +
                  constexpr(a_scale_ptr=None, b_scale_ptr=None) + ", i32:16" * 4 +
                  constexpr(B_TRANSPOSED=transposed, ACTIVATION=activation, SLOTS=2, BLOCK_SCALES=False, **experts), "--num-warps 8 --num-stages 2"))
# Over the ranks: tiles wait for their rows, and are counted.
cases.append((library("moe/grouped_gemm"), "grouped_gemm", "*bf16:16, *bf16:16, *bf16:16, *i32:16, *i32:16, i32" + ", i32:16" * 5 +
              constexpr(B_TRANSPOSED=True, ACTIVATION="none", **experts) + no_scales + ", *i32:16, *i32:16, *i32:16, *i64:16, i32" + constexpr(WORLD_SIZE=8),
              "--num-warps 8 --num-stages 2"))
if arch == "sm_90a":
    of_fp8 = dict(experts, BLOCK_K=128)
    cases.append((library("moe/grouped_gemm"), "grouped_gemm", "*fp8e4nv:16, *fp8e4nv:16, *bf16:16, *i32:16, *i32:16, i32" + ", i32:16" * 5 +
                  constexpr(B_TRANSPOSED=True, ACTIVATION="none", **of_fp8) + ", *fp32:16, *fp32:16", "--num-warps 8 --num-stages 4", "tight"))
for element, scales, scaled in [("bf16", no_scales, False), ("fp8e4nv", ", *fp32:16, *fp32:16", True)]:
    cases.append((library("moe/grouped_gemm"), "grouped_gemm_pointers", f"*{element}:16, *{element}:16, *bf16:16, *i32:16, *i32:16, *i32:16" + scales +
                  ", i32:16" * 4 + constexpr(**experts, B_TRANSPOSED=True, ACTIVATION="none" if scaled else "swiglu", SLOTS=2, BLOCK_SCALES=scaled) +
                  ", *i32:16, *i64:16, *i64:16", "--num-warps 8 --num-stages 2"))
cases.append((library("moe/tensor_parallel"), "share_choices", "*i32:16, *fp32:16, *i32:16, *fp32:16, *i64:16, *i64:16, i32, i32, i32" +
              constexpr(WORLD_SIZE=8, TOP_K=8, BLOCK=1024)))
cases.append((library("moe/tensor_parallel"), "add_ranks", "*bf16:16, *bf16:16, *i64:16, *i64:16, i32, i32:16, i32" +
              constexpr(WORLD_SIZE=8, BLOCK_M=16, BLOCK_N=256), "--num-warps 8", "tight"))
for arrival in [True, False]:
    gates = constexpr(segment_tiles_ptr=None, gate_ptr=None) if arrival else ", *i32:16, *i64:16"
    cases.append((library("moe/tensor_parallel"), "order_tiles", "*i32:16, *i32:16, *i32:16, *i32:16, *i32:16" + gates + ", i32, i32, i32, i32" +
                  constexpr(WORLD_SIZE=8, TURNS=8, CHUNKS=4 if arrival else 1, TOP_K=8, TILES=1024, BLOCK_M=128, ARRIVAL=arrival), "--num-warps 8"))
cases.append((library("moe/grouped_gemm"), "sum_slots", "*bf16:16, *i32:16, *fp32:16, *bf16:16, i32, i32:16, i32:16, i32:16" +
              constexpr(TOP_K=8, TOKENS=4, BLOCK=1024) + ", i32"))
cases.append((library("moe/grouped_gemm"), "sum_slots", "*bf16:16, *i32:16, *fp32:16, *bf16:16, i32, i32:16, i32:16, i32:16" + constexpr(TOP_K=8, TOKENS=4, BLOCK=1024)))
cases += [
    (library("moe/routing"), "choose_experts", "*fp32:16, *fp32:16, *i32:16, *fp32:16, i32, i32, i32, fp32" +
     constexpr(TOP_K=8, SLOTS=8, EXPERTS=256, BLOCK=4, SIGMOID=True, NORMALIZED=True)),
    (library("moe/routing"), "count_slots", "*i32:16, *i32:16, i32, i32, i32" + constexpr(CHUNK=512, PART=64, EXPERTS=256), "--num-warps 16", "tight"),
    (library("moe/routing"), "place_slots", "*i32:16, *i32:16, *i32:16, *i32:16, *i32:16, i32, i32, i32" + constexpr(CHUNK=512, PART=64, EXPERTS=256, COUNTS=16),
     "--num-warps 16", "tight"),
    (library("moe/routing"), "tile_slabs", "*i32:16, *i32:16, *i32:16, i32, i32, i32" + constexpr(EXPERTS=256, TILES=64, BLOCK_M=128)),
    (library("moe/routing"), "tile_rows", "*i32:16, *i32:16, i32, i32" + constexpr(EXPERTS=256, TILES=64, BLOCK_M=128)),
]
for given, row, row_scales, scales in [("*i16:16", "*i16:16", "constexpr row_scales_ptr=None", "constexpr scales_ptr=None"),
                                       ("*bf16:16", "*fp8e4nv:16", "*fp32:16", "*fp32:16")]:
    staged_rows = f", {row}, *fp32:16" if row_scales.startswith("*") else constexpr(staged_ptr=None, staged_scales_ptr=None)
    for node_size, staged in [(8, constexpr(staged_ptr=None, staged_scales_ptr=None)), (4, staged_rows)]:
        cases.append((library("expert_parallel/low_latency"), "dispatch", f"{given}, *i32, *fp32, {row}, {row_scales}, *i32, *i32, {row}, {scales}, *i32:16, *i64:16" +
                      staged + ", *i64:16" * 5 + ", i64, i32:16, i32:16, i32, i64, i64, i64, i32" +
                      constexpr(WORLD=8, NODE_SIZE=node_size, TOP_K=8, SLOTS=8, EXPERTS=256, CHUNK=4096, SCAN=1024, ROWS=8, ROW_CHUNK=2048, SEND=True,
                                RECEIVE=True), "--num-warps 16"))
    cases.append((library("expert_parallel/high_throughput"), "dispatch_by_channels", f"{given}, *i32, *fp32, {row}, {row_scales}, *i32, *i32, {row}, {scales}" +
                  ", *i64:16, *fp32:16, *i64:16, *i64:16, *i64:16, *i32:16, *i32:16, *i32:16" + ", *i64:16" * 5 + ", i64, i32:16, i32:16, i32, i64, i64, i64, i32" +
                  constexpr(WORLD=8, TOP_K=8, SLOTS=8, EXPERTS=256, WINDOW=8, ROWS=8, CHUNK=2048), "--num-warps 16", *tight))
    cases.append((library("expert_parallel/two_level"), "dispatch_by_nodes", f"{given}, *i32, *fp32, {row}, {row_scales}, *i32, *i32, {row}, {scales}, *i32:16, *i64:16, *i32:16, *i32:16" +
                  ", *i64:16" * 9 + ", i64, i32:16, i32:16, i32:16, i32, i32, i64, i64, i64, i64, i32" +
                  constexpr(WORLD=16, NODE_SIZE=8, TOP_K=8, SLOTS=8, EXPERTS=256, CHUNK=4096, SCAN=1024, ROWS=8, ROW_CHUNK=2048, SEND=True, RECEIVE=True), "--num-warps 16"))
for addend in [constexpr(addend_ptr=None), ", *bf16:16"]:
    cases.append((library("expert_parallel/two_level"), "combine_by_nodes", "*bf16:16, *bf16:16, *i32" + ", *bf16:16" * 4 + ", *i64:16" * 6 +
                  ", i64, i32:16, i32:16, i64, i64, i64, i32" +
                  constexpr(WORLD=16, NODE_SIZE=8, TOP_K=8, SLOTS=8, CHUNK=2048, SEND=True, RECEIVE=True) + addend, "--num-warps 8"))
cases.append((library("moe/block_scales"), "quantize_rows", "*bf16:16, *fp8e4nv:16, *fp32:16, *i32, i32, i32:16" + constexpr(CHUNK=2048)))
cases.append((library("expert_parallel/high_throughput"), "combine_by_channels", "*bf16:16, *bf16:16, *i32, *bf16:16" + ", *i64:16" * 4 + ", i64, i32:16, i32:16, i64, i64, i32" +
              constexpr(WORLD=8, TOP_K=8, SLOTS=8, WINDOW=8, ROWS=8, CHUNK=1024), "--num-warps 16"))
places = constexpr(CHUNK=512, PART=64, EXPERTS=256)
cases.append((library("expert_parallel/high_throughput"), "count_slots_of_call", "*i32, *i32:16, i64, i32" + places, "--num-warps 16"))
cases.append((library("expert_parallel/high_throughput"), "place_slots_of_call", "*i32, *i32:16, *i32:16, *i32:16, *i32:16, i64, i32" + places + constexpr(COUNTS=16), "--num-warps 16"))
for node_size, zeros in [(8, constexpr(zeros_ptr=None)), (4, ", *bf16:16")]:
    cases.append((library("expert_parallel/low_latency"), "combine", "*bf16:16, *bf16:16, *i32, *bf16:16, *i64:16" + zeros + ", *i64:16" * 3 +
                  ", i64, i32:16, i32:16, i64, i64, i64, i32" + constexpr(WORLD=8, NODE_SIZE=node_size, TOP_K=8, CHUNK=8192, ROWS=8, ROW_CHUNK=1024, SEND=True, RECEIVE=True),
                  "--num-warps 8"))
bulk, stored = dict(CHUNK=3584, CHUNKS=2), dict(CHUNK=1024, CHUNKS=0)
for columns, stages, transposed, activation, sent in [(256, 3, True, "swiglu", bulk if arch == "sm_90a" else stored), (128, 4, False, "none", stored)]:
    side = dict(BLOCK_M=64, BLOCK_N=64, BLOCK_K=32) if arch == "sm_89" else dict(BLOCK_M=128, BLOCK_N=columns, BLOCK_K=64)  # by shared memory
    products = constexpr(**side, GROUP_M=8, B_TRANSPOSED=transposed)
    options = f"--num-warps 8 --num-stages {stages}"
    cases.append((library("expert_parallel/fused"), "dispatch_gemm", "*bf16:16, *i32, *bf16:16, *bf16:16, *bf16:16, *bf16:16, *i32:16, *i64:16, *i64:16" + ", *i32:16" * 8 +
                  ", *i64:16" * 5 + ", i64" + ", i32:16" * 4 + ", i64" * 4 + ", i32" +
                  constexpr(WORLD=8, TOP_K=8, SENDERS=24, PACE=93, PART=128, EXPERTS=256, LOCAL=32, UNIT=16, **sent) + products +
                  constexpr(ACTIVATION=activation, PRECISION="ieee"), options, *(["tight"] if arch == "sm_90a" else [])))
    cases.append((library("expert_parallel/fused"), "gemm_combine", "*bf16:16, *bf16:16, *bf16:16, *fp32" + ", *i32:16" * 4 + ", *bf16:16" + ", *i64:16" * 4 +
                  ", i64" + ", i32:16" * 4 + ", i64, i32" + constexpr(WORLD=8, TOP_K=8, CHUNK=2048) + products + constexpr(PRECISION="ieee") +
                  (", *bf16:16" if transposed else constexpr(addend_ptr=None)), options))
cases.append((library("expert_parallel/fused"), "skip_combine", "*i64:16, *i64:16", "--num-warps 1"))
of_slots = constexpr(weights_ptr=None, slot_of_row_ptr=None, slot_values_ptr=None)
for weights in [", *fp32:16, *fp32:16" + of_slots, constexpr(choices_ptr=None, values_ptr=None) + ", *fp32:16, *i32:16, *fp32:16",
                constexpr(choices_ptr=None, values_ptr=None) + of_slots]:
    cases.append((library("moe/backward"), "rows_backward", "*bf16:16, *bf16:16, *bf16:16, *bf16:16, *i32" + weights + ", i32, i32:16, i32, i32" +
                  constexpr(TOP_K=8, SLOTS=8, EXPERTS=64, BLOCK=1024)))
for gathered in [0, 8]:
    cases.append((library("moe/backward"), "weight_gradient", "*bf16:16, *bf16:16, *fp32:16, *i32" + (", *i32" if gathered else constexpr(slot_of_row_ptr=None)) +
                  ", i32, i32:16, i32:16" + constexpr(A_SLOTS=0, B_SLOTS=gathered, ADD=True, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, PRECISION="ieee"),
                  "--num-warps 8 --num-stages 3"))
cases.append((library("moe/backward"), "router_backward", "*fp32:16, *i32:16, *fp32:16, *fp32:16, *bf16:16, i32, i32, i32, fp32" +
              constexpr(TOP_K=8, SLOTS=8, EXPERTS=256, BLOCK=4, SIGMOID=False, NORMALIZED=True)))
cases.append((library("moe/backward"), "pack_choices", "*i32:16, *fp32:16, *fp32:16, i32" + constexpr(TOP_K=8, SLOTS=8, BLOCK=64)))
cases.append((library("moe/backward"), "add_elements", "*bf16:16, *bf16:16, *bf16:16, i32" + constexpr(BLOCK=1024)))
for kernel in ["softmax", "softmax_pairs"]:
    cases.append((library("row_wise"), kernel, "*bf16:16, *bf16:16" + ", i32:16" * 4 + constexpr(BLOCK=4096), "--num-warps 8"))
for kernel in ["rms_norm", "rms_norm_pairs"]:
    cases.append((library("row_wise"), kernel, "*bf16:16, *bf16:16, *bf16:16" + ", i32:16" * 4 + ", fp32" + constexpr(BLOCK=4096),
                  "--num-warps 8"))
cases.append((library("row_wise"), "layer_norm", "*bf16:16, *bf16:16, *bf16:16, *bf16:16" + ", i32:16" * 4 + ", fp32" + constexpr(BLOCK=4096),
              "--num-warps 8"))

# Every kernel of the library is in the list: the functions of its files that no other function there calls and no other file imports.
texts = {}
for folder, _, files in os.walk(kernels_folder):
    for name in files:
        if name.endswith(".py"):
            texts[os.path.join(folder, name)] = open(os.path.join(folder, name), encoding="utf-8").read()
imported = set(re.findall(r"\w+", " ".join(names for text in texts.values() for names in re.findall(r"^from \.[\w.]+ import (\([^)]*\)|.*)", text, re.M))))
for path, text in texts.items():
    if path in not_for_arch:
        continue
    for kernel in re.findall(r"^@triton\.jit.*\ndef (\w+)", text, re.M):
        is_called = kernel in imported or len(re.findall(rf"\b{kernel}\(", text)) > 1
        if not is_called and not any(case[0] == path and case[1] == kernel for case in cases):
            sys.exit(f"{path}: kernel {kernel} has no case in {__file__}")

if arch in ["sm_89", "sm_100a"] and not os.environ.get("CONFORMANCE_ALL"):
    seen = set()
    cases = [case for case in cases if (case[:2] not in seen and not seen.add(case[:2])) or (arch == "sm_89" and "fp8" in case[2])]

os.environ["DITRON_PTXAS"] = ""  # each kernel is assembled below, with the log kept
failures = 0
with tempfile.TemporaryDirectory() as scratch:
    for case in cases:
        path, kernel, signature = case[:3]
        options = case[3].split() if len(case) > 3 else []
        ptx_file = os.path.join(scratch, kernel + ".ptx")
        command = [ditron, "compile", "--quiet", f"{path}:{kernel}", "--signature", signature, "--target",
                   f"cuda:{arch}", "--emit", "asm", "-o", ptx_file] + options
        compiled = subprocess.run(command, capture_output=True, text=True)
        if compiled.returncode:
            failures += 1
            print(f"{kernel} ({signature}): does not compile\n{compiled.stdout}{compiled.stderr}")
            continue
        assembled = subprocess.run([ptxas, f"-arch={arch}", "-v", ptx_file, "-o", os.path.join(scratch, "out.cubin")],
                                   capture_output=True, text=True)
        if assembled.returncode:
            failures += 1
            print(f"{kernel} ({signature}): ptxas refuses it\n{assembled.stderr}")
            continue
        registers = re.search(r"Used (\d+) registers", assembled.stderr).group(1)
        spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", assembled.stderr))
        print(f"{kernel}: {registers} registers, {spills} bytes of spills")
        if len(case) > 4 and spills > may_spill[case[4]]:
            failures += 1
            print(f"{kernel} ({signature}): must not spill more than {may_spill[case[4]]} bytes")
print(f"{len(cases)} kernels, {failures} failures")
sys.exit(1 if failures else 0)
