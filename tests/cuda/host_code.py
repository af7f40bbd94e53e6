# SPDX-License-Identifier: Apache-2.0
"""No host code of the plug-in calls a function of the device alone.

    host_code.py weft-cuda.so

nvcc gives such a function a body for the host that is exit(1), and in templates it does not say so: a program then ends
without a word. The host's compiler, which the other tests use, has one body for both.
"""
import re
import subprocess
import sys

wanted = subprocess.run(["nm", "-D", "--undefined-only", sys.argv[1]], capture_output=True, text=True, check=True).stdout
if "cudaMemcpyAsync" not in wanted and "cublasLtMatmul" not in wanted:
    sys.exit(f"{sys.argv[1]} is no plug-in: it calls no CUDA")
if re.search(r"\bU exit\b", wanted):
    sys.exit(f"{sys.argv[1]} calls exit: mark the function of the device that host code calls with __host__; "
             "nm -u names the object file, and objdump -d what calls it")
