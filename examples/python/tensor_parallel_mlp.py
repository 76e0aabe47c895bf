"""A tensor-parallel MLP that trains, next to the same MLP on one rank.

    python examples/python/tensor_parallel_mlp.py                              # the GPUs of this process, else four simulated ones
    torchrun --nproc_per_node 2 examples/python/tensor_parallel_mlp.py         # a process and a GPU for each rank

Prints the loss of every fifth step of both, ends with 0 if they agree.
"""
import argparse
import os
import sys

import torch
from torch.nn.functional import silu

import ditron
import ditron.torch

TOKENS, WIDTH, HIDDEN = 64, 32, 128
RATE = 0.5
TOLERANCE = 1e-2  # of the loss; the operators multiply fp32 as TF32


class ParallelMLP(torch.nn.Module):
    """silu(x @ up.T) @ down.T. Each rank has a part of the tokens and a part of the hidden units."""

    def __init__(self, world, up, down):
        super().__init__()
        self.world = world
        self.up = torch.nn.Parameter(up.chunk(world.ranks)[world.rank].clone())
        self.down = torch.nn.Parameter(down.chunk(world.ranks, dim=1)[world.rank].clone())

    def forward(self, x):
        hidden = ditron.torch.ag_gemm(x, self.up, self.world)  # all tokens, own hidden units
        return ditron.torch.gemm_rs(silu(hidden), self.down, self.world)  # own tokens, summed over the ranks


class PlainMLP(torch.nn.Module):
    """The same on one rank."""

    def __init__(self, up, down):
        super().__init__()
        self.up = torch.nn.Parameter(up.clone())
        self.down = torch.nn.Parameter(down.clone())

    def forward(self, x):
        return silu(x @ self.up.T) @ self.down.T


def losses(model, forward, x, target, steps, total):
    """Trains; the loss over all tokens before each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        # The sum over the ranks' rows is the mean over all: each rank's gradients come from all rows, through the operators.
        loss = (forward(x) - target).square().sum() / (TOKENS * WIDTH)
        loss.backward()
        optimizer.step()
        found.append(total(loss.detach()).item())
    return found


def train(world, options):
    """The program of every rank."""
    numbers = torch.Generator().manual_seed(0)  # of its own: ranks may be threads, and all begin with the same
    up, down = torch.randn(HIDDEN, WIDTH, generator=numbers) / WIDTH**0.5, torch.randn(WIDTH, HIDDEN, generator=numbers) / HIDDEN**0.5
    x = torch.randn(TOKENS, WIDTH, generator=numbers)
    target = torch.tanh(x.flip(1))
    up, down, x, target = (each.to("cuda" if world.is_gpu else "cpu") for each in (up, down, x, target))

    model = ParallelMLP(world, up, down)
    forward = torch.compile(model, fullgraph=True, backend=options.compile) if options.compile else model
    rows = [each.chunk(world.ranks)[world.rank] for each in (x, target)]
    parallel = losses(model, forward, *rows, options.steps, lambda loss: ditron.torch.all_gather(loss.view(1), world).sum())
    reference = PlainMLP(up, down)
    plain = losses(reference, reference, x, target, options.steps, lambda loss: loss)
    torch.testing.assert_close(model.up, reference.up.chunk(world.ranks)[world.rank], rtol=TOLERANCE, atol=TOLERANCE)
    return parallel, plain


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=21)
    parser.add_argument("--compile", metavar="BACKEND", help="through torch.compile: inductor, aot_eager, eager")
    options = parser.parse_args()
    world = ditron.World(from_environment=True) if "RANK" in os.environ else ditron.World(torch.cuda.device_count() or 4)
    parallel, plain = world.run(train, options)[0]
    if world.local_ranks[0] == 0:
        print(f"{world.ranks} ranks of {world.target}")
        for step in range(0, options.steps, 5):
            print(f"step {step:2}  tensor parallel {parallel[step]:.4f}  one rank {plain[step]:.4f}")
    agrees = all(abs(ours - theirs) <= TOLERANCE * theirs for ours, theirs in zip(parallel, plain))
    return 0 if agrees and parallel[-1] < parallel[0] / 2 else "the losses do not agree, or do not fall"


if __name__ == "__main__":
    sys.exit(main())
