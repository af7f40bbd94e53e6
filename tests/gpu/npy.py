# SPDX-License-Identifier: Apache-2.0
"""Files of numpy's format, from a Python that may lack it."""


def write(path, kind, shape, values):
    """kind: as numpy writes it, like <f4; values: bytes, or an array of them."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(values))
