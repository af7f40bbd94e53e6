# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch and Keras, through weft_export: to ONNX as they are trained, and weights back."""
from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Sequence

from . import errors
from ._tensor import as_array
from .data import Arrays

if TYPE_CHECKING:
    from .model import Model


class TorchOrigin:
    """What a torch module has beside the variables that the ONNX file has."""

    def __init__(self, module: Any):
        self.state = {k: v.detach().clone() for k, v in module.state_dict().items()}
        names: dict[int, list[str]] = {}
        for name, p in module.named_parameters(remove_duplicate=False):
            names.setdefault(id(p), []).append(name)
        self.first = {n: tied[0] for tied in names.values() for n in tied}

    def state_dict(self, arrays: Arrays) -> dict[str, Any]:
        """Tensors for all keys of the module's state_dict: the trained ones, under all their names,
        and the others as they were."""
        import torch
        out = {}
        for name, was in self.state.items():
            new = arrays.get(name, arrays.get(self.first.get(name, name)))
            out[name] = was.clone() if new is None else torch.from_numpy(new).to(
                dtype=was.dtype, device=was.device)
        return out


def _weft_export() -> Any:
    try:
        import weft_export
    except ImportError as e:
        raise errors.Unsupported(f"the export of models needs {e.name}, which is not installed",
                                 f"pip install {e.name or 'onnx'}", "WEFT_UNSUPPORTED") from None
    return weft_export


def keras_inputs(model: Any, example_inputs: Any) -> Any:
    """Example inputs of a Keras model: zeros of its inputs' shapes, if none are given."""
    import numpy as np
    if "keras" not in _packages(model):
        raise errors.WrongType(f"{_kind(model)} is no model of Keras 3",
                               "weft.Model.from_torch takes modules of PyTorch")
    if example_inputs is not None:
        return example_inputs
    if not getattr(model, "inputs", None):
        raise errors.Invalid("the Keras model has no shapes yet",
                             "give example_inputs, or begin it with keras.Input")
    for t in model.inputs:
        if any(n is None for n in t.shape[1:]):
            raise errors.Invalid(f"the input {t.name!r} of the Keras model has an open axis: "
                                 f"{tuple(t.shape)}", "give example_inputs")
    return tuple(np.zeros((2, *t.shape[1:]), t.dtype) for t in model.inputs)


def with_folder(model: "Model", folder: str) -> "Model":
    """The model, with which its temporary folder goes, at the interpreter's end at the latest."""
    weakref.finalize(model, _remove, folder, os.getpid())
    return model


def _remove(folder: str, pid: int) -> None:
    if pid == os.getpid():  # a child that was forked has it from its parent
        shutil.rmtree(folder, ignore_errors=True)


def exported(cls: type["Model"], model: Any, example_inputs: Any,
             input_names: Sequence[str] | None, output_names: Sequence[str] | None) -> "Model":
    """The model of an exported file, in a folder that goes with it."""
    export = _weft_export()
    _check_inputs(example_inputs, _is_torch(model))
    if _is_torch(model):
        _check_dtypes(model)
    folder = tempfile.mkdtemp(prefix="weft-model-")
    path = os.path.join(folder, "model.onnx")
    try:
        try:
            report = export.export(model, example_inputs, path, input_names=input_names,
                                   output_names=output_names, quiet=True)
            origin = TorchOrigin(model) if _is_torch(model) else None
            made = with_folder(cls({"onnx": path}, 0, origin), folder)
            if not report.compared:
                export.compare(model, example_inputs,
                               lambda arrays: _outputs(made, dict(zip(report.inputs, arrays))))
        except errors.Error:
            raise
        except export.ArgumentError as e:
            raise errors.Invalid(e.message, e.hint) from e
        except export.ExportError as e:
            raise errors.Unsupported(
                f"{_kind(model)} cannot be exported: {e.message}",
                e.hint or "docs/import.md says what to change", "WEFT_UNSUPPORTED") from e
        except Exception as e:
            raise errors.Unsupported(
                f"{_kind(model)} cannot be exported: {type(e).__name__}: {_reason(e)}",
                "the error above names the operation; leave out what depends on the values of "
                "tensors, and give example_inputs as the model takes them",
                "WEFT_UNSUPPORTED") from e
        if report.penalties:
            raise errors.Unsupported(
                f"{_kind(model)} has {report.penalties[0]}, which an ONNX file does not keep",
                "train the model without it, or build it of weft.layers, which have regularizers",
                "WEFT_UNSUPPORTED")
        for line in report.lost:
            warnings.warn(f"{_kind(model)}: not kept: {line}", stacklevel=4)
        return made
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _reason(error: Exception) -> str:
    """The line of an exception that says what is wrong. Keras puts where it was in front of it, and
    the arguments behind it."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).partition("\nArguments received by")[0]
    lines = [s.strip() for s in plain.splitlines() if s.strip()]
    told = [s for s in lines if not s.startswith("Exception encountered when calling")] or lines
    return " ".join(told[:2] if told and told[0].endswith(":") else told[:1])


def _outputs(model: "Model", arrays: Arrays) -> list[Any]:
    out = model.predict({name: arrays[name] for name in model.input_names})
    return out if isinstance(out, list) else [out]


def _check_inputs(example_inputs: Any, torch: bool) -> None:
    where: dict[str, Any] = {"example_inputs": example_inputs}
    if isinstance(example_inputs, dict):
        if torch:
            raise errors.WrongType("example_inputs is a dict", "give a tuple of its tensors, in the "
                                   "order in which the model takes them")
        where = {f"example_inputs[{n!r}]": x for n, x in example_inputs.items()}
    elif isinstance(example_inputs, (tuple, list)):
        where = {f"example_inputs[{i}]": x for i, x in enumerate(example_inputs)}
    for name, x in where.items():
        as_array(x, name)


def _check_dtypes(module: Any) -> None:
    for name, v in [*module.named_parameters(), *module.named_buffers()]:
        dtype = str(v.dtype).removeprefix("torch.")
        if dtype in ("float16", "bfloat16"):
            raise errors.Unsupported(
                f"{_kind(module)}: {name!r} is {dtype}, and weft keeps weights in float32",
                f'convert it with module.float(); model.compile(..., compute="{dtype}") then has '
                "matrix products computed in that type", "WEFT_UNSUPPORTED")


def _kind(model: Any) -> str:
    return type(model).__name__


def _packages(model: Any) -> set[str]:
    return {c.__module__.partition(".")[0] for c in type(model).__mro__}


def _is_torch(model: Any) -> bool:
    """Keras's models on PyTorch are modules too; their variables have Keras's names."""
    return "torch" in _packages(model) and "keras" not in _packages(model)


def copy_into(weights: Arrays, model: Any) -> None:
    """Puts weights into a model of the framework by name. Raises Invalid for one that has no place."""
    if not _packages(model) & {"torch", "keras"}:
        raise errors.WrongType(
            f"{_kind(model)} is neither a module of PyTorch nor a model of Keras",
            "give the model that this one was made from")
    export = _weft_export()
    put = []
    for v, assign in export._route(model).slots(model):
        new = next((weights[n] for n in (v.name, *v.aliases) if n in weights), None)
        if new is None:
            continue
        if new.shape != v.value.shape:
            raise errors.ShapeError(f"{v.name!r} is {list(v.value.shape)} there and "
                                    f"{list(new.shape)} here", "give the model of these weights",
                                    "WEFT_SHAPE")
        put.append((assign, new))
    if not put:
        raise errors.Invalid("the two models have no name of a variable in common",
                             "give the model that this one was made from")
    for assign, new in put:
        assign(new)
