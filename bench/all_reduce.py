#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All-reduce between processes of one host: weft's, gloo's, and copies through shared memory.

all_reduce.py [--torch PYTHON] [--members 2,3,4,8] [--bytes 100000000,4096] [--rounds 31]

weft: build/bench/bench_all_reduce, whole steps, of which the update alone is taken off. gloo: all_reduce of
torch.distributed in as many processes, in the same run. Bandwidth is what a ring moves in and out of each process,
2 (n - 1) / n of the bytes, over the time; of copies the bytes over the time.
"""
import argparse
import os
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "..", "build", "bench", "bench_all_reduce")


def gloo_member(rank, members, port, size, rounds):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=members)
    x = torch.zeros(size // 4)
    times = []
    for i in range(rounds + 3):
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(x)
        times.append(1e3 * (time.perf_counter() - began))
    if rank == 0:
        print(statistics.median(times[3:]))
    dist.destroy_process_group()


def gloo_ms(python, members, size, rounds):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    words = [str(w) for w in (members, port, size, rounds)]
    processes = [subprocess.Popen([python, os.path.abspath(__file__), "--gloo", str(r), *words], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for r in range(members)]
    said = [p.communicate(timeout=300)[0] for p in processes]
    if any(p.returncode for p in processes):
        raise SystemExit(f"gloo with {members} processes did not run")
    return float(said[0])


def main():
    if sys.argv[1:2] == ["--gloo"]:
        return gloo_member(*(int(w) for w in sys.argv[2:7]))
    p = argparse.ArgumentParser()
    p.add_argument("--torch", help="a Python with torch")
    p.add_argument("--members", default="2,3,4,8")
    p.add_argument("--bytes", default="100000000,4096")
    p.add_argument("--rounds", type=int, default=31)
    a = p.parse_args()
    print("load before: %.2f" % os.getloadavg()[0])
    print("| processes | bytes | step ms | update ms | all-reduce ms | GB/s | copy GB/s | share | gloo ms | over gloo |\n" + "|---" * 10 + "|")
    for size in map(int, a.bytes.split(",")):
        rounds = a.rounds if size > 1 << 20 else 10 * a.rounds
        for members in map(int, a.members.split(",")):
            done = subprocess.run([BENCH, str(members), str(size), str(rounds)], check=True, text=True,
                                  stdout=subprocess.PIPE)
            step, update, copy = map(float, done.stdout.split())
            ours = step - update
            moved = 2 * (members - 1) / members * size / 1e6
            gloo = gloo_ms(a.torch, members, size, rounds) if a.torch else float("nan")
            print("| %d | %d | %.4f | %.4f | %.4f | %.2f | %.2f | %.2f | %.4f | %.2f |" % (
                members, size, step, update, ours, moved / ours, size / 1e6 / copy, moved / ours / (size / 1e6 / copy),
                gloo, gloo / ours), flush=True)
    print("load after: %.2f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()
