/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/memory.h - tensors by name, lent by the program that trains: data of the format
 * "memory", whose paths end with these names. */
#ifndef WF_DATA_MEMORY_H
#define WF_DATA_MEMORY_H

#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stddef.h>

enum { WF_MEMORY_MOST = 64, WF_MEMORY_NAME = 64 /* bytes of a name, with its end */ };

/* {0} is empty. Data sets may read it from several threads while nobody changes it. */
typedef struct wf_memory {
    size_t n;
    struct {
        char name[WF_MEMORY_NAME];
        wf_tensor *tensor; /* owned; what it is over may be the caller's */
    } rows[WF_MEMORY_MOST];
} wf_memory;

/* Puts *t under a name, in place of what was there: it is taken then, and *t is NULL. Errors:
 * WF_INVALID for a name that is empty, too long or has other characters than letters, digits,
 * "_", "." and "-", for a tensor without records, and for a bool that is neither 0 nor 1; WF_FULL.
 */
WF_MUST_USE wf_status wf_memory_put(wf_memory *m, const char *name, wf_tensor **t, wf_err *err);
void wf_memory_close(wf_memory *m);

#endif
