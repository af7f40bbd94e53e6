# SPDX-License-Identifier: Apache-2.0
"""Jobs made by this package: a job file as text, with data in memory."""
from __future__ import annotations

import json
import re
from typing import Any

from . import _lib, errors
from .data import Arrays, keys
from ._tensor import View


def flow(value: Any) -> str:
    """YAML in one line. It is JSON, but for keys that are numbers: those have no quotes.

    >>> flow({"class_weight": {0: 1.5}, "metrics": ["auc"]})
    '{"class_weight": {0: 1.5}, "metrics": ["auc"]}'
    """
    if isinstance(value, dict):
        keyed = (f"{k if isinstance(k, int) else flow(k)}: {flow(v)}" for k, v in value.items())
        return "{" + ", ".join(keyed) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)


class Job:
    """A job of libweft, and the arrays that it was lent."""

    def __init__(self, content: dict[str, Any], train: Arrays, held: Arrays | None = None):
        data = {"format": "memory", **content.pop("data", {})}
        self.handle, self.views = _lib.Handle("job"), []
        feeds: dict[str, View] = {}
        for split, arrays in (("train", train), ("eval", held)):
            if arrays is None:
                continue
            names = keys(split[0], arrays)
            data[split] = names
            for field, array in arrays.items():
                feeds[names[field]] = View(array, field)
        text = flow({**content, "data": data}).encode()
        with plain_errors():
            _lib.call("job_parse", text, len(text), b"/job.yaml", self.handle.out())
        for name, view in feeds.items():
            _lib.call("job_feed", self.handle, name.encode(), view.pointer())
            self.views.append(view)


# What hints advise for a job file, and what a caller of Python does instead.
_HINTS = [(r"or write map: \{.*\}", "or give y as one-hot rows"),
          (r"add a reshape to data\.map", "reshape the array"),
          (r"give the data an \"eval\"", "give validation_data or validation_split"),
          (r", or leave such steps out \(on_nan: skip\)", ""),
          (r"or save the class numbers", "or give y as class numbers"),
          (r'(name it in "map", or )?take what fits with strict: false',
           "give the file of a model with these variables"),
          (r"use loss: (\w+)", r'compile with loss="\1"'),
          (r"write them as \{output: \[metric\]\}", "give a dict: {output: [metric]}")]
# Failures of a job are WEFT_INVALID, whatever was wrong.
_SHAPES = r"a record of .* is \w+\[.*(the model's input is|takes) |the labels .* takes? "


class plain_errors:  # pylint: disable=invalid-name
    """Within it errors of libweft leave out the place in a job file that nobody wrote."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, e: Any, trace: Any) -> None:
        if isinstance(e, errors.Error):
            message = re.sub(r"^job \S+ failed: |worker/0: |/job\.yaml:\d+: ", "", e.message)
            message = re.sub(r"memory:[te]\d+\.", "", message)
            message = re.sub(r"^(step \d+: )?eval data: ", "validation data: ", message)
            message = re.sub(r'^(weight ".*") of fit is ', r"\1 is ", message)
            hint = e.hint
            for of_a_file, of_python in _HINTS:
                hint = re.sub(of_a_file, of_python, hint)
            kind = errors.ShapeError if re.search(_SHAPES, message) else type(e)
            if (message, hint, kind) != (e.message, e.hint, type(e)):
                raise kind(message, hint, e.code if kind is type(e) else "WEFT_SHAPE") from None
