# SPDX-License-Identifier: Apache-2.0
"""PyTorch's time for one network: loss and gradients over one batch, without an optimizer.

    peers.py NETWORK HOW [--train] [--quick] [--device cuda] [--seconds S]
    peers.py product-N[-bf16 | -f16] HOW ...

NETWORK is one of models.py; product-4096 is a chain of eight products of 4096 x 4096 in f32 (or bfloat16, or float16). HOW:

    eager            as it is
    graph            eager, captured as a CUDA graph once and replayed
    compile          torch.compile
    reduce-overhead  torch.compile(mode="reduce-overhead"), which uses CUDA graphs

Weights, inputs and gradients stay on the device. With --train each step also copies its batch from pinned
memory, the next of BATCHES, and updates the weights (SGD); nobody looks at the loss. Products are in f32 (no TF32), or in bfloat16 by
autocast where the network says so; images are channels_last then.
Prints a JSON object; the time of a step is the median, least and most of five windows.
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
    if how == "compile":
        return torch.compile(function)
    return torch.compile(function, mode=how) if how == "reduce-overhead" else function


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("network")
    parser.add_argument("how", choices=["eager", "graph", "compile", "reduce-overhead"])
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    begin = time.perf_counter()
    if args.network.startswith("product-"):
        n, compute = models.product(args.network.removeprefix("product-"))
        n = int(n)
        (step, feed), batch = product_step(torch, n, args.device, args.how, getattr(torch, compute)), None
    else:
        n, batch = None, models.size_of(args.network, args.quick)["batch"]
        step, feed = model_step(torch, args.network, args.quick, args.device, args.how, args.train)
    if args.how == "graph":
        step = captured(torch, step)
    one = step if not args.train else lambda: (feed(), step())
    for _ in range(WARM_UP):
        one()
    clock = clock_on(torch, args.device)
    ready_s = time.perf_counter() - begin
    steps = max(1, int(args.seconds * 1e3 / WINDOWS / max(1e-3, clock(one, 3) / 3)))
    times = sorted(clock(one, steps) / steps for _ in range(WINDOWS))
    ms = times[WINDOWS // 2]
    result = {"ms_per_step": ms, "ms_least": times[0], "ms_most": times[-1], "steps_per_s": 1e3 / ms,
              "ready_s": ready_s, "torch": torch.__version__,
              "device_bytes": torch.cuda.max_memory_allocated() if args.device != "cpu" else None}
    if batch:
        result.update(batch=batch, examples_per_s=batch * 1e3 / ms)
        flops = models.flops(args.network, models.size_of(args.network, args.quick))
        if flops:
            result.update(tflops=flops / (ms * 1e9))
    else:
        result.update(n=n, tflops=PRODUCTS * 2 * n ** 3 / (ms * 1e9))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
