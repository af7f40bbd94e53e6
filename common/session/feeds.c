/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/feeds.c */
#include "common/session/feeds.h"
#include "common/session/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wf_status check(const wf_value *v, const char *origin, const wf_tensor *t, wf_err *err)
{
    char text[128], want[160];
    bool fits = t->dtype == v->dtype && (v->rank < 0 || t->rank == (uint32_t)v->rank);

    for (uint32_t i = 0; fits && v->rank >= 0 && i < t->rank; i++)
        fits = v->axes[i].size < 0 || v->axes[i].size == t->dims[i];
    if (fits)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "%s is %s%s, and input \"%s\" is %s", origin,
                   wf_dtype_name(t->dtype), wf_dims_str(t->rank, t->dims, text, sizeof text),
                   v->name, wf_value_str(v, want, sizeof want));
}

static wf_status rounded(const wf_tensor *t, wf_tensor **out, wf_err *err)
{
    WF_TRY(wf_tensor_new(WF_BF16, t->rank, t->dims, out, err));
    for (int64_t i = 0; i < wf_elems(t); i++)
        ((uint16_t *)(*out)->data)[i] = wf_f32_to_bf16(wf_f32(t)[i]);
    return WF_OK;
}

static wf_status place(wf_fed *f, const wf_graph *g, const char *model, const wf_feed *feed,
                       wf_err *err)
{
    char hint[WF_NEAR_TEXT];

    for (size_t i = 0; i < f->n; i++) {
        struct wf_fed_input *in = &f->inputs[i];

        if (strcmp(in->name, feed->name) != 0)
            continue;
        if (in->content)
            return wf_fail(err, WF_USAGE, NULL, "input \"%s\" is given twice", feed->name);
        in->content = feed->content;
        if (g->inputs[i]->dtype == WF_BF16 && feed->content->dtype == WF_F32) {
            WF_TRY(rounded(feed->content, &in->own, err));
            in->content = in->own;
        }
        return check(g->inputs[i], feed->origin, in->content, err);
    }
    return wf_fail(err, WF_USAGE, wf_near_text(g, true, false, feed->name, hint),
                   "%s has no input \"%.64s\"", model, feed->name);
}

wf_status wf_fed_place(const wf_graph *g, const char *model, size_t n, const wf_feed feeds[],
                       wf_fed *out, wf_err *err)
{
    *out = (wf_fed){.inputs = calloc(g->n_inputs + 1, sizeof *out->inputs)};
    if (!out->inputs)
        return wf_fail_nomem(err, g->n_inputs * sizeof *out->inputs);
    for (; out->n < g->n_inputs; out->n++)
        out->inputs[out->n].name = g->inputs[out->n]->name;
    for (size_t i = 0; i < n; i++)
        WF_TRY(place(out, g, model, &feeds[i], err));
    return WF_OK;
}

wf_status wf_fed_check(const wf_fed *f, const char *model, const wf_compiled *c,
                       char unfed[WF_UNFED_NAME], wf_err *err)
{
    unfed[0] = 0;
    for (size_t i = 0; i < c->n_feeds; i++) {
        const char *name = c->feeds[i].name;

        if (wf_fed_find(f, name))
            continue;
        snprintf(unfed, WF_UNFED_NAME, "%s", name);
        return wf_fail(err, WF_USAGE, "feed it too", "%s wants input \"%.64s\"", model, name);
    }
    return WF_OK;
}

void wf_fed_close(wf_fed *f)
{
    for (size_t i = 0; i < f->n; i++)
        wf_tensor_free(&f->inputs[i].own);
    free(f->inputs);
    *f = (wf_fed){0};
}

const wf_tensor *wf_fed_find(const wf_fed *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->inputs[i].name, name) == 0)
            return f->inputs[i].content;
    return NULL;
}

size_t wf_fed_bytes(const wf_fed *f)
{
    size_t bytes = 0;

    for (size_t i = 0; i < f->n; i++)
        bytes += f->inputs[i].content ? wf_tensor_bytes(f->inputs[i].content) : 0;
    return bytes;
}

void wf_fed_drop(wf_fed *f, size_t i)
{
    wf_tensor_free(&f->inputs[i].own);
    f->n--;
    memmove(&f->inputs[i], &f->inputs[i + 1], (f->n - i) * sizeof f->inputs[0]);
}
