# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch and Keras to ONNX files that weft can train, and the trained weights back.

    import weft_export
    weft_export.export(model, example_inputs, "model.onnx")   # then: weft train job.yaml
    weft_export.load(model, "trained.onnx")                   # weft export JOB -o trained.onnx

The exporters of both frameworks write a file for inference by default: BatchNormalization is folded
into other layers, Dropout and biases of zero are left out, parameters that are equal are merged, and
weights lose their names. `export` chooses options under which the file is the model as it is trained:

  - each parameter is an initializer under its own name, in its own shape: the key of the state_dict
    (PyTorch) or the path of the variable (Keras, "dense/kernel")
  - tied parameters are one initializer; BatchNormalization and Dropout are in the file
  - the first axis of each input is the batch, and has no fixed size
  - metadata "weft.variable.NAME" says which initializers are trained, frozen (requires_grad=False,
    trainable=False) or running statistics, so nobody has to guess

It changes nothing in the model. Where onnxruntime is installed, the file's outputs are compared with
the model's in inference, at two batch sizes. What could not be kept is in the report, one line each,
which is printed and returned.

Needs onnx, and PyTorch or Keras 3 (with tf2onnx on TensorFlow). This file stands alone: copy it.
"""
import contextlib
import functools
import glob
import inspect
import io
import json
import linecache
import logging
import os
import re
import sys
import warnings

import numpy as np

PREFIX = "weft.variable."
OPSET = 18
TOLERANCE = 1e-3  # of outputs in onnxruntime, relative to the largest: other kernels, other rounding


class ExportError(Exception):
    """The model cannot be exported: the message says why, and `hint` what to do, if it is known."""

    def __init__(self, message, hint=""):
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message, self.hint = message, hint


class ArgumentError(ExportError):
    """An argument of `export` is wrong."""


class Report:
    """What `export` or `load` did: `lines`, of which `lost` name what could not be kept, and of
    these `penalties` what a Keras model adds to its loss. `inputs`: names, in the order of the
    example inputs. `compared`: whether the file's outputs were held against the model's."""

    def __init__(self, path):
        self.path, self.lines, self.lost, self.penalties = path, [], [], []
        self.inputs, self.compared = [], False

    def say(self, line):
        self.lines.append(line)

    def lose(self, line):
        self.lines.append("not kept: " + line)
        self.lost.append(line)

    def __str__(self):
        return "\n".join(f"{self.path}: {line}" for line in self.lines)


class Variable:
    """A parameter or running statistic of a model."""

    def __init__(self, name, kind, value, aliases=()):
        self.name, self.kind = name, kind  # trainable, frozen, statistic
        self.value = np.array(value)  # a copy: frameworks lend their memory
        self.aliases = aliases  # other names of the same parameter


def export(model, example_inputs, path, *, input_names=None, output_names=None, quiet=False):
    """Writes `model` to the ONNX file `path`, for training with weft. Returns a Report.

    example_inputs: one array or tensor, or a tuple of them, as the model takes it; the first axis of
        each is the batch. Their values do not matter, but for ids, which must be valid.
    input_names, output_names: of the file; by default those of the model, where it has any: the
        parameters of forward, and the keys of a dict or named tuple that it returns.

    The model stays as it is: its modes, its weights and statistics, and the state of random numbers.
    PyTorch: a model in eval mode is exported in train mode; of a model in train mode, modules that
    are in eval mode (frozen BatchNormalization) stay so.
    Raises ExportError when the file would not be the model.
    """
    report = Report(path)
    route = _route(model)
    inputs = route.inputs(model, example_inputs)
    input_names, output_names = _check_names(input_names, output_names, len(inputs))
    proto, variables = route.to_onnx(model, inputs, input_names, output_names, report)
    _finish(proto, variables, report)
    _check(proto, route, model, inputs, report)
    _save(proto, path)
    if not quiet:
        print(report)
    return report


def compare(model, example_inputs, run):
    """Holds what a file gives against the model, in inference and at two batch sizes.

    run: of a list of arrays, in the order of the inputs, the list of the file's outputs.
    Returns how far they are apart. Raises ExportError if that is more than rounding.
    """
    route = _route(model)
    return _compare(route, model, route.inputs(model, example_inputs), run)


def load(model, path, *, quiet=False):
    """Puts trained weights into `model`, by name, and exactly. Returns a Report: what the file lacks
    is left as it is and named, and so is what the model has no place for.

    path: an ONNX file (`weft export JOB -o trained.onnx`), a safetensors file, or the folder of a
        checkpoint (".weft/checkpoints/JOB/step-00001000").
    Raises ValueError for a tensor of another shape or type; then nothing was changed.
    """
    found = read_weights(path)
    report = Report(path)
    put, used = [], set()
    for v, assign in _route(model).slots(model):
        name = next((n for n in (v.name, *v.aliases) if n in found), None)
        if name is None:
            report.lose(f'"{v.name}": the file does not have it; it is as it was')
            continue
        new = found[name]
        if new.shape != v.value.shape or new.dtype != v.value.dtype:
            raise ValueError(f'"{v.name}" is {v.value.dtype}{list(v.value.shape)}, and in {path} '
                             f"{new.dtype}{list(new.shape)}; give the weights of this model")
        put.append((assign, new))
        used.add(name)
    for assign, new in put:
        assign(new)
    report.say(f"{len(put)} tensors loaded by name")
    extra = [n for n in found if n not in used]
    if extra:
        report.lose(f"{len(extra)} tensors that the model has no place for: {_some(extra)}")
    if not quiet:
        print(report)
    return report


def read_weights(path):
    """The weights of an ONNX file, a safetensors file or the folder of a checkpoint: arrays by name."""
    if os.path.isdir(path):
        return _read_checkpoint(path)
    if path.endswith(".safetensors"):
        return _read_safetensors(path)
    import onnx
    from onnx import numpy_helper
    proto = onnx.load(path)
    kinds = {p.key[len(PREFIX):] for p in proto.metadata_props if p.key.startswith(PREFIX)}
    arrays = {i.name: numpy_helper.to_array(i) for i in proto.graph.initializer}
    return {n: a for n, a in arrays.items() if n in kinds or (not kinds and a.dtype.kind == "f")}


def _some(names):
    names = [f'"{n}"' for n in names]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


# ---- files ----

SAFETENSORS = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "U8": "u1"}


def _read_safetensors(path):
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        header, data = json.loads(f.read(size)), f.read()
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        arrays[name] = np.frombuffer(data[begin:end], "<" + SAFETENSORS[entry["dtype"]]).reshape(
            entry["shape"])
    return arrays


def _read_checkpoint(folder):
    """Slices of one variable may lie in several files, as NAME#OFFSET."""
    with open(os.path.join(folder, "manifest.json")) as f:
        manifest = json.load(f)
    shards, arrays = {}, {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.safetensors"))):
        shards.update(_read_safetensors(path))
    for v in manifest["variables"]:
        cut = len(v["slices"]) > 1
        parts = [shards[v["name"] + (f"#{s['offset']}" if cut else "")].ravel() for s in v["slices"]]
        arrays[v["name"]] = np.concatenate(parts).reshape(v["shape"])
    return arrays


def _save(proto, path):
    import onnx
    folder = os.path.dirname(os.path.abspath(path))
    part = os.path.join(folder, f".{os.path.basename(path)}.{os.getpid()}")
    try:
        onnx.save(proto, part)
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)


# ---- what all routes share ----

def _route(model):
    """Keras's models on PyTorch are modules too, so Keras comes first."""
    if "keras" in sys.modules:
        import keras
        if isinstance(model, keras.Model):
            if keras.backend.backend() == "tensorflow":
                return KerasOnTensorFlow()
            if keras.backend.backend() == "torch":
                return KerasOnTorch()
            raise ExportError(f"Keras on {keras.backend.backend()} cannot be exported: save the model "
                              "(model.save), and load and export it under KERAS_BACKEND=tensorflow")
    if "torch" in sys.modules:
        import torch
        if isinstance(model, torch.nn.Module):
            return Torch()
    raise ExportError(f"{type(model).__name__} is neither a torch.nn.Module nor a keras.Model")


def _check_names(input_names, output_names, inputs):
    """The names as lists, or None where none are given. The number of outputs is not known yet."""
    found = []
    for what, names in (("input_names", input_names), ("output_names", output_names)):
        if isinstance(names, (str, bytes)):
            raise ArgumentError(f"{what} is one string, {names!r}", f"give a list: [{names!r}]")
        names = None if names is None else list(names)
        for name in names or []:
            if not isinstance(name, str) or not name.strip():
                raise ArgumentError(f"{what} has {name!r}, which is no name", "name each one")
            if name in found:
                raise ArgumentError(f'the name "{name}" is given twice', "give each input and "
                                    "output a name of its own")
            found.append(name)
        if what == "input_names":
            _check_count(what, names, inputs)
            input_names = names
    return input_names, names


def _check_count(what, names, n):
    if names is not None and len(names) != n:
        raise ArgumentError(f"{what} is {names!r}, and the model has {n} "
                            f"{what.partition('_')[0]}{'' if n == 1 else 's'}",
                            "give one name for each")


def _layer(layer, name):
    kind = type(layer).__name__
    return f'{kind} "{name}"' if name else kind


def _constant(proto, name, array):
    from onnx import numpy_helper
    proto.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))


def _rename(proto, names):
    """Gives values other names, `names` from old to new, everywhere in the graph."""
    def walk(graph):
        for node in graph.node:
            for places in (node.input, node.output):
                for i, name in enumerate(places):
                    places[i] = names.get(name, name)
            for a in node.attribute:
                for inner in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                    walk(inner)
        for v in (*graph.initializer, *graph.input, *graph.output, *graph.value_info):
            v.name = names.get(v.name, v.name)
    walk(proto.graph)


def _settle_outputs(proto, names):
    """Names for outputs that have none of their own, and "batch" for their first axis."""
    outputs = proto.graph.output
    plain = ["output"] if len(outputs) == 1 else [f"output_{i}" for i in range(len(outputs))]
    taken = {n for node in proto.graph.node for n in node.output} | {i.name for i in proto.graph.input}
    if not names and not taken & set(plain):
        _rename(proto, {o.name: p for o, p in zip(outputs, plain)})
    for o in outputs:
        dims = o.type.tensor_type.shape.dim
        if dims and not dims[0].HasField("dim_value"):
            dims[0].dim_param = "batch"


def _finish(proto, variables, report):
    """Lists the variables in the file, and holds it against the model: nothing may be missing."""
    from onnx import numpy_helper
    found = {i.name: i for i in proto.graph.initializer}
    counts = {"trainable": 0, "frozen": 0, "statistic": 0}
    unused = []
    names = [i.name for i in proto.graph.input]
    if not names:
        raise ExportError("no input of the model reaches an output", "compute with its inputs, and "
                          "not with .data or numpy arrays of them")
    for name in report.inputs:
        if name not in names:
            report.lose(f'the input "{name}", which does not reach an output')
    report.say(f"inputs {_ports(proto.graph.input)}; outputs {_ports(proto.graph.output)}")
    del proto.metadata_props[:]
    for v in variables:
        if v.name not in found:
            unused.append(v.name)
            continue
        if v.kind == "statistic":  # tracing a model in train mode moved it
            found[v.name].CopyFrom(numpy_helper.from_array(v.value, v.name))
        there = numpy_helper.to_array(found[v.name])
        if there.shape != v.value.shape or not np.array_equal(there, v.value, equal_nan=True):
            raise ExportError(f'"{v.name}" has another content in the file than in the model')
        proto.metadata_props.add(key=PREFIX + v.name, value=v.kind)
        counts[v.kind] += 1
    if unused:
        report.lose(f"{len(unused)} variables that do not reach an output: {_some(unused)}")
    elements = sum(v.value.size for v in variables if v.name in found and v.kind != "statistic")
    report.say(f"{counts['trainable']} trained variables, {counts['frozen']} frozen, "
               f"{counts['statistic']} running statistics; {elements} parameters")
    tied = [f"{v.name} = {', '.join(v.aliases)}" for v in variables if v.aliases and v.name in found]
    if tied:
        report.say(f"tied: {'; '.join(tied)}")
    for op in ("BatchNormalization", "Dropout"):
        n = sum(node.op_type == op for node in proto.graph.node)
        if n:
            report.say(f"{n} {op}")


def _ports(values):
    return ", ".join(f"{v.name}[" + ",".join(str(d.dim_value) if d.HasField("dim_value") else
                                             d.dim_param or "?"
                                             for d in v.type.tensor_type.shape.dim) + "]"
                     for v in values)


def _inference(proto):
    """A copy that computes what the model computes in inference."""
    import onnx
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for node in copy.graph.node:
        if node.op_type == "BatchNormalization":
            del node.output[1:]
            for a in [a for a in node.attribute if a.name == "training_mode"]:
                node.attribute.remove(a)
        elif node.op_type == "Dropout":
            node.op_type = "Identity"
            del node.input[1:], node.output[1:], node.attribute[:]
    return copy


def _check(proto, route, model, inputs, report):
    try:
        import onnxruntime
    except ImportError:
        report.say("not compared: onnxruntime is not installed")
        return
    import onnx
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(_inference(proto).SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    names = {i.name for i in session.get_inputs()}

    def run(arrays):
        try:
            return session.run(None, {n: x for n, x in zip(report.inputs, arrays) if n in names})
        except Exception as e:
            rows = len(arrays[0]) if arrays[0].ndim else 1
            raise ExportError(f"onnxruntime cannot run the file with a batch of {rows}: {e}") from e

    worst = _compare(route, model, inputs, run)
    onnx.checker.check_model(proto)
    report.compared = True
    report.say(f"outputs in onnxruntime are the model's, to {worst:.0e}")


def _compare(route, model, inputs, run):
    worst = 0.0
    for rows in (2, 3):
        arrays = [np.asarray(route.array(x)) for x in inputs]
        arrays = [np.concatenate([x] * rows)[:rows] if x.ndim else x for x in arrays]
        theirs = route.predict(model, arrays)
        for a, b in zip(run(arrays), theirs):
            if a.shape != b.shape:
                raise ExportError(f"the file gives {list(a.shape)}, and the model {list(b.shape)}")
            scale = max(1.0, float(np.abs(b).max())) if b.size else 1.0
            worst = max(worst, float(np.abs(a.astype(np.float64) - b).max()) / scale if b.size else 0)
    if not worst < TOLERANCE:
        raise ExportError(f"the file's outputs differ from the model's by {worst:.1e}: the exporter "
                          "changed the model, or the model is random in inference")
    return worst


@contextlib.contextmanager
def _silence():
    """Exporters talk to people who call them directly; some of it from C, past sys.stdout."""
    level = logging.root.manager.disable
    with (warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()),
          contextlib.redirect_stderr(io.StringIO()), open(os.devnull, "wb") as nothing):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        kept = [(fd, os.dup(fd)) for fd in (1, 2)]
        try:
            for fd, _ in kept:
                os.dup2(nothing.fileno(), fd)
            yield
        finally:
            for fd, copy in kept:
                os.dup2(copy, fd)
                os.close(copy)
            logging.disable(level)


# ---- PyTorch ----

# What makes numbers of Python's of a tensor, and what in a trace is random.
COMPARE = ("equal", "allclose", "is_nonzero")
READS = ("__bool__", "__int__", "__float__", "__complex__", "__index__", "__array__", "item",
         "tolist", "numpy", *COMPARE)
OWN = _route.__code__.co_filename  # this file in frames
RANDOM = re.compile("rand|bernoulli|uniform|normal_?$|multinomial|exponential")


def _is_of_data(value, buffers):
    """Whether a value of a trace comes of inputs, parameters or random numbers, and not of sizes
    and buffers alone, which are the same for all batches."""
    pending, seen = [value], set()
    while pending:
        v = pending.pop()
        if v.debugName() in seen:
            continue
        seen.add(v.debugName())
        kind = v.node().kind()
        if kind == "prim::Param" and v.debugName() not in buffers or RANDOM.search(kind):
            return True
        if kind not in ("prim::Param", "aten::size", "aten::numel"):
            pending.extend(v.node().inputs())
    return False


def _line_of_model():
    """The innermost line outside of PyTorch: that of the model's forward."""
    import torch
    own = (os.path.dirname(torch.__file__) + os.sep, OWN)
    frame = sys._getframe(2)
    while frame.f_back and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    return _line(frame.f_code.co_filename, frame.f_lineno)


def _line(path, line):
    text = linecache.getline(path, line).strip()
    return f"{path}:{line}" + (f": `{text}`" if text else "")


@contextlib.contextmanager
def _refuse_reads(model):
    """A trace keeps what a number of Python's was for the example inputs, so a model whose `if` or
    loop looks at one would always go the same way."""
    import torch
    found = []

    def watched(read):
        def call(*args, **options):
            if torch.jit.is_tracing():
                trace = torch._C._get_value_trace
                buffers = {trace(b).debugName() for b in model.buffers()}
                if any(_is_of_data(trace(x), buffers) for x in args if isinstance(x, torch.Tensor)):
                    found.append(_line_of_model())
            return read(*args, **options)
        return call

    # In place of the methods, and not by a TorchFunctionMode, under which the exporter's errors
    # name lines of the mode and not of the model.
    places = [(torch.Tensor, name) for name in READS] + [(torch, name) for name in COMPARE]
    own = [vars(place).get(name) for place, name in places]
    try:
        for place, name in places:
            setattr(place, name, watched(getattr(place, name)))
        yield
    finally:
        for (place, name), was in zip(places, own):
            if was is None:  # inherited
                delattr(place, name)
            else:
                setattr(place, name, was)
        if found:
            raise ExportError(f"{found[0]} makes a Python number of a tensor's value, and the file "
                              "would keep that of example_inputs",
                              "choose with torch.where, and repeat a fixed number of steps")


def _asked_at(frames, passed):
    """Which line of a model asked for what a framework does: "" if it has none, and None if the
    framework did it for itself, as its layers do. frames: (path, line, function), innermost first;
    passed: of a path and a function, whether they stand between."""
    folders = tuple(os.path.dirname(sys.modules[m].__file__) + os.sep for m in (
        "torch", "keras", "tensorflow") if getattr(sys.modules.get(m), "__file__", None))
    path, line, function = next((f for f in frames if f[0] != OWN and not passed(f[0], f[2])),
                                ("", 0, ""))
    if not path.startswith(folders):
        return path and _line(path, line)
    # An operation of a functional model in Keras, which no line of the model computes.
    functional = function == "call" and path.endswith(os.path.join("ops", "core.py"))
    return "" if functional else None


def _frames():
    frame = sys._getframe()
    while frame:
        yield frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back


def _stop(what, line):
    return f"the stop of gradients by {what}" + (f" at {line}" if line else "") + (
        "; weft passes them on")


def _lose_unreached(names, freeze, report):
    if names:
        report.lose(f"that {_some(names)} are not trained, since no gradient reaches them; weft "
                    f"trains them, unless they have {freeze}")


def _tensors(value):
    import torch
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for v in value.values() if isinstance(value, dict) else value:
            yield from _tensors(v)


def _watch():
    """A mode in which `stopped` has, by id, the tensors that come of parameters through a stop of
    gradients, and the lines of the model that stop them. Numbers that are not floating have no
    gradients anyway."""
    import torch
    from torch.overrides import TorchFunctionMode
    managers = tuple(os.path.join("torch", *names) for names in (
        ("autograd", "grad_mode.py"), ("utils", "_contextlib.py")))

    class Watch(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.stopped = {}  # with the tensors, so that no other takes their ids
            self.off = None  # why gradients are off, if the model turned them off

        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if function is torch._C._set_grad_enabled:
                if args[0] or torch.is_grad_enabled():  # else they stay off, by who did it first
                    self.off = None if args[0] else self.turned_off()
                return function(*args, **kwargs)
            given = list(_tensors((args, kwargs)))
            why = {w: None for x in given for w in self.stopped.get(id(x), (x, ()))[1]}
            if any(x.requires_grad for x in given):
                if not torch.is_grad_enabled():
                    why.update({self.off: None} if self.off else {})
                elif (getattr(function, "__name__", "") in ("detach", "detach_")
                      or function == torch.Tensor.data.__get__):
                    line = _asked_at(_frames(), lambda path, name: name == "stop_gradient")
                    by = next(name for path, _, name in _frames() if path != OWN)
                    what = by if by == "stop_gradient" else (
                        ".data" if function == torch.Tensor.data.__get__ else "detach()")
                    why.update({} if line is None else {_stop(what, line): None})
            result = function(*args, **kwargs)
            if why:
                changed = args[0] if getattr(function, "__name__", "") == "__setitem__" else result
                for x in _tensors(changed):
                    if x.is_floating_point():
                        self.stopped[id(x)] = x, tuple(why)
            return result

        def turned_off(self):
            """A decorated function turned them off for itself, wherever it is called."""
            frame = sys._getframe(2)
            while frame.f_code.co_filename.endswith(managers):
                code = getattr(frame.f_locals.get("func"), "__code__", None)
                if code:
                    line = _asked_at([(code.co_filename, code.co_firstlineno, "")],
                                     lambda path, name: False)
                    return line and _stop("torch.no_grad()", line)
                frame = frame.f_back
            line = _asked_at(_frames(), lambda path, name: path.endswith(managers))
            return line and _stop("torch.no_grad()", line)

    return Watch()


class Pass:
    """One forward pass of a module with gradients: `outputs`, None if it failed; `called`, the
    modules; `stops`, what it does to gradients that the file does not say; `reached`, ids of the
    parameters that gradients reach, None if nobody knows."""

    def __init__(self, model, inputs):
        import torch
        self.outputs, self.called, self.stops, self.reached = None, set(), [], None
        hook = torch.nn.modules.module.register_module_forward_pre_hook(
            lambda module, _: self.called.add(module))
        try:
            watch = _watch()
            with Torch().kept(model), _silence(), torch.enable_grad(), watch:
                self.outputs = model(*inputs)
        except Exception:  # the exporters fail, too, and their error says why
            return
        finally:
            hook.remove()
        outputs = list(_tensors(self.outputs))
        lines = [w for o in outputs for w in watch.stopped.get(id(o), (o, ()))[1]]
        self.reached, functions = self.behind(outputs)
        lines += [f'the backward of "{f.__name__}"; weft derives one from its forward'
                  for f in functions if not f.__module__.startswith("torch.")]
        if any(f.__name__ == "CheckpointFunction" for f in functions):  # which hides its parameters
            self.reached = None
        self.stops = list(dict.fromkeys(lines))

    def behind(self, tensors):
        """Ids of the parameters, and the functions of Python's, that gradients of tensors reach."""
        import torch
        reached = {id(x) for x in tensors if x.requires_grad and x.grad_fn is None}
        pending, seen, functions = [x.grad_fn for x in tensors], {None}, []
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            pending += [f for f, _ in node.next_functions]
            if isinstance(node, torch.autograd.function.BackwardCFunction):
                functions.append(type(node)._forward_cls)
            elif type(node).__name__ == "AccumulateGrad":
                reached.add(id(node.variable))
        return reached, functions

    def lose(self, parameters, proto, freeze, report):
        """Says what is not kept. parameters: trained ones, by name; freeze: how one freezes them."""
        found = {i.name for i in proto.graph.initializer}
        for line in self.stops:
            report.lose(line)
        apart = [] if self.reached is None else [
            n for n, p in parameters.items() if n in found and id(p) not in self.reached]
        _lose_unreached(apart, freeze, report)


OPERATION = ("Exporting the operator", "No ONNX function found")


def _reason(error):
    """The line of an exporter's error that names the operation, else its first one."""
    lines, e = [], error
    while e is not None:
        text = str(e.args[0]) if isinstance(e, KeyError) and e.args else str(e)
        lines += [s.strip() for s in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() if s.strip()]
        e = e.__cause__ or e.__context__
    names = [s[s.index(word):] for s in lines for word in OPERATION if word in s]
    return (names or lines or [type(error).__name__])[0]


def _two_records(inputs):
    import torch
    return tuple(torch.cat([x, x])[:2] if x.dim() and len(x) < 2 else x for x in inputs)


class Torch:
    def inputs(self, model, example):
        if isinstance(example, dict):
            raise ArgumentError("example_inputs is a dict", "give a tuple of its tensors, in the "
                                "order in which the model takes them")
        return tuple(example) if isinstance(example, (tuple, list)) else (example,)

    def array(self, x):
        return x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)

    def variables(self, model):
        """Parameters, tied ones once under their first name, and the statistics of BatchNormalization;
        those of modules in eval mode are frozen."""
        import torch
        names = {}
        for name, p in model.named_parameters(remove_duplicate=False):
            names.setdefault(id(p), []).append(name)
        out = [Variable(names[id(p)][0], "trainable" if p.requires_grad else "frozen", self.array(p),
                        tuple(names[id(p)][1:])) for _, p in model.named_parameters()]
        for prefix, module in model.named_modules():
            if not isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                continue
            for name in ("running_mean", "running_var"):
                if getattr(module, name) is not None:
                    out.append(Variable(f"{prefix}.{name}".lstrip("."),
                                        "statistic" if module.training else "frozen",
                                        self.array(getattr(module, name))))
        return out

    def slots(self, model):
        import torch
        for v in self.variables(model):
            target = model.get_parameter(v.name) if v.kind != "statistic" and v.name in dict(
                model.named_parameters()) else model.get_buffer(v.name)

            def assign(new, target=target):
                with torch.no_grad():
                    target.copy_(torch.from_numpy(np.array(new)))
            yield v, assign

    @contextlib.contextmanager
    def kept(self, model):
        """Modes, weights, statistics and random numbers are afterwards what they were."""
        import torch
        modes = {m: m.training for m in model.modules()}
        state = {k: v.clone() for k, v in model.state_dict().items()}
        random = torch.get_rng_state()
        try:
            yield
        finally:
            with torch.no_grad():
                for k, v in model.state_dict().items():
                    v.copy_(state[k])
            for m, mode in modes.items():
                m.training = mode
            torch.set_rng_state(random)

    def to_onnx(self, model, inputs, input_names, output_names, report):
        import torch
        inputs = tuple(x if isinstance(x, torch.Tensor) else torch.as_tensor(np.asarray(x))
                       for x in inputs)
        if not input_names:
            known = [p for p in inspect.signature(model.forward).parameters.values()
                     if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            input_names = [p.name for p in known[:len(inputs)]]
            input_names += [f"input_{i}" for i in range(len(input_names), len(inputs))]
        report.inputs = list(input_names)
        _check_names(report.inputs if output_names else None, output_names, len(inputs))
        with self.kept(model), self.bound(model, len(inputs)):
            if not model.training:
                model.train()
            for name, m in model.named_modules():
                if isinstance(m, torch.nn.modules.batchnorm._BatchNorm) and m.training and (
                        m.momentum is None and m.track_running_stats):
                    raise ExportError(f'{_layer(m, name)} has momentum=None, the mean of all '
                                      "batches, which ONNX does not have", "give it momentum=0.1")
            once = Pass(model, _two_records(inputs))
            if once.outputs is not None:
                _check_count("output_names", output_names, len(list(_tensors(once.outputs))))
                output_names = output_names or self.keys(once.outputs, input_names)
            self.refuse_random(model, once.called)
            self.lose_options(model, once.called, report)
            proto, variables = self.write(model, inputs, list(input_names), output_names,
                                          self.variables(model), report)
            once.lose({n: p for n, p in model.named_parameters() if p.requires_grad}, proto,
                      "requires_grad=False", report)
            return proto, variables

    @contextlib.contextmanager
    def bound(self, model, n):
        """Arguments behind the first n have their defaults, of which the exporter of TorchScript
        would make inputs."""
        import torch
        known = list(inspect.signature(model.forward).parameters.values())
        given = known[:n]
        if (len(known) <= n or isinstance(model, torch.jit.ScriptModule)
                or any(p.kind == p.VAR_POSITIONAL for p in given)
                or all(p.default is p.empty for p in known[n:])):
            yield
            return
        own, forward = vars(model).get("forward"), model.forward

        def call(*args):
            return forward(*args)

        call.__signature__ = inspect.Signature([p.replace(default=p.empty) for p in given])
        model.forward = call
        try:
            yield
        finally:
            del model.forward
            if own:
                model.forward = own

    def keys(self, outputs, input_names):
        """Those of a dict or named tuple of tensors, if they can name outputs; else None."""
        import torch
        if not isinstance(outputs, dict):
            outputs = outputs._asdict() if hasattr(outputs, "_asdict") else {}
        keys = list(outputs)
        fit = all(isinstance(k, str) and k.strip() and isinstance(outputs[k], torch.Tensor)
                  for k in keys)
        return keys if keys and fit and not set(keys) & set(input_names) else None

    def refuse_random(self, model, called):
        """The exporters write out these layers in operations, which are random in inference, too."""
        import torch
        found = []
        for name, m in model.named_modules():
            if m not in called or not m.training:
                continue
            other = isinstance(m, torch.nn.modules.dropout._DropoutNd) and not isinstance(
                m, torch.nn.Dropout) and m.p > 0
            if other or isinstance(m, torch.nn.RReLU) and m.lower < m.upper:
                found.append(_layer(m, name))
        if found:
            raise ExportError(f"{' and '.join(found)} would be random in inference, too, since ONNX "
                              "has no such operation", "use Dropout" + (
                                  ", or LeakyReLU" if "RReLU" in str(found) else ""))

    def lose_options(self, model, called, report):
        import torch
        for name, m in model.named_modules():
            if m not in called or not isinstance(m, (torch.nn.Embedding, torch.nn.EmbeddingBag)) or (
                    not m.weight.requires_grad):
                continue
            if m.padding_idx is not None and isinstance(m, torch.nn.Embedding):
                report.lose(f"padding_idx of {_layer(m, name)}; weft trains row {m.padding_idx}, too")
            if m.scale_grad_by_freq:
                report.lose(f"scale_grad_by_freq of {_layer(m, name)}; weft does not divide gradients "
                            "by how often an id is in the batch")

    def write(self, model, inputs, input_names, output_names, variables, report):
        """By the exporter that keeps all of it: TorchScript first, which knows the training form of
        BatchNormalization; dynamo for models that cannot be traced."""
        inputs = _two_records(inputs)
        names = {**{a: v.name for v in variables for a in v.aliases}}
        errors = []
        for exporter in (self.torchscript, self.dynamo):
            try:
                with _silence():
                    proto = exporter(model, inputs, input_names, output_names)
            except ExportError:
                raise
            except Exception as e:
                errors.append(f"{exporter.__name__}: {_reason(e)}")
                continue
            _rename(proto, {i.name: names[i.name] for i in proto.graph.initializer if i.name in names})
            _settle_outputs(proto, output_names)
            if exporter == self.dynamo:
                report.say(f"written by dynamo; {errors[0]}")
            return proto, variables
        plain = [e.partition(": ")[2] for e in errors]
        named = [e for e in plain if e.startswith(OPERATION)]
        raise ExportError(named[0] if named else plain[0] if plain[0] == plain[1] else "neither of "
                          "PyTorch's exporters can export the model: " + "; ".join(errors))

    def torchscript(self, model, inputs, input_names, output_names):
        import onnx
        import torch
        out = io.BytesIO()
        axes = {n: {0: "batch"} for n, x in zip(input_names, inputs) if x.dim()}
        with _refuse_reads(model):
            torch.onnx.export(model, inputs, out, dynamo=False, opset_version=OPSET,
                              training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                              input_names=input_names, output_names=output_names, dynamic_axes=axes)
        return onnx.load_from_string(out.getvalue())

    def dynamo(self, model, inputs, input_names, output_names):
        import torch
        batch = torch.export.Dim("batch")
        program = torch.onnx.export(model, inputs, dynamo=True, optimize=False, opset_version=OPSET,
                                    input_names=input_names, output_names=output_names, verbose=False,
                                    dynamic_shapes=tuple({0: batch} if x.dim() else None
                                                         for x in inputs))
        return program.model_proto

    def predict(self, model, arrays):
        import torch
        with self.kept(model), torch.no_grad():
            model.eval()
            device = next((p.device for p in model.parameters()), torch.device("cpu"))
            out = model(*[torch.from_numpy(a).to(device) for a in arrays])
        return [self.array(o) for o in _tensors(out)]


# ---- Keras ----

# Layers that change images at random, and only in training: Random..., RandAugment and others.
AUGMENTS = ("Rand", "AugMix", "CutMix", "MixUp")

class Keras:
    """What the backends share. The model is called once, in inference, with two layers changed for
    that call: BatchNormalization becomes the backend's fused operation, which ONNX has too, and
    Dropout a product with a number that is found again in the file."""

    # What the model is called with: false, but not the False that its own code gives to a layer
    # which is never to be in training.
    TRAINING = 0

    def __init__(self):
        self.names = None  # of example inputs that are a dict
        self.fixed = set()  # layers that are never in training

    def inputs(self, model, example):
        if not isinstance(example, dict):
            return tuple(example) if isinstance(example, (tuple, list)) else (example,)
        self.names = [x.name for x in getattr(model, "inputs", None) or []] or list(example)
        for name in self.names:
            if name not in example:
                raise ArgumentError(f'example_inputs has no "{name}"', "give one for each input: "
                                    + ", ".join(self.names))
        return tuple(example[name] for name in self.names)

    def argument(self, model, values):
        """The one that the model takes: values, in the order of its inputs, in its own structure."""
        import keras
        form = getattr(model, "_inputs_struct", None)
        if isinstance(form, dict) and len(keras.tree.flatten(form)) == len(values):
            return keras.tree.pack_sequence_as(form, list(values))
        if self.names and not getattr(model, "inputs", None):
            return dict(zip(self.names, values))
        return values[0] if len(values) == 1 else list(values)

    def array(self, x):
        import keras
        return keras.ops.convert_to_numpy(x) if not isinstance(x, np.ndarray) else x

    def pairs(self, model):
        """Variables with the kind that they have; counters of random numbers are none, and neither
        are those of Normalization, which computes with constants that it made of them."""
        import keras
        statistics, seen = set(), set()
        for layer in model._flatten_layers():
            if isinstance(layer, keras.layers.BatchNormalization):
                statistics |= {id(layer.moving_mean), id(layer.moving_variance)}
            elif isinstance(layer, keras.layers.Normalization):
                seen |= {id(v) for v in layer.weights}
        for v in model.weights:
            if not keras.backend.is_float_dtype(v.dtype) or id(v) in seen:
                continue
            seen.add(id(v))
            kind = "trainable" if v.trainable else "frozen"
            yield v, "statistic" if id(v) in statistics and self.in_training(model, v) else kind

    def in_training(self, model, v):
        """A BatchNormalization that is not trainable, or not in training, keeps its statistics."""
        import keras
        return any(isinstance(layer, keras.layers.BatchNormalization) and layer.trainable
                   and layer not in self.fixed
                   and (v is layer.moving_mean or v is layer.moving_variance)
                   for layer in model._flatten_layers())

    def variables(self, model):
        """By path; the model's own name, which a second instance would not have, is left out."""
        names, out = {}, []
        for v, kind in self.pairs(model):
            path = v.path.removeprefix(model.name + "/")
            names[path] = names.get(path, 0) + 1
            name = path if names[path] == 1 else f"{path}_{names[path] - 1}"
            out.append((v, Variable(name, kind, self.array(v))))
        return out

    def slots(self, model):
        return [(v, variable.assign) for variable, v in self.variables(model)]

    def predict(self, model, arrays, training=False):
        import keras
        out = model(self.argument(model, arrays), training=training)
        return [self.array(o) for o in keras.tree.flatten(out)]

    def prepare(self, model, inputs, output_names, report):
        """The inputs as arrays, and the variables, once the model is built and its layers known."""
        arrays = [self.array(x) for x in inputs]
        known = len(getattr(model, "inputs", None) or arrays)
        if len(arrays) != known:
            raise ArgumentError(f"example_inputs are {len(arrays)}, and the inputs of the model "
                                f"{known}", "give one for each")
        self.lose_penalties(model, arrays, report)
        n_outputs = self.find_fixed(model, arrays)
        _check_count("output_names", output_names, n_outputs)
        return arrays, self.variables(model)

    def find_fixed(self, model, arrays):
        """Which layers the model's code calls with training=False. Gives how many outputs it has."""
        import keras
        found = {}

        def watched(layer, call):
            @functools.wraps(call)
            def other(*args, **options):
                training = inspect.signature(call).bind(*args, **options).arguments.get("training")
                found.setdefault(layer, set()).add(training is False)
                return call(*args, **options)
            return other

        layers = [layer for layer in model._flatten_layers()
                  if layer._call_has_training_arg and not isinstance(layer, keras.Model)]
        for layer in layers:
            layer.call = watched(layer, layer.call)
        try:
            outputs = self.predict(model, arrays, self.TRAINING)
        finally:
            for layer in layers:
                del layer.call
        self.fixed = {layer for layer, forms in found.items() if forms == {True}}
        for layer, forms in found.items():
            if isinstance(layer, keras.layers.BatchNormalization) and layer.trainable and (
                    len(forms) == 2):
                raise ExportError(f"{_layer(layer, layer.name)} is called with training=False and "
                                  "without", "have a layer for each")
        return len(outputs)

    def lose_penalties(self, model, arrays, report):
        """What the model adds to its loss, or does to variables after a step: the file has neither.
        Layers add their losses when they are called, which builds the model, too."""
        self.predict(model, arrays)
        owner = {id(v): layer for layer in model._flatten_layers() for v in layer.weights}
        out = []
        for v in model.trainable_weights:
            for what in ("regularizer", "constraint"):
                if getattr(v, what, None) is not None:
                    layer = owner[id(v)]
                    out.append(f"{v.name}_{what} of {_layer(layer, layer.name)}")
        for layer in model._flatten_layers():
            if getattr(layer, "activity_regularizer", None) is not None:
                out.append(f"activity_regularizer of {_layer(layer, layer.name)}")
            elif getattr(layer, "_losses", None):
                out.append(f"add_loss of {_layer(layer, layer.name)}")
        for line in out:
            report.lose(line)
        report.penalties = out

    @contextlib.contextmanager
    def changed(self, model, report, norm, drop):
        """norm(layer, x) and drop(index, x) stand for the layers' own calls. Gives the rates."""
        import types
        rates, changed = [], []
        for layer in model._flatten_layers():
            call = self.other_call(layer, norm, drop, rates, report)
            if call:
                layer.call = types.MethodType(call, layer)
                changed.append(layer)
        try:
            yield rates
        finally:
            for layer in changed:
                del layer.call

    def other_call(self, layer, norm, drop, rates, report):
        import keras
        kind = type(layer).__name__
        if isinstance(layer, keras.layers.BatchNormalization):
            if not getattr(layer, "renorm", False):
                return lambda self, x, training=None, mask=None: norm(self, x)
            report.lose(f'the training form of "{layer.name}" (renorm)')
        elif layer in self.fixed:
            return None
        elif type(layer) is keras.layers.Dropout and layer.rate > 0 and layer.noise_shape is None:
            rates.append(layer.rate)
            return lambda self, x, training=False, i=len(rates) - 1: (
                x if training is False else drop(i, x))
        elif any(c.__module__.startswith("keras.") and c.__name__.startswith(AUGMENTS)
                 for c in type(layer).__mro__):
            report.lose(_layer(layer, layer.name))
        elif "Dropout" in kind and getattr(layer, "rate", 0) > 0 or kind == "GaussianNoise":
            report.lose(f'{kind} "{layer.name}"')
        elif isinstance(layer, keras.layers.RNN) and any(
                getattr(layer.cell, k, 0) for k in ("dropout", "recurrent_dropout")):
            report.lose(f'the dropout inside of {kind} "{layer.name}"')
        return None

    def set_momentum(self, proto, model, names):
        """Keras's momentum is ONNX's: how much of the old value is kept."""
        import keras
        momentum = {names[id(layer.moving_mean)]: layer.momentum for layer in model._flatten_layers()
                    if isinstance(layer, keras.layers.BatchNormalization)}
        producers = {o: node for node in proto.graph.node for o in node.output}
        for node in proto.graph.node:
            if node.op_type != "BatchNormalization":
                continue
            mean = node.input[3]
            while mean in producers and producers[mean].op_type in ("Identity", "Cast", "Reshape"):
                mean = producers[mean].input[0]
            for a in [a for a in node.attribute if a.name == "momentum"]:
                node.attribute.remove(a)
            if mean in momentum:
                node.attribute.add(name="momentum", type=1, f=momentum[mean])

    def names_of(self, model, arrays, names):
        """Of inputs: as in the model, where it has any."""
        if names:
            return list(names)
        known = [x.name for x in getattr(model, "inputs", None) or []]
        known = known or self.names or []
        if len(known) != len(arrays):
            known = [""] * len(arrays)
        plain = ["input"] if len(arrays) == 1 else [f"input_{i}" for i in range(len(arrays))]
        return [p if not n or n.startswith("keras_tensor") else n for n, p in zip(known, plain)]


# Where TensorFlow makes the operation that a caller of stop_gradient or custom_gradient asks for.
TRACING = re.compile(r"tensorflow/python/(framework|util)/|"
                     r"/(gen_array_ops|array_ops|custom_gradient|weak_tensor_ops)\.py$")


class KerasOnTensorFlow(Keras):
    """By tf2onnx, which folds what is constant. So nothing is: the weights are inputs of the function
    that it converts, and initializers afterwards."""

    def norm(self, layer, x):
        import tensorflow as tf
        axis = layer.axis % len(x.shape)
        order = [i for i in range(len(x.shape)) if i != axis] + [axis]
        channels = x.shape[axis]
        y = tf.transpose(x, order) if axis != len(x.shape) - 1 else x
        shape = tf.shape(y)
        if len(x.shape) != 4:
            y = tf.reshape(y, [-1, 1, 1, channels])
        gamma = layer.gamma if layer.scale else tf.ones([channels])
        beta = layer.beta if layer.center else tf.zeros([channels])
        y = tf.raw_ops.FusedBatchNormV3(
            x=y, scale=tf.convert_to_tensor(gamma), offset=tf.convert_to_tensor(beta),
            mean=tf.convert_to_tensor(layer.moving_mean),
            variance=tf.convert_to_tensor(layer.moving_variance), epsilon=layer.epsilon,
            is_training=False).y
        if len(x.shape) != 4:
            y = tf.reshape(y, shape)
        if axis != len(x.shape) - 1:
            y = tf.transpose(y, np.argsort(order))
        y.set_shape(x.shape)
        return y

    def to_onnx(self, model, inputs, input_names, output_names, report):
        import keras
        import tensorflow as tf
        import tf2onnx
        arrays, variables = self.prepare(model, inputs, output_names, report)
        report.inputs = self.names_of(model, arrays, input_names)
        _check_names(report.inputs if output_names else None, output_names, len(inputs))
        drops = []

        def call(*args):
            values, rest = args[:len(arrays)], args[len(arrays):]
            drops[:] = rest[len(variables):]
            mapping = [(v, w) for (v, _), w in zip(variables, rest)]
            with keras.StatelessScope(state_mapping=mapping):
                out = model(self.argument(model, values), training=self.TRAINING)
            return [tf.identity(o) for o in keras.tree.flatten(out)]

        with self.changed(model, report, self.norm, lambda i, x: x * drops[i]) as rates:
            signature = [tf.TensorSpec([None, *a.shape[1:]], a.dtype, name=f"x{i}")
                         for i, a in enumerate(arrays)]
            signature += [tf.TensorSpec(v.value.shape, v.value.dtype, name=f"w{i}")
                          for i, (_, v) in enumerate(variables)]
            signature += [tf.TensorSpec([], tf.float32, name=f"drop{i}") for i in range(len(rates))]
            with _silence():
                function = tf.function(call, input_signature=signature, autograph=False)
                traced = function.get_concrete_function(*signature).graph  # which tf2onnx takes, too
                proto, _ = tf2onnx.convert.from_function(function, input_signature=signature,
                                                         opset=OPSET)
        for outside, inside in traced.captures:  # constants that layers made before this call
            if outside.dtype != tf.resource:
                _constant(proto, inside.name.partition(":")[0], outside.numpy())
        self.settle(proto, model, variables, rates, report.inputs, output_names)
        self.lose_stops(traced, variables, report)
        return proto, [v for _, v in variables]

    def lose_stops(self, graph, variables, report):
        """What stops or changes the gradients of trained variables, other than in Keras's layers."""
        trained = {f"w{i}": v.name for i, (_, v) in enumerate(variables) if v.kind == "trainable"}

        def before(ops, through_stops=True):
            pending, seen = list(ops), set()
            while pending:
                op = pending.pop()
                if op.name not in seen:
                    seen.add(op.name)
                    if through_stops or op.type != "StopGradient":
                        pending += [x.op for x in op.inputs if x.dtype.is_floating]
            return seen

        def between(path, function):
            return function == "stop_gradient" or TRACING.search(path)

        outputs = [x.op for x in graph.outputs]
        used, reached, lines = before(outputs), before(outputs, False), []
        for op in graph.get_operations():
            own = "_gradient_op_type" in op.node_def.attr
            if op.name not in used or not (own or op.type == "StopGradient") or not (
                    before([op]) & set(trained)):
                continue
            frames = [(f.filename, f.lineno, f.name) for f in reversed(list(op.traceback))]
            line = _asked_at(frames, between)
            if line is not None:
                lines.append(f"the gradient that custom_gradient gives at {line}; weft derives one"
                             if own else _stop("stop_gradient", line))
        for line in dict.fromkeys(lines):
            report.lose(line)
        _lose_unreached([n for w, n in trained.items() if w in used and w not in reached],
                        "trainable=False", report)

    def settle(self, proto, model, variables, rates, names, output_names):
        graph = proto.graph
        plain = {i.name: i.name.split(":")[0] for i in graph.input}
        _rename(proto, plain)
        for i, rate in enumerate(rates):
            for node in graph.node:
                if f"drop{i}" in node.input:
                    x = next(n for n in node.input if n != f"drop{i}")
                    node.op_type = "Dropout"
                    del node.input[:]
                    node.input.extend([x, f"dropout_{i}/ratio", f"dropout_{i}/training"])
            _constant(proto, f"dropout_{i}/ratio", np.float32(rate))
            _constant(proto, f"dropout_{i}/training", np.bool_(True))
        for i, (_, v) in enumerate(variables):
            _constant(proto, f"w{i}", v.value)
        for i in [i for i in graph.input if not i.name.startswith("x")]:
            graph.input.remove(i)
        taken = {n for node in graph.node for n in node.output}
        outs = output_names or [o if o not in taken else f"{o}_output" for o in
                                self.output_names(model, len(graph.output))]
        _rename(proto, {**{f"w{i}": v.name for i, (_, v) in enumerate(variables)},
                        **{f"x{i}": n for i, n in enumerate(names)},
                        **{o.name: n for o, n in zip(graph.output, outs)}})
        for x in graph.input:
            x.type.tensor_type.shape.dim[0].dim_param = "batch"
        _settle_outputs(proto, outs)
        self.set_momentum(proto, model, {id(k): v.name for k, v in variables})

    def output_names(self, model, n):
        known = list(getattr(model, "output_names", None) or [])
        return known if len(known) == n else ["output"] if n == 1 else [f"output_{i}" for i in range(n)]


class KerasOnTorch(Keras):
    """By PyTorch's exporter; its names of parameters become Keras's."""

    def other_call(self, layer, norm, drop, rates, report):
        """Besides: LayerNormalization with sizes that tracing takes for constants."""
        import keras
        import torch
        if type(layer) is keras.layers.LayerNormalization and layer.axis in (-1, [-1], (-1,)):
            shape = list((layer.gamma if layer.scale else layer.beta).shape) if (
                layer.scale or layer.center) else None

            def call(self, x):
                get = lambda v: None if v is None else v.value  # noqa: E731
                return torch.nn.functional.layer_norm(x, shape, get(self.gamma), get(self.beta),
                                                      self.epsilon)
            return call if shape else None
        if isinstance(layer, keras.layers.TorchModuleWrapper):  # takes all but False for training
            forward = layer.call
            return lambda self, *args, training=None, **options: forward(
                *args, training=False, **options)
        return super().other_call(layer, norm, drop, rates, report)

    def norm(self, layer, x):
        import torch
        axis = layer.axis % x.dim()
        order = [0, axis] + [i for i in range(1, x.dim()) if i != axis]
        get = lambda v: None if v is None else v.value  # noqa: E731
        y = torch.nn.functional.batch_norm(
            x.permute(order), get(layer.moving_mean), get(layer.moving_variance), get(layer.gamma),
            get(layer.beta), False, 0.1, layer.epsilon)
        return y.permute([int(i) for i in np.argsort(order)])

    def to_onnx(self, model, inputs, input_names, output_names, report):
        import keras
        import torch
        arrays, variables = self.prepare(model, inputs, output_names, report)
        names = report.inputs = self.names_of(model, arrays, input_names)
        _check_names(names if output_names else None, output_names, len(inputs))

        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                for i, (v, _) in enumerate(variables):
                    self.register_parameter(f"w{i}", v.value)

            def forward(module, *args):  # noqa: N805: self is the route
                out = model(self.argument(model, args), training=self.TRAINING)
                return tuple(keras.tree.flatten(out))

        dropped = []

        def drop(i, x):
            return torch.nn.functional.dropout(x, dropped[i], True)

        with self.changed(model, report, self.norm, drop) as rates:
            dropped[:] = rates
            module = Module().train()
            tensors = tuple(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays)
            once = Pass(module, _two_records(tensors))
            proto, _ = Torch().write(module, tensors, names, output_names, [], report)
            trained = {f"w{i}": v.value for i, (v, kind) in enumerate(variables)
                       if kind.kind == "trainable"}
        if not output_names:
            outs = list(getattr(model, "output_names", None) or [])
            taken = {n for node in proto.graph.node for n in node.output}
            if len(outs) == len(proto.graph.output) and not taken & set(outs):
                _rename(proto, {o.name: n for o, n in zip(proto.graph.output, outs)})
        by_name = {f"w{i}": v.name for i, (_, v) in enumerate(variables)}
        _rename(proto, by_name)
        once.lose({by_name[w]: v for w, v in trained.items()}, proto, "trainable=False", report)
        self.set_momentum(proto, model, {id(k): v.name for k, v in variables})
        return proto, [v for _, v in variables]
