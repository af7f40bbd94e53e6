# SPDX-License-Identifier: Apache-2.0
"""pack and run, on a host without a GPU: a plug-in whose GPUs are the host's own is packed in its place.

    run_test.py WEFT BUILD PLUGIN [TEST...]
"""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE, os.path.join(HERE, "..", "cluster")]
import models  # noqa: E402
from weftlib import check, main, needs, one_sentence, until  # noqa: E402

needs("numpy", "onnx")
BUILD, PLUGIN = (os.path.abspath(sys.argv.pop(2)) for _ in range(2))
KINDS = {"tests", "gradients", "check", "bench", "product", "peer", "training", "trained_peer", "determinism",
         "convergence", "stages", "workers", "sanitizer", "parity"}
folder = tempfile.mkdtemp(prefix="weft-pack-")
atexit.register(shutil.rmtree, folder)
os.environ["TMPDIR"] = folder  # what a killed run leaves behind goes with it


def pack(out, plugin):
    env = {**os.environ, "WEFT_PYTHON": sys.executable}
    return subprocess.run([os.path.join(HERE, "pack"), BUILD, out, "--plugin", plugin, "--level", "1"], env=env,
                          capture_output=True, text=True, check=False)


def program():
    """The packed program, unpacked once."""
    path = os.path.join(folder, "weft-gpu", "run")
    if not os.path.exists(path):
        out = os.path.join(folder, "gpu.tar." + ("zst" if shutil.which("zstd") else "gz"))
        done = pack(out, PLUGIN)
        check(done.returncode == 0 and " MB\n" in done.stdout, done)
        subprocess.run(["tar", "-C", folder, "-xf", out], check=True)
    return path


def command(out, *words):
    return [sys.executable, program(), "--quick", "--out", out, *words]


def results(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def all_kinds_have_results(weft):
    out = os.path.join(folder, "all.json")
    done = subprocess.run(command(out, "--budget", "200"), capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stdout + done.stderr)
    said = results(out)
    bad = [r for r in said["results"] if r["state"] not in ("passed", "skipped") and not r["kind"].endswith("peer")]
    check(said["complete"] and not bad, f"{bad}")
    check({r["kind"] for r in said["results"]} == KINDS, done.stdout)
    for kind in "tests", "gradients", "bench", "product", "training", "determinism", "convergence", "stages", "workers":
        check(all(r["state"] == "passed" for r in said["results"] if r["kind"] == kind), f"{kind}: {done.stdout}")
    for r in said["results"]:
        if r["kind"] in ("bench", "product"):
            check(r["ms_per_step"] > 0 and r["device"] == "cuda:0" and r["plan"]["device_bytes"] > 0, f"{r}")
            check(r["kind"] == "product" or r["profile"]["operations"], f"{r}")
        if r["kind"] == "training":
            check(r["steps"] == 6 and r["ms_per_step"] > 0 and r["loss"] > 0, f"{r}")
    stages = {r["name"]: r for r in said["results"] if r["kind"] == "stages"}
    differ = stages.pop("compared")["differ_by"]
    check(len(stages) == 4 and all(r["steps"] == 7 for r in stages.values()), f"{stages}")
    check(differ["two workers, one"] == 0 and 0 < differ["one, the processor"] < 1e-3 and
          0 < differ["beside the processor, the processor"] < 1e-3, f"{differ}")
    workers = {r["name"]: r for r in said["results"] if r["kind"] == "workers"}
    differ = workers.pop("compared")["differ_by"]
    check(len(workers) == 3 and all(r["steps"] == 64 and r["updates"] <= 64 for r in workers.values()), f"{workers}")
    check(max(differ.values()) < 1e-3 and differ["one"] == 0, f"{differ}")
    check(", 0 failed, " in done.stdout.splitlines()[-1], done.stdout)


def a_run_that_is_killed_leaves_its_results(weft):
    out = os.path.join(folder, "killed.json")
    process = subprocess.Popen(command(out), stdout=subprocess.DEVNULL)
    try:
        until(lambda: os.path.exists(out) and len(results(out)["results"]) >= 3, "three results")
    finally:
        process.kill()
        process.wait()
    said = results(out)
    check(not said["complete"] and len(said["results"]) >= 3, f"{said}")


def the_budget_is_kept(weft):
    out = os.path.join(folder, "budget.json")
    done = subprocess.run(command(out, "--budget", "2", "--only", "tests,bench"), capture_output=True, text=True,
                          check=False)
    said = results(out)
    check(done.returncode == 0 and said["seconds"] < 30, done.stdout)
    check("cut" in {r["state"] for r in said["results"] if r["kind"] == "bench"}, done.stdout)


def bench_gpu(*words):
    return subprocess.run([os.path.join(BUILD, "bench", "bench_gpu"), *words, "--seconds", "0.02"],
                          capture_output=True, text=True, check=False)


def a_plan_is_measured_on_each_device(weft):
    size = models.size_of("gpt", True)
    job = os.path.join(folder, "gpt.yaml")
    with open(job, "w", encoding="utf-8") as f:
        f.write(models.job("gpt", size))
    words = [job, "--batch", "3", *(f"--below={k}={v}" for k, v in models.below("gpt", size).items())]
    digests = set()
    for device in "cpu", "cpu-remote", "cuda-host:0":
        done = bench_gpu(*words, "--check", "--profile", "2", "--device", device)
        check(done.returncode == 0, done)
        said = json.loads(done.stdout)
        steps = said["profile"]["operations"]
        check(steps["DotAttention"][0] == 1 and all(n > 0 and us > 0 for n, us in steps.values()), f"{steps}")
        check([s[3] for s in said["profile"]["slowest"]] == sorted((s[3] for s in said["profile"]["slowest"]), reverse=True), done)
        check(sum(n for n, _ in steps.values()) >= said["plan"]["nodes"], f"{steps}")
        check(said["device"] == device and said["same_bits"] and said["check"]["largest"] < 1e-4, done)
        check(abs(said["examples_per_s"] - 3e3 / said["ms_per_step"]) < 0.01 * said["examples_per_s"], done)
        if device != "cuda-host:0":
            digests.add(said["digest"])
    check(len(digests) == 1, "a device with the cpu's kernels has other bits than the cpu")
    done = bench_gpu("--product", "16", "--device", "cuda-host:0")
    check(done.returncode == 0 and json.loads(done.stdout)["plan"]["bytes_in"] == 4, done)
    done = bench_gpu(*words[:3])
    check(done.returncode == 2 and 'holds int64; give --below' in one_sentence(done.stderr), done)
    done = bench_gpu(*words, "--device", "tpu")
    check('unknown device "tpu"' in one_sentence(done.stderr), done)


def what_is_missing_is_said(weft):
    out = os.path.join(folder, "none.json")
    for words, env in (("there is no /nowhere.so: ", {"WEFT_CUDA": "/nowhere.so"}),
                       ("this host has no NVIDIA GPU", {"WEFT_CUDA_HOST": "gpus=0"}),
                       ("no NVIDIA driver", {"WEFT_CUDA_HOST": "fail=count error=35"})):
        done = subprocess.run(command(out), env={**os.environ, **env}, capture_output=True, text=True, check=False)
        check(done.returncode == 3 and words in one_sentence(done.stdout), done)
    check(not os.path.exists(out), "there are results")
    done = pack(os.path.join(folder, "none.tar.gz"), "/nowhere.so")
    check(done.returncode == 1 and "there is no /nowhere.so" in one_sentence(done.stderr), done)


main([a_plan_is_measured_on_each_device, all_kinds_have_results, a_run_that_is_killed_leaves_its_results, the_budget_is_kept, what_is_missing_is_said])
