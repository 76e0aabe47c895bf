"""What PyTorch takes for attention, forward and backward, by cuDNN and by its FlashAttention: medians over rounds of device time.

usage: attention_peers.py SHAPE causal|whole DTYPE ROUNDS OUT.json      SHAPE as `ditron bench attention` has it

A backend that does not support a shape has no number.
"""
import json
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch_peers import DTYPES, microseconds, normal

BACKENDS = {'cudnn': SDPBackend.CUDNN_ATTENTION, 'flash': SDPBackend.FLASH_ATTENTION}


def times(backend, tensors, gradient, causal, rounds):
    grouped = tensors[0].shape[1] != tensors[1].shape[1]

    def forward():
        with sdpa_kernel([backend]):
            return torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal, enable_gqa=grouped)

    with torch.no_grad():
        result = {'forward': microseconds(forward, rounds)}
    out = forward()
    result['backward'] = microseconds(lambda: torch.autograd.grad(out, tensors, gradient, retain_graph=True), rounds)
    return result


def main():
    shape, seen, dtype, rounds, path = sys.argv[1:]
    batch, heads, kv_heads, tokens, head_dim = map(int, shape.split('x'))
    tensors = [normal(DTYPES[dtype], batch, count, tokens, head_dim).requires_grad_() for count in (heads, kv_heads, kv_heads)]
    gradient = normal(DTYPES[dtype], batch, heads, tokens, head_dim)
    result = {'torch': torch.__version__, 'cudnn_version': torch.backends.cudnn.version()}
    for name, backend in BACKENDS.items():
        try:
            result[name] = times(backend, tensors, gradient, seen == 'causal', int(rounds))
        except RuntimeError as error:
            print(f'{name}, {shape}: {str(error).strip().splitlines()[0]}', flush=True)
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(result, file)


if __name__ == '__main__':
    main()
