/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/named.h - tensors by name, as a file of weights gives them. */
#ifndef WF_TENSOR_NAMED_H
#define WF_TENSOR_NAMED_H

#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct wf_named {
    char *name;
    wf_tensor *tensor;
    bool is_weight; /* false: a constant of a model, which nobody needs to take */
} wf_named;

/* Owns its rows; {0} is empty. */
typedef struct wf_named_list {
    wf_named *rows; /* [n] */
    size_t n, room;
} wf_named_list;

/* Copies the name and takes *t, which is NULL then. Errors: WF_NOMEM; *t stays the caller's. */
WF_MUST_USE wf_status wf_named_add(wf_named_list *l, const char *name, wf_tensor **t,
                                   bool is_weight, wf_err *err);
/* NULL when there is none of that name. */
const wf_named *wf_named_find(const wf_named_list *l, const char *name);
/* Frees all that it holds; {0} again. */
void wf_named_close(wf_named_list *l);

#endif
