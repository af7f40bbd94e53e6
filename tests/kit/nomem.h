/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/nomem.h - runs a piece of work again and again, each time with another allocation
 * failing.
 *
 * A program that links this has its allocator (malloc, calloc, realloc, aligned_alloc,
 * posix_memalign, memalign, strdup, strndup, free) replaced by one that counts. It counts what the
 * thread of the sweep asks for, in weft and in the libraries whose failures weft has to answer for:
 * libc, jansson, libyaml, protobuf-c, zlib, libdeflate. Others are served always: C++ throws
 * through weft where memory ends, and OpenBLAS ends the program; and so is the loader, of whom new
 * threads have their memory. What weft takes out of an arena counts as an allocation as well.
 *
 * With the address sanitizer it stands in front of the sanitizer's allocator, which then sees what
 * is used after it was freed.
 */
#ifndef WF_TESTS_KIT_NOMEM_H
#define WF_TESTS_KIT_NOMEM_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stdint.h>

/* Makes things, checks them and frees them all. Returns WF_OK only if the result is right, whatever
 * failed on the way; a wrong one is any status but WF_OK and WF_NOMEM. */
typedef wf_status wf_nomem_work(void *context, wf_err *err);

/* Runs `work` once as it is, for what libraries keep for good. Then with the 1st, 2nd, 3rd, ...
 * allocation failing, alone and with all that follow, until a run has fewer; `stride` above 1 steps
 * over some. After each run the status must be WF_OK or WF_NOMEM, that with a sentence, and nothing
 * that was allocated may be left. Gives the allocations of a run in which none fails; 0 when there
 * was a fault, which stderr tells with the command that names its place. A crash is told and not
 * survived. One sweep at a time. */
uint64_t wf_nomem_sweep(const char *name, wf_nomem_work *work, void *context, uint64_t stride);

/* While spared, allocations of this thread are not counted, do not fail and may stay: for the parts
 * of a work that belong to the test. Gives what it was before. */
bool wf_nomem_spare(bool spared);

#endif
