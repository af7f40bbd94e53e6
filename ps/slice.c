/* SPDX-License-Identifier: Apache-2.0 */
/* ps/slice.c */
#include "ps/slice.h"

#include <stdlib.h>
#include <string.h>

static const wf_slice_ops *const built_in[] = {&wf_slice_dense, &wf_slice_hashed, &wf_slice_table,
                                               NULL};

static const wf_slice_ops *find_in(const wf_slice_ops *const *rows, const char *name)
{
    for (; *rows; rows++)
        if (strcmp((*rows)->name, name) == 0)
            return *rows;
    return NULL;
}

const wf_slice_ops *wf_slice_kind_find(const wf_slice_ops *const *more, const char *name)
{
    const wf_slice_ops *found = more ? find_in(more, name) : NULL;

    if (!found)
        found = name[0] ? find_in(built_in, name) : &wf_slice_dense;
    return found;
}

/* Without state. */
static wf_slice *new_like(const wf_slice_ops *ops, const wf_slice *like)
{
    wf_slice *s = calloc(1, ops->size);

    if (!s)
        return NULL;
    *s = *like;
    s->ops = ops;
    s->bytes = s->updates = 0;
    s->seen = (wf_seen){0};
    s->held = (wf_held){0};
    return s;
}

wf_status wf_slice_new(const wf_slice_ops *ops, const wf_slice *like, const wf_opt *opt,
                       wf_slice **out, wf_err *err)
{
    wf_slice *s = new_like(ops, like);
    wf_status rc = s ? ops->init(s, opt, err) : wf_fail_nomem(err, ops->size);

    if (rc != WF_OK)
        wf_slice_free(&s);
    *out = s;
    return rc;
}

void wf_slice_free(wf_slice **s)
{
    wf_slice *it = *s;

    *s = NULL;
    if (!it)
        return;
    it->ops->close(it);
    wf_seen_close(&it->seen);
    wf_held_close(&it->held);
    free(it);
}

wf_status wf_slice_apply_begin(wf_slice *s, const wf_slice_part *p, wf_slice_update *out,
                               wf_err *err)
{
    wf_assert(!s->leaving); /* P7 */
    *out = (wf_slice_update){.slice = s, .part = *p};
    WF_TRY(s->ops->apply_begin(out, err));
    wf_assert(out->grain > 0);
    s->updates++; /* V1 */
    return WF_OK;
}

wf_status wf_slice_apply(wf_slice *s, const wf_opt *opt, const wf_slice_part *p, wf_err *err)
{
    wf_slice_update u;

    WF_TRY(wf_slice_apply_begin(s, p, &u, err));
    s->ops->apply_range(&u, opt, 0, u.units);
    s->ops->apply_end(&u);
    return WF_OK;
}

wf_status wf_slice_fork(const wf_slice *s, wf_slice **out, wf_err *err)
{
    wf_slice *to = new_like(s->ops, s);
    wf_status rc = to ? s->ops->fork(s, to, err) : wf_fail_nomem(err, s->ops->size);

    if (rc == WF_OK) {
        to->bytes = s->bytes;
        to->updates = s->updates;
    } else {
        wf_slice_free(&to);
    }
    *out = to;
    return rc;
}

uint64_t wf_slice_held(const wf_slice *s)
{
    wf_slice_array arrays[WF_SLICE_ARRAYS];
    uint64_t bytes = 0;
    uint32_t n;

    if (s->ops->held)
        return s->ops->held(s);
    n = s->ops->save(s, arrays);
    for (uint32_t k = 0; k < n; k++)
        bytes += arrays[k].bytes;
    return bytes;
}

uint64_t wf_slice_on_disk(const wf_slice *s)
{
    return s->ops->on_disk ? s->ops->on_disk(s) : 0;
}

wf_dtype wf_slice_source_dtype(const wf_slice_source *from, const wf_slice *s)
{
    return from->dtype ? from->dtype(from->arg, s) : WF_F32;
}

const float *wf_slice_values(const wf_slice *s)
{
    wf_slice_array arrays[WF_SLICE_ARRAYS];

    s->ops->save(s, arrays);
    return arrays[0].data;
}
