/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/unique.c - Unique: slices along an axis, or elements, sorted by content
 * and then by place; each run of equals is one result. For folding: it needs memory for the order.
 */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

typedef struct slices {
    const wf_tensor *x;
    wf_around around;
} slices;

static slices slices_of(const wf_node *node, const wf_tensor *x)
{
    slices s = {x, {1, wf_elems(x), 1}};

    if (wf_node_attr(node, "axis"))
        s.around = wf_around_axis(x, wf_node_int(node, "axis", 0));
    return s;
}

/* NaN comes last, and no two are equal. */
static int compare_elements(const wf_tensor *t, int64_t a, int64_t b)
{
    if (wf_dtype_is_float(t->dtype)) {
        double u = wf_number_at(t, a), v = wf_number_at(t, b);

        if (u != u || v != v)
            return (u != u) == (v != v) ? (a > b) - (a < b) : u != u ? 1 : -1;
        return (u > v) - (u < v);
    }
    return (wf_int_at(t, a) > wf_int_at(t, b)) - (wf_int_at(t, a) < wf_int_at(t, b));
}

static int compare_slices(const slices *s, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < s->around.outer; o++)
        for (int64_t i = 0; i < s->around.inner; i++) {
            int64_t row = o * s->around.axis;
            int order = compare_elements(s->x, (row + a) * s->around.inner + i,
                                         (row + b) * s->around.inner + i);

            if (order)
                return order;
        }
    return 0;
}

static int by_content(const void *a, const void *b, void *arg)
{
    int64_t u = *(const int64_t *)a, v = *(const int64_t *)b;
    int order = u == v ? 0 : compare_slices(arg, u, v);

    return order ? order : (u > v) - (u < v);
}

static int by_place(const void *a, const void *b)
{
    int64_t u = *(const int64_t *)a, v = *(const int64_t *)b;

    return (u > v) - (u < v);
}

/* order [n]: the slices in order. Returns how many differ. */
static int64_t sort(slices *s, int64_t order[])
{
    int64_t n = s->around.axis, count = n > 0;

    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    if (n)
        qsort_r(order, (size_t)n, sizeof order[0], by_content, s);
    for (int64_t i = 1; i < n; i++)
        count += compare_slices(s, order[i - 1], order[i]) != 0;
    return count;
}

static wf_status extents(const wf_node *node, const wf_tensor *const in[],
                         int64_t dims[WF_KERNEL_PORTS][WF_MAX_RANK], wf_err *err)
{
    slices s = slices_of(node, in[0]);
    int64_t *order = calloc((size_t)s.around.axis + 1, sizeof *order), count;
    uint32_t axis = 0;

    if (!order)
        return wf_fail_nomem(err, (size_t)s.around.axis * sizeof *order);
    count = sort(&s, order);
    free(order);
    if (wf_node_attr(node, "axis")) {
        memcpy(dims[0], in[0]->dims, sizeof dims[0]);
        axis = wf_axis_at(wf_node_int(node, "axis", 0), in[0]->rank);
    }
    dims[0][axis] = count;
    dims[1][0] = count;
    dims[2][0] = s.around.axis;
    dims[3][0] = count;
    return WF_OK;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    size_t n = (size_t)slices_of(prep->node, in[0]).around.axis;

    (void)out;
    return wf_prep_workspace(prep, n, 3 * sizeof(int64_t), err);
}

/* groups [count]: (first place, rank in order of content) of each run of equals; group_of [n]. */
static int64_t find_groups(const slices *s, const int64_t order[], int64_t first[],
                           int64_t group_of[])
{
    int64_t count = 0;

    for (int64_t i = 0; i < s->around.axis; i++) {
        if (i == 0 || compare_slices(s, order[i - 1], order[i]) != 0)
            first[count++] = order[i];
        group_of[order[i]] = count - 1;
    }
    return count;
}

static wf_status unique(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    slices s = slices_of(run->node, in[0]);
    int64_t n = s.around.axis, *order = run->workspace, *first = order + n, *group_of = first + n;
    size_t bytes = (size_t)s.around.inner * wf_dtype_size(in[0]->dtype);
    int64_t count;

    (void)err;
    sort(&s, order);
    count = find_groups(&s, order, first, group_of);
    /* order [count] becomes the place in the result of each group. */
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    if (!wf_node_int(run->node, "sorted", 1)) {
        for (int64_t i = 0; i < count; i++)
            order[i] = first[i];
        qsort(order, (size_t)count, sizeof order[0], by_place);
        for (int64_t i = 0; i < count; i++)
            first[i] = order[i];
        for (int64_t i = 0; i < count; i++)
            order[group_of[first[i]]] = i;
    }
    for (int64_t i = 0; i < count && out[0]; i++)
        for (int64_t o = 0; o < s.around.outer; o++)
            wf_copy((char *)out[0]->data + (size_t)(o * count + i) * bytes,
                    (const char *)in[0]->data + (size_t)(o * n + first[i]) * bytes, bytes);
    for (int64_t i = 0; i < count && out[1]; i++)
        ((int64_t *)out[1]->data)[i] = first[i];
    for (int64_t i = 0; i < n && out[2]; i++)
        ((int64_t *)out[2]->data)[i] = order[group_of[i]];
    if (out[3] && count)
        memset(out[3]->data, 0, wf_tensor_bytes(out[3]));
    for (int64_t i = 0; i < n && out[3]; i++)
        ((int64_t *)out[3]->data)[order[group_of[i]]]++;
    return WF_OK;
}

const wf_kernel wf_kernels_unique[] = {
    WF_ROW("Unique", WF_TYPES_NUMBER | WF_TYPE(WF_U8) | WF_TYPE(WF_BOOL), unique,
           .prepare = prepare, .extents = extents),
    {0},
};
