# SPDX-License-Identifier: Apache-2.0
"""PyTorch's times for networks: loss and gradients over one batch, without an optimizer.

    peers.py HOW [--train] [--prepare NETWORK,...] [--quick] [--device cuda] [--seconds S]

Reads the names of networks, one to a line, and prints a JSON object for each, in that order: the time of a step as the
median, least and most of five windows, or `error`. With --prepare some are made ready before the first is asked for, which
takes a compiler minutes. A network is one of models.py; product-4096, product-4096-bf16 and product-4096-f16 are chains of
eight products of 4096 x 4096. HOW:

    eager            as it is
    graph            eager, captured as a CUDA graph once and replayed
    compile          torch.compile
    reduce-overhead  torch.compile(mode="reduce-overhead"), which uses CUDA graphs

Weights, inputs and gradients stay on the device. With --train each step also copies its batch from pinned
memory, the next of BATCHES, and updates the weights (SGD); nobody looks at the loss. Products are in f32 (no TF32), or in bfloat16 by
autocast where the network says so; images are channels_last then.
"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models  # noqa: E402

WINDOWS, WARM_UP, PRODUCTS, BATCHES = 5, 5, 8, 8


def product_step(torch, n, device, how, dtype):
    a = ((torch.rand(n, n, device=device) - 0.5) * (12 / n) ** 0.5).to(dtype)

    def chain(x):
        for _ in range(PRODUCTS):
            x = a @ x
        return x.sum()

    run = compiled(torch, chain, how)
    return lambda: run(a), lambda: None


def model_step(torch, name, quick, device, how, train=False):
    """(a step, what the host does in front of it)."""
    size = models.size_of(name, quick)
    module, inputs = models.network(name, size)
    module = module.to(device)
    tables, stay = module.model.on_host() if hasattr(module.model, "on_host") else ([], [])
    for part in tables:
        part.to("cpu")
    on_host, inputs = inputs, {k: v if k in stay else v.to(device) for k, v in inputs.items()}
    narrow = size.get("compute") == "bfloat16"
    if narrow and inputs["x"].dim() == 4:
        module = module.to(memory_format=torch.channels_last)
        inputs["x"] = inputs["x"].to(memory_format=torch.channels_last)
    parameters = list(module.parameters())
    loss = compiled(torch, module, how)
    sgd = torch.optim.SGD(parameters, lr=0.1)

    def step():
        for p in parameters:
            p.grad = None
        with torch.autocast(device.split(":")[0], torch.bfloat16, enabled=narrow):
            value = loss(**inputs)
        value.backward()
        if train:
            sgd.step()

    return step, feeding(on_host, inputs, device) if train else lambda: None


def feeding(on_host, inputs, device):
    """A function that copies the next batch to where a step reads it."""
    batches = [{k: v.clone().pin_memory() if device != "cpu" else v.clone() for k, v in on_host.items()}
               for _ in range(BATCHES)]
    turn = 0

    def feed():
        nonlocal turn
        for k, v in batches[turn % BATCHES].items():
            inputs[k].copy_(v, non_blocking=True)
        turn += 1

    return feed


def compiled(torch, function, how):
    mode = {"compile": "default", "reduce-overhead": how}.get(how)
    return torch.compile(function, mode=mode, dynamic=False) if mode else function


def captured(torch, step):
    """The step as one CUDA graph; it was run on another stream before, as PyTorch wants it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def clock_on(torch, device):
    """A function that gives the milliseconds of n steps."""
    def on_host(step, n):
        begin = time.perf_counter()
        for _ in range(n):
            step()
        return 1e3 * (time.perf_counter() - begin)

    def on_gpu(step, n):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(n):
            step()
        last.record()
        last.synchronize()
        return first.elapsed_time(last)

    return on_host if device == "cpu" else on_gpu


class Network:
    """One that is ready to be timed."""

    def __init__(self, torch, name, args):
        begin = time.perf_counter()
        self.name, self.batch, self.flops = name, None, None
        if name.startswith("product-"):
            n, compute = models.product(name.removeprefix("product-"))
            step, feed = product_step(torch, int(n), args.device, args.how, getattr(torch, compute))
            self.flops = PRODUCTS * 2 * int(n) ** 3
        else:
            size = models.size_of(name, args.quick)
            self.batch, self.flops = size["batch"], models.flops(name, size)
            step, feed = model_step(torch, name, args.quick, args.device, args.how, args.train)
        if args.how == "graph":
            step = captured(torch, step)
        self.step = step if not args.train else lambda: (feed(), step())
        for _ in range(WARM_UP):
            self.step()
        if args.device != "cpu":
            torch.cuda.synchronize()
        self.ready_s = time.perf_counter() - begin

    def figures(self, torch, device, seconds):
        clock = clock_on(torch, device)
        steps = max(1, int(seconds * 1e3 / WINDOWS / max(1e-3, clock(self.step, 3) / 3)))
        times = sorted(clock(self.step, steps) / steps for _ in range(WINDOWS))
        ms = times[WINDOWS // 2]
        found = {"ms_per_step": ms, "ms_least": times[0], "ms_most": times[-1], "steps_per_s": 1e3 / ms,
                 "ready_s": self.ready_s, "torch": torch.__version__,
                 "device_bytes": torch.cuda.max_memory_allocated() if device != "cpu" else None}
        if self.batch:
            found.update(batch=self.batch, examples_per_s=self.batch * 1e3 / ms)
        if self.flops:
            found.update(tflops=self.flops / (ms * 1e9))
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("how", choices=["eager", "graph", "compile", "reduce-overhead"])
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--prepare", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if args.how not in ("eager", "graph"):
        import torch._dynamo

        torch._dynamo.config.recompile_limit = 64  # the losses of all networks are one function
    ready = {}

    def prepare(name):
        """None, or why it cannot be timed."""
        try:
            ready[name] = ready.get(name) or Network(torch, name, args)
            return None
        except Exception as error:  # noqa: BLE001
            return f"{type(error).__name__}: {str(error)[:300]}"

    errors = {name: prepare(name) for name in args.prepare.split(",") if name}
    for name in map(str.strip, sys.stdin):
        error = errors.get(name) or prepare(name)
        print(json.dumps({"error": error} if error else ready.pop(name).figures(torch, args.device, args.seconds)), flush=True)
        if args.device != "cpu":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()


if __name__ == "__main__":
    main()
