/* SPDX-License-Identifier: Apache-2.0 */
/* ps/sums.c */
#include "ps/sums.h"

#include <stdlib.h>

struct wf_sum {
    uint64_t sequence;
    wf_tensor *value;
    struct wf_sum *next;
};

size_t wf_sums_bytes(const wf_tensor *value)
{
    return wf_tensor_bytes(value) + sizeof *value + sizeof(struct wf_sum);
}

wf_status wf_sums_keep(wf_sums *s, uint64_t sequence, const wf_tensor *value, wf_err *err)
{
    struct wf_sum *it;
    wf_status rc;

    if (s->n >= WF_SUMS_MOST)
        return wf_fail(err, WF_FULL, NULL, "%u sums of a session are kept", s->n);
    it = calloc(1, sizeof *it);
    if (!it)
        return wf_fail_nomem(err, sizeof *it);
    rc = wf_tensor_share(value, &it->value, err);
    if (rc != WF_OK) {
        free(it);
        return rc;
    }
    it->sequence = sequence;
    it->next = s->first;
    s->first = it;
    s->n++;
    return WF_OK;
}

const wf_tensor *wf_sums_find(const wf_sums *s, uint64_t sequence)
{
    for (const struct wf_sum *it = s->first; it; it = it->next)
        if (it->sequence == sequence)
            return it->value;
    return NULL;
}

size_t wf_sums_drop(wf_sums *s, uint64_t since)
{
    size_t bytes = 0;

    for (struct wf_sum **at = &s->first; *at;) {
        struct wf_sum *it = *at;

        if (it->sequence >= since && since != UINT64_MAX) {
            at = &it->next;
            continue;
        }
        *at = it->next;
        s->n--;
        bytes += wf_sums_bytes(it->value);
        wf_tensor_free(&it->value);
        free(it);
    }
    return bytes;
}
