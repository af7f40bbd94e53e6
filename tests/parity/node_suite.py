# SPDX-License-Identifier: Apache-2.0
"""onnx's own backend node suite through `weft run`.

    node_suite.py WEFT [PATTERN]

Every case of the installed onnx package is run, in a process of its own, and held against the outputs
that lie with it. A case passes, or ends with exit code 3 and a sentence (an operation, attribute or
type that weft does not have); anything else fails. So does exit code 3 where `weft help operators`
says that all operations of the case are there for its types. At least LEAST cases must pass. With
PATTERN only the cases whose names hold it are run, each is printed, and LEAST does not count.
"""
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}; set WEFT_PYTHON to an interpreter that has it")
    sys.exit(77)

LEAST = 1028
CASES = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
# The tolerance of onnx's own runner.
RELATIVE, ABSOLUTE = 1e-3, 1e-7
# The package's bfloat16 results are cut off; weft rounds to nearest, as the specification says.
RELATIVE_BF16 = 2.0**-7
# What is drawn cannot be compared; shapes and types are.
DRAWN = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
         "Multinomial", "Dropout"}


OLDEST = 13  # of the opsets that weft reads


class Skip(Exception):
    """A case that no .npy file can carry."""


def tensor(path, value):
    """The content of a graph input or output."""
    with open(path, "rb") as f:
        data = f.read()
    t = onnx.TensorProto.FromString(data)
    if t.data_type in (0, onnx.TensorProto.STRING) or t.data_type >= onnx.TensorProto.COMPLEX64:
        raise Skip("a type that no npy file has")
    if value.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16:
        # numpy has none: the package's files say uint16, and weft's have float32.
        halves = np.frombuffer(t.raw_data, "<u2")
        return (halves.astype(np.uint32) << 16).view(np.float32).reshape(t.dims)
    return numpy_helper.to_array(t)


def compare(value, want, got, drawn):
    name, kind = value.name, value.type.tensor_type.elem_type
    relative = RELATIVE_BF16 if kind == onnx.TensorProto.BFLOAT16 else RELATIVE
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"{name}: {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if drawn or want.size == 0:
        return None
    if want.dtype == np.bool_ or not np.issubdtype(want.dtype, np.floating):
        same = np.array_equal(want, got)
    else:
        with np.errstate(all="ignore"):
            same = np.allclose(got.astype(np.float64), want.astype(np.float64), relative, ABSOLUTE,
                               equal_nan=True)
    return None if same else f"{name}: other values"


def renewed(model):
    """The model under the oldest opset that weft reads, if its operations mean the same there."""
    for used in model.opset_import:
        if used.domain in ("", "ai.onnx") and used.version < OLDEST and all(
                n.domain == "" and onnx.defs.get_schema(n.op_type, OLDEST).since_version <= used.version
                for n in model.graph.node):
            used.version = OLDEST
    return model


def types_by_value(model):
    """numpy's names of the types of the values that are known."""
    def name(kind):
        if kind == onnx.TensorProto.BFLOAT16:
            return "bfloat16"
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind)).name if kind else "?"

    graph = onnx.shape_inference.infer_shapes(model).graph
    found = {t.name: name(t.data_type) for t in graph.initializer}
    for v in list(graph.input) + list(graph.output) + list(graph.value_info):
        found[v.name] = name(v.type.tensor_type.elem_type)
    return found


def promised(model, listing):
    """Whether the listing has all operations of a model for their types."""
    if any(used.domain in ("", "ai.onnx") and used.version < OLDEST for used in model.opset_import):
        return False
    if any(a.type == onnx.AttributeProto.GRAPH for n in model.graph.node for a in n.attribute):
        return False
    types, all_types = types_by_value(model), set(listing["", "Identity"]["types"])
    for n in model.graph.node:
        row = listing.get((n.domain, n.op_type))
        if not row or any(types.get(v, "?") not in all_types for v in list(n.input) + list(n.output)
                          if v):
            return False
        by = n.output[0] if row["typed_by"] < 0 else n.input[row["typed_by"]] if n.input else None
        if row["types"] and types[by] not in row["types"]:
            return False
    return True


def run(weft, listing, case):
    """(outcome, word): passed, unsupported, skipped or failed."""
    model = renewed(onnx.load(os.path.join(CASES, case, "model.onnx")))
    drawn = any(n.op_type in DRAWN for n in model.graph.node) and "ratio" not in case
    if any(not v.type.HasField("tensor_type")
           for v in list(model.graph.input) + list(model.graph.output)):
        return "skipped", "not tensors"
    for data in sorted(glob.glob(os.path.join(CASES, case, "test_data_set_*"))):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            onnx.save(model, path)
            args = [weft, "run", path, "--threads", "1", "--output-dir",
                    os.path.join(folder, "out")]
            try:
                fed = [v for v in model.graph.input]
                for i, v in enumerate(fed):
                    path = os.path.join(folder, f"in_{i}.npy")
                    np.save(path, tensor(os.path.join(data, f"input_{i}.pb"), v))
                    args += ["--input", f"{v.name}={path}"]
                wanted = [tensor(os.path.join(data, f"output_{i}.pb"), v)
                          for i, v in enumerate(model.graph.output)]
            except Skip as why:
                return "skipped", str(why)
            p = subprocess.run(args, capture_output=True, text=True, timeout=60)
            if p.returncode == 3 and promised(model, listing):
                return "failed", "is in the listing: " + p.stderr.strip()
            if p.returncode == 3:
                return "unsupported", p.stderr.strip()
            if p.returncode != 0:
                return "failed", f"exit code {p.returncode}: {p.stderr.strip()}"
            for v, want in zip(model.graph.output, wanted):
                name = v.name.replace("/", "_").replace(":", "_")
                wrong = compare(v, want, np.load(os.path.join(folder, "out", name + ".npy")),
                                drawn)
                if wrong:
                    return "failed", wrong
    return "passed", ""


def main():
    weft, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    cases = sorted(c for c in os.listdir(CASES) if pattern in c)
    counts = {}
    listed = subprocess.run([weft, "help", "operators", "--json"], check=True, capture_output=True)
    listing = {(row["domain"], row["operation"]): row for row in json.loads(listed.stdout)}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, (outcome, word) in zip(cases, pool.map(lambda c: run(weft, listing, c), cases)):
            counts[outcome] = counts.get(outcome, 0) + 1
            if outcome == "failed" or pattern:
                print(f"{outcome}: {case} {word}")
    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))
    enough = pattern or counts.get("passed", 0) >= LEAST
    if not enough:
        print(f"fewer than {LEAST} passed")
    sys.exit(0 if enough and not counts.get("failed") else 1)


main()
