# SPDX-License-Identifier: Apache-2.0
"""What `compile`, `fit` and `evaluate` are given, as a job file has it: names as Keras writes them,
and losses, metrics, labels and weights of records by output."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Sequence

from . import data, errors, losses, metrics as metrics_, optimizers
from ._items import Family, Item, Kind, spec
from .data import Arrays
from .history import NOT_METRICS

if TYPE_CHECKING:
    import numpy as np

_FAMILIES: dict[str, Family] = {"optimizer": optimizers._FAMILY, "loss": losses._FAMILY,
                                "metrics": metrics_._FAMILY}


def whole(value: Any, what: str, least: int = 1, most: int | None = None) -> int:
    """A whole number of at least `least`, and at most `most`.

    >>> whole(1.9, "batch_size")
    Traceback (most recent call last):
    weft.errors.WrongType: batch_size is 1.9; give a whole number from 1
    """
    try:
        number = operator.index(value)
    except TypeError:
        said = repr(value) if isinstance(value, (str, float)) else f"a {type(value).__name__}"
        raise errors.WrongType(f"{what} is {said}", f"give a whole number from {least}") from None
    if number < least or (most is not None and number > most):
        raise errors.Invalid(f"{what} is {number}", f"give a whole number from {least}"
                             + ("" if most is None else f" to {most}"))
    return number


def by_number(class_weight: Any) -> dict[int, float]:
    """class_weight as a job file has it.

    >>> by_number({0: 1, "1": 2.5})
    {0: 1.0, 1: 2.5}
    """
    if not isinstance(class_weight, dict):
        raise errors.WrongType(f"class_weight is {class_weight!r}", "give a dict: {0: 1.0, 1: 5.0}")
    out = {}
    for name, weight in class_weight.items():
        try:
            number = int(name)
        except (TypeError, ValueError, OverflowError):
            number = -1
        if number < 0 or (number != name and not isinstance(name, str)):
            raise errors.WrongType(f"class_weight has the class {name!r}",
                                   "give class numbers, from 0: {0: 1.0, 1: 5.0}")
        try:
            out[number] = float(weight)
        except (TypeError, ValueError):
            raise errors.WrongType(f"class_weight of class {number} is {weight!r}",
                                   "give a number from 0 to 1e30") from None
        if not 0 <= out[number] <= 1e30:  # NaN is neither
            raise errors.Invalid(f"class_weight of class {number} is {out[number]}",
                                 "give a number from 0 to 1e30")
    return out


def refuse(what: str, value: Any, instead: str, default: Any = None) -> None:
    """For an argument that Keras has and weft has not."""
    if value is not None and value is not default and value != default:
        raise errors.Unsupported(f"weft has no {what}", instead, "WEFT_UNSUPPORTED")


def _one(value: Any, what: str) -> Any:
    """An optimizer, loss or metric."""
    family = _FAMILIES[what]
    module = "weft." + {"optimizer": "optimizers", "loss": "losses"}.get(what, what)
    if isinstance(value, str):
        kinds = {n.lower(): k.kind for n, k in family.kinds.items()}
        return value if value in kinds.values() else kinds.get(value.lower(), value)
    if isinstance(value, Item):  # Keras's `name` of an optimizer or loss is seen nowhere
        return value if what == "metrics" else Item(value.kind, {
            k: v for k, v in value.options.items() if k != "name"})
    if isinstance(value, Kind):
        raise errors.WrongType(f"{what}: {value.__name__} is a class",
                               f"call it: {value.__name__}()")
    kind = value if isinstance(value, type) else type(value)
    home = kind.__module__.partition(".")[0]
    if home in ("keras", "tf_keras", "tensorflow", "torch"):
        raise errors.WrongType(
            f"{what}: weft takes no {family.what} of {home} ({kind.__name__})",
            f"give {module}.{kind.__name__}(...)" if kind.__name__ in family.kinds
            else f"give one of {module}")
    if callable(value):
        raise errors.WrongType(f"{what}: weft takes no Python functions as {module[5:]}",
                               f"give a name, or one of {module}")
    if not isinstance(value, dict) or len(value) != 1:
        kind = errors.Invalid if isinstance(value, dict) else errors.WrongType
        raise kind(f"{what}: {value!r} is none of weft's", f"give a name, or one of {module}")
    return value


def _by_output(value: Any, names: Sequence[str], what: str) -> dict[str, Any] | None:
    """By output, if it is given so: as a dict, or as a list in their order. Outputs with None are
    left out."""
    if isinstance(value, (list, tuple)):
        if len(value) != len(names):
            raise errors.Invalid(
                f"{what} has {len(value)} entries, and the model {len(names)} outputs",
                f"they are: {', '.join(names)}")
        value = dict(zip(names, value))
    if not isinstance(value, dict) or not value:
        return None
    others = [n for n in value if n not in names]
    options = next(iter(value.values()))
    if others and len(value) == 1 and (options is None or isinstance(options, dict)):
        return None  # a kind with its options
    if others:
        raise errors.Invalid(f"{what}: the model has no output {others[0]!r}",
                             f"it has {', '.join(names)}")
    return {n: v for n, v in value.items() if v is not None}


def _metrics(value: Any) -> list[Any]:
    """Metrics of an output. One that is a name is told of under that name, as by Keras."""
    out = []
    for m in value if isinstance(value, (list, tuple)) else [value]:
        if m is None:
            continue
        m = _one(m, "metrics") if not isinstance(m, str) else Item(_one(m, "metrics"), {"name": m})
        said = spec(m, "metrics")
        kind, options = next(iter(said.items())) if isinstance(said, dict) and said else (said, {})
        name = str((options or {}).get("name", kind) if isinstance(options, dict) else kind)
        if name in (*NOT_METRICS, "loss") or name.startswith("val_"):
            raise errors.Invalid(f'a metric cannot have the name "{name}", which the history has '
                                 "for something else", "give it another name")
        out.append(said)
    return out


class Compiled:
    """What was compiled. `keys`: those of a job file; `labels`: the fields of labels by output."""

    def __init__(self, inputs: Sequence[str], outputs: Sequence[str], optimizer: Any, loss: Any,
                 loss_weights: Any, metrics: Any, compute: str | None):
        self.inputs, self.outputs, single = list(inputs), list(outputs), len(outputs) == 1
        by = _by_output(loss, outputs, "loss")
        if by is not None and not by:
            raise errors.Invalid("no output has a loss", "give one of them a loss")
        if by is not None and single:
            loss, by = by[outputs[0]], None
        factors: Any = None
        if loss_weights is not None:
            if single and not isinstance(loss_weights, (dict, list, tuple)):
                loss_weights = [loss_weights]
            factors = _by_output(loss_weights, outputs, "loss_weights")
            if factors is None:
                raise errors.Invalid(f"loss_weights {loss_weights!r} are not by output",
                                     f"give a list, or a dict by name: {', '.join(outputs)}")
            if by is None and loss is not None:
                by = {outputs[0]: loss}
        self.keys: dict[str, Any] = {"optimizer": spec(_one(optimizer, "optimizer"), "optimizer")}
        self.labels: dict[str, str] = {}
        if by is not None:
            self.labels = {n: self._free("y" if single else n, "_label") for n in by}
            self.keys["loss"] = {n: spec(_one(v, "loss"), "loss") for n, v in by.items()}
            self.keys["labels"] = self.labels
        elif loss is not None:
            self.labels = {outputs[0]: self._free("y", "_label")}
            self.keys["loss"] = spec(_one(loss, "loss"), "loss")
            self.keys["labels"] = self.labels[outputs[0]]
        if factors is not None:
            self.keys["loss_weights"] = spec(factors, "loss_weights")
        told = self._told(metrics, by is not None)
        if told:
            self.keys["metrics"] = told
        if compute is not None:
            self.keys["compute"] = compute

    def _told(self, metrics: Any, several: bool) -> Any:
        """"metrics" of the job file: by output where the loss is."""
        if metrics is None:
            return None
        lists = isinstance(metrics, (list, tuple))
        nested = lists and any(isinstance(m, (list, tuple)) for m in metrics)
        by = None
        if isinstance(metrics, dict) or nested or (several and lists and len(self.outputs) > 1):
            by = _by_output(metrics, self.outputs, "metrics")
        if by is None:
            own = _metrics(metrics)
            return {self.outputs[0]: own} if several and own else own
        if several:
            return {n: own for n, v in by.items() if (own := _metrics(v))}
        others = [n for n in by if n not in self.labels]
        if others:
            raise errors.Invalid(f"metrics names the output {others[0]!r}, which has no loss",
                                 "give the losses by output too")
        return _metrics(next(iter(by.values()), []))

    def _free(self, name: str, end: str) -> str:
        return name if name not in self.inputs else name + end

    # ---- data ----

    def fields(self, x: Any, y: Any, weight: Any) -> Arrays:
        """All arrays of a data set by field."""
        if self.labels:
            fields = data.named(x, self.inputs, "x")
            if y is None:
                raise errors.Invalid("there are no labels (y), and the loss needs them", "give y")
            ys = self._labels_of(y)
            data.check_finite(ys, "labels")
            fields.update(ys)
        elif isinstance(x, dict):
            fields = {n: data.as_array(v, f"x[{n!r}]") for n, v in x.items()}
        else:
            raise errors.Invalid("the file computes its own loss",
                                 "give x as a dict of all inputs, labels too")
        if weight is not None:
            fields.update(self._weights_of(weight))
        data.check_counts(fields)
        return fields

    def _labels_of(self, y: Any) -> Arrays:
        names = list(self.labels)
        if isinstance(y, dict):  # labels of outputs without a loss are for nothing
            y = {n: v for n, v in y.items() if n in names or n not in self.outputs}
        if len(names) == 1:
            lists = len(self.outputs) > 1 and isinstance(y, (list, tuple))
            if lists and _of_arrays(y, self.outputs):
                if not isinstance(self.keys["labels"], dict):
                    raise errors.Invalid(
                        f"y has labels for {len(y)} outputs, and compile got one loss, that of "
                        f"{names[0]!r}", "compile with a loss for each output")
                y = y[self.outputs.index(names[0])]
            field = self.labels[names[0]]
            key = names[0] if isinstance(y, dict) and field not in y else field
            return {field: data.named(y, [key], "y")[key]}
        if isinstance(y, (list, tuple)) and len(y) == len(self.outputs):
            y = [v for n, v in zip(self.outputs, y) if n in names]
            names = [n for n in self.outputs if n in names]
        return {self.labels[n]: a for n, a in data.named(y, names, "y").items()}

    def _weights_of(self, weight: Any) -> Arrays:
        """By output, if they are given so; one array is for all outputs."""
        names = list(self.labels) or self.outputs
        by: dict[str, Any] = {}
        if isinstance(weight, dict):
            others = [n for n in weight if n not in names]
            if others:
                raise errors.Invalid(
                    f"sample_weight has {others[0]!r}, which is no output with a loss",
                    f"there are: {', '.join(names)}")
            by = {n: v for n, v in weight.items() if v is not None}
        elif isinstance(weight, (list, tuple)) and (
                _of_arrays(weight, names) or _of_arrays(weight, self.outputs)):
            order = self.outputs if len(weight) == len(self.outputs) else names
            by = {n: v for n, v in zip(order, weight) if v is not None and n in names}
        one = self._free("sample_weight", "_of_records")
        if by and len(names) == 1:
            weight, by = by[names[0]], {}
        found = {self._weight_field(n): v for n, v in by.items()} or {one: weight}
        out = {}
        for field, value in found.items():
            out[field] = a = data.as_array(value, "sample_weight")
            if a.ndim and a.size != a.shape[0]:
                raise errors.ShapeError(f"sample_weight is {a.dtype}{list(a.shape)}",
                                        "give one number a record", "WEFT_SHAPE")
        return out

    def _weight_field(self, output: str) -> str:
        return self._free(output + "_sample_weight", "_of_records")

    def weight_key(self, fields: Arrays) -> dict[str, Any]:
        """"sample_weight" of the job file, for these fields."""
        one = self._free("sample_weight", "_of_records")
        if one in fields:
            return {"sample_weight": one}
        by = {n: self._weight_field(n) for n in self.labels if self._weight_field(n) in fields}
        return {"sample_weight": by} if by else {}

    def even(self, held: Arrays, train: Arrays) -> Arrays:
        """Weights of records for both data sets or for none: where one lacks them, they are 1."""
        import numpy as np
        names, others = (self._weight_fields(a) for a in (train, held))
        if set(others) - set(names):
            raise errors.Invalid(
                "validation_data has weights of records, and the training data none",
                "give sample_weight for both")
        n = next(iter(held.values())).shape[0]
        return {**held, **{f: np.ones(n, train[f].dtype) for f in names if f not in others}}

    def _weight_fields(self, fields: Arrays) -> list[str]:
        said = self.weight_key(fields).get("sample_weight", [])
        return list(said.values()) if isinstance(said, dict) else [said] if said else []


def _of_arrays(value: Sequence[Any], names: Sequence[str]) -> bool:
    """Whether a list has an array for each name, and is not itself the array."""
    return len(value) == len(names) and all(
        v is None or getattr(v, "ndim", 0) > 0 or (isinstance(v, (list, tuple)) and len(names) > 1)
        for v in value)


def check_records(fields: Arrays, ports: Sequence[dict[str, Any]], where: str = "") -> None:
    """That records have the shapes that the model's inputs say, and numbers that fit into them.
    Axes of length 1 count for nothing, as in libweft; shapes with open axes are left to it."""
    for p in ports:
        array, wanted = fields.get(p["name"]), p["shape"][1:]
        if array is not None:
            _check_range(array, p["dtype"], f'{where}"{p["name"]}"')
        if array is None or not p["shape"] or p["shape"][0] > 0 or any(n < 0 for n in wanted):
            continue
        shape = list(array.shape[1:])
        if [n for n in shape if n != 1] != [n for n in wanted if n != 1]:
            raise errors.ShapeError(
                f'{where}a record of "{p["name"]}" is {array.dtype}{shape}, and the model\'s input '
                f"takes {wanted}", "reshape the array; its first axis is that of the records",
                "WEFT_SHAPE")


def _check_range(array: "np.ndarray", dtype: str | None, what: str) -> None:
    """That numbers fit into a whole type: converted they would be others."""
    import numpy as np
    if dtype is None or array.dtype.name == dtype or not array.size or array.dtype.kind not in "iuf":
        return
    if np.dtype(dtype).kind not in "iu":
        return
    limits = np.iinfo(dtype)
    for n in (array.min(), array.max()):
        if not limits.min <= n <= limits.max:
            raise errors.Invalid(f"{what} holds {n}, and the model's input is {dtype}",
                                 f"give numbers from {limits.min} to {limits.max}")
