# SPDX-License-Identifier: Apache-2.0
"""The results of a run: a JSON file that is whole at any time, and a table."""
import json
import os
import threading
import time

import models

# A result's state. What was cut ran out of time and says nothing about weft; a test that should have been
# over is failed then.
PASSED, FAILED, SKIPPED, CUT = "passed", "failed", "skipped", "cut"
# PyTorch's failures are no failure of weft.
OF_OTHERS = ("peer", "trained_peer")


class Report:
    def __init__(self, path, **about):
        self.path, self.began, self.lock = path, time.monotonic(), threading.Lock()
        self.all = {"format": 1, "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "complete": False,
                    "seconds": 0.0, **about, "results": []}
        self.write()

    def write(self):
        self.all["seconds"] = round(time.monotonic() - self.began, 1)
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            json.dump(self.all, f, indent=1)
            f.write("\n")
        os.replace(self.path + ".new", self.path)

    def add(self, kind, name, state, why="", seconds=0.0, **figures):
        """Adds a result, and prints its line."""
        figure = short(figures)
        with self.lock:
            self.all["results"].append({"kind": kind, "name": name, "state": state, "why": why,
                                        "seconds": round(seconds, 2), **figures})
            self.write()
            print(f"{state:8s}{kind:12s} {name:34s}{seconds:7.1f} s  {figure}{'  ' if figure and why else ''}{why}",
                  flush=True)

    def of(self, kind, name=None):
        return [r for r in self.all["results"] if r["kind"] == kind and name in (None, r["name"])]

    def failures(self):
        return [r for r in self.all["results"] if r["state"] == FAILED and r["kind"] not in OF_OTHERS]

    def close(self):
        self.all["complete"] = True
        self.write()


def short(figures):
    if "tflops" in figures:
        return f"{figures['tflops']:.2f} TFLOP/s"
    if "ms_per_step" in figures:
        return f"{figures['ms_per_step']:.3f} ms a step"
    return ""


def table(report):
    """weft's time of a step beside PyTorch's, as lines."""
    hows = list(dict.fromkeys(r["how"] for r in report.of("peer")))
    lines = ["", f"{'ms a step':16s}{'weft':>10s}" + "".join(f"{h:>17s}" for h in hows) +
             f"{'best/weft':>11s}{'on the host':>13s}"]
    for r in report.of("bench") + report.of("product"):
        ours = r.get("ms_per_step")
        peers = {p["how"]: p.get("ms_per_step") for p in report.of("peer") if p["network"] == r["name"]}
        times = [t for t in peers.values() if t]
        words = [f"{r['name']:16s}", f"{ours:10.3f}" if ours else f"{'-':>10s}"]
        words += [f"{peers[h]:17.3f}" if peers.get(h) else f"{'-':>17s}" for h in hows]
        words.append(f"{min(times) / ours:11.2f}" if times and ours else f"{'-':>11s}")
        plan = r.get("plan", {})
        words.append(f"{plan['nodes_on_host']:7d}/{plan['nodes']:<5d}" if plan else "")
        lines.append("".join(words))
    for r in report.of("product"):
        if r.get("tflops"):
            best = max((p["tflops"] for p in report.of("peer") if p["network"] == r["name"] and p.get("tflops")),
                       default=None)
            lines.append(f"{r['name']}: {r['tflops']:.2f} TFLOP/s" + (f", PyTorch {best:.2f}" if best else ""))
    lines += shares_of_peak(report)
    lines += trained(report)
    states = [r["state"] for r in report.all["results"]]
    lines += [f"FAILED  {r['kind']} {r['name']}: {r['why']}" for r in report.failures()]
    lines.append(", ".join(f"{states.count(s)} {s}" for s in (PASSED, FAILED, SKIPPED, CUT)))
    return lines


def shares_of_peak(report):
    """What a network's products reach of the largest product of their type in this run, here and in PyTorch."""
    lines = []
    for r in report.of("bench"):
        if not r.get("tflops"):
            continue
        compute = models.compute_of(r["name"])
        peak = max((p["tflops"] for p in report.of("product") if p.get("tflops") and models.compute_of(p["name"]) == compute),
                   default=None)
        best = max((p["tflops"] for p in report.of("peer") if p["network"] == r["name"] and p.get("tflops")), default=None)
        lines.append(f"{r['name']}: {r['tflops']:.2f} TFLOP/s of products" + (f", {r['tflops'] / peak:.2f} of the largest" if peak else "") +
                     (f", PyTorch {best:.2f}" if best else ""))
    return lines


def trained(report):
    """The same of whole jobs, with their optimizer; beside them the plan, which is all that the GPU computes of a
    step with a ps: it waits for the rest."""
    columns = {(kind, r.get("way") or r["how"]): None for kind in ("training", "trained_peer") for r in report.of(kind)}
    if not report.of("training"):
        return []
    lines = ["", f"{'ms a step':16s}{'the plan':>10s}" + "".join(f"{('weft, ' if kind == 'training' else '') + what:>17s}"
                                                for kind, what in columns)]
    for network in dict.fromkeys(r["network"] for r in report.of("training")):
        ms = [next((r["ms_per_step"] for r in report.of(kind) if r["network"] == network and "ms_per_step" in r and
                    what in (r.get("way"), r.get("how"))), None) for kind, what in columns]
        plan = next((r.get("ms_per_step") for r in report.of("bench", network)), None)
        lines.append(f"{network:16s}" + (f"{plan:10.3f}" if plan else f"{'-':>10s}") + "".join(f"{x:17.3f}" if x else f"{'-':>17s}" for x in ms))
    return lines
