# SPDX-License-Identifier: Apache-2.0
"""A file for each family of operations; importing one adds its generators to the list."""
from gradient_cases import elementwise, losses, movers, norms, products, recurrent, spatial  # noqa: F401
from gradient_cases.case import GENERATORS  # noqa: F401
