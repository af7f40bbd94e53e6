/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/shared.c - the table of layers, and how a builder takes and gives flows. */
#include "common/base/nearest.h"
#include "common/compile/layers/layer.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WF_LAYER(name) extern const wf_layer_row wf_layer_##name;
#include "common/compile/layers.def"
#undef WF_LAYER

#define WF_LAYER(name) &wf_layer_##name,
static const wf_layer_row *const rows[] = {
#include "common/compile/layers.def"
};
#undef WF_LAYER

const wf_layer_row *wf_layer_find(const char *type, char hint[static WF_NEAREST_HINT])
{
    const char *names[WF_COUNT(rows)];

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        names[i] = rows[i]->type;
        if (!strcmp(rows[i]->type, type))
            return rows[i];
    }
    wf_nearest_hint(type, names, WF_COUNT(names), "weft help layers", hint);
    return NULL;
}

wf_flow wf_layer_stop(wf_layer *l, wf_status rc)
{
    if (l->e.rc == WF_OK)
        l->e.rc = rc;
    return (wf_flow){0};
}

wf_value *wf_layer_plain(wf_layer *l, wf_flow f)
{
    int64_t perm[WF_MAX_RANK] = {0}, dims[WF_MAX_RANK] = {0};
    bool point = true;
    int32_t rank = f.value ? f.value->rank : 0;

    if (!f.value || !f.channels_second)
        return f.value;
    for (int32_t i = 1; i + 1 < rank; i++) {
        perm[i] = i + 1;
        dims[i] = f.value->axes[i + 1].size;
        point = point && dims[i] == 1;
    }
    perm[rank - 1] = 1;
    dims[rank - 1] = f.value->axes[1].size;
    return point ? wf_emit_reshape(&l->e, f.value, (uint32_t)rank, dims)
                 : wf_emit_transpose(&l->e, f.value, perm);
}

wf_flow wf_layer_channels_second(wf_layer *l, wf_flow f)
{
    int64_t perm[WF_MAX_RANK] = {0};
    int32_t rank = f.value ? f.value->rank : 0;

    if (rank < 3 || f.channels_second)
        return f;
    perm[1] = rank - 1;
    for (int32_t i = 2; i < rank; i++)
        perm[i] = i - 1;
    return (wf_flow){wf_emit_transpose(&l->e, f.value, perm), true};
}

wf_flow wf_layer_float(wf_layer *l, size_t i)
{
    wf_flow f = l->in[i];

    if (!wf_dtype_is_float(f.value->dtype))
        f.value = wf_emit_cast(&l->e, f.value, WF_F32);
    return f;
}

wf_value *wf_layer_in(wf_layer *l, size_t i)
{
    return wf_layer_plain(l, wf_layer_float(l, i));
}

wf_flow wf_layer_give(wf_value *v)
{
    return (wf_flow){v, false};
}

static bool is_channels_first(const wf_layer *l)
{
    return !strcmp(wf_conf_text(l->item, "data_format", "channels_last"), "channels_first");
}

wf_value *wf_layer_image(wf_layer *l, uint32_t spatial)
{
    char text[128];
    wf_flow f = wf_layer_float(l, 0);

    if (!f.value)
        return NULL;
    if (f.value->rank != (int32_t)spatial + 2) {
        wf_layer_refuse(l, WF_USAGE, "put a reshape before it",
                        "it takes records of %u axes, channels included; what comes is %s",
                        spatial + 1, wf_layer_shape(f, text, sizeof(text)));
        return NULL;
    }
    return is_channels_first(l) ? wf_layer_plain(l, f) : wf_layer_channels_second(l, f).value;
}

wf_flow wf_layer_give_image(const wf_layer *l, wf_value *v)
{
    return (wf_flow){v, v && !is_channels_first(l)};
}

int64_t wf_layer_axis(wf_layer *l, wf_flow f, int64_t axis)
{
    int64_t rank = f.value ? f.value->rank : 0, at = axis < 0 ? axis + rank : axis;
    char text[128];

    if (!f.value)
        return -1;
    if (at < 1 || at >= rank) {
        wf_layer_refuse(l, WF_USAGE, "axis 0 is the batch, -1 the last",
                        "\"axis\" is %lld, and what comes is %s", (long long)axis,
                        wf_layer_shape(f, text, sizeof(text)));
        return -1;
    }
    if (!f.channels_second)
        return at;
    return at == rank - 1 ? 1 : at + 1;
}

bool wf_layer_flag(const wf_layer *l, const char *option, bool otherwise)
{
    return wf_conf_int(l->item, option, otherwise) != 0;
}

bool wf_layer_ints(wf_layer *l, const char *option, uint32_t n, int64_t otherwise, int64_t out[])
{
    const wf_conf_option *o = wf_conf_find(l->item, option);

    if (o && o->n != 1 && o->n != n) {
        wf_layer_refuse(l, WF_USAGE, NULL, "\"%s\" has %zu numbers, and may have 1 or %u", option,
                        o->n, n);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] = !o ? otherwise : o->ints[o->n == 1 ? 0 : i];
    return true;
}

wf_value *wf_layer_number(wf_layer *l, double value)
{
    return wf_emit_scalar(&l->e, WF_F32, value);
}

wf_value *wf_layer_numbers(wf_layer *l, uint32_t rank, const int64_t dims[], double value)
{
    wf_tensor *t = NULL;
    wf_status rc;

    if (l->e.rc != WF_OK)
        return NULL;
    rc = wf_tensor_new(WF_F32, rank, dims, &t, l->e.err);
    if (rc != WF_OK) {
        wf_layer_stop(l, rc);
        return NULL;
    }
    for (int64_t i = 0; i < wf_elems(t); i++)
        wf_f32_mut(t)[i] = (float)value;
    return wf_emit_constant(&l->e, l->name, &t);
}

const char *wf_layer_shape(wf_flow f, char *text, size_t size)
{
    const wf_value *v = f.value;
    size_t at = (size_t)snprintf(text, size, "[batch");

    for (int32_t i = 1; i < v->rank && at < size; i++) {
        int32_t from = !f.channels_second ? i : i == v->rank - 1 ? 1 : i + 1;

        at += (size_t)snprintf(text + at, size - at, ", %lld", (long long)v->axes[from].size);
    }
    if (at < size)
        snprintf(text + at, size - at, "]");
    return text;
}

uint32_t wf_layer_spatial(const wf_layer *l)
{
    const char *digit = strpbrk(l->item->type, "123");

    wf_assert(digit && isdigit((unsigned char)*digit));
    return (uint32_t)(*digit - '0');
}
