/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/widened.h - narrow nodes (common/graph/narrow.h) by the kernels of float32: what
 * is narrow of their operands is widened into workspace before, and of their results narrowed
 * behind.
 *
 * So each operation of a device has its narrow form, whether or not somebody has written a faster
 * one (wf_kernel.is_narrow, for the types in wf_device_rows.narrow). A device has one row for all
 * of them (wf_device_rows.widened), whose two functions call these.
 */
#ifndef WF_KERNELS_WIDENED_H
#define WF_KERNELS_WIDENED_H

#include "common/kernels/kernel.h"

/* Converts n elements of float32 and a narrow type, either way, on the run's stream. */
typedef wf_status wf_convert_fn(const wf_run *run, wf_dtype from, const void *x, wf_dtype to,
                                void *y, int64_t n, wf_err *err);

/* Prepares the kernel of float32 in `rows`; the workspace is its own and the widened operands'.
 * Errors: WF_NOMEM; those of the kernel. */
WF_MUST_USE wf_status wf_widened_prepare(wf_prep *prep, const wf_device_rows *rows,
                                         const wf_tensor *const in[], const wf_tensor *const out[],
                                         wf_err *err);
WF_MUST_USE wf_status wf_widened_run(const wf_run *run, wf_convert_fn *convert,
                                     const wf_tensor *const in[], wf_tensor *const out[],
                                     wf_err *err);

#endif
