/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/window.c */
#include "common/graph/window.h"
#include "common/base/size.h"
#include "common/graph/infer.h"

#include <inttypes.h>
#include <string.h>

/* Sums and products of two such numbers stay far inside int64. */
enum { MOST = INT32_MAX / 4 };
#define LONGEST (INT64_C(1) << 60) /* of an axis: what is added to it has less than 2^59 */

/* A list of `count` numbers, each in [least, MOST]; `otherwise` where it is absent. */
static wf_status read_list(const wf_node *n, const char *name, size_t count, int64_t least,
                           int64_t otherwise, int64_t out[], wf_err *err)
{
    size_t given;
    const int64_t *list = wf_node_ints(n, name, &given);

    for (size_t i = 0; i < count; i++)
        out[i] = otherwise;
    if (!list)
        return WF_OK;
    if (given != count)
        return wf_fail(err, WF_SHAPE, NULL,
                       "its attribute \"%s\" holds %zu numbers, and must hold "
                       "%zu",
                       name, given, count);
    for (size_t i = 0; i < count; i++) {
        if (list[i] < least || list[i] > MOST)
            return wf_fail(err, list[i] < 0 && least == 0 ? WF_UNSUPPORTED : WF_INVALID, NULL,
                           "its attribute \"%s\" holds %" PRId64 ", and must hold %" PRId64
                           " to %d",
                           name, list[i], least, (int)MOST);
        out[i] = list[i];
    }
    return WF_OK;
}

static wf_status read_auto_pad(const wf_node *n, wf_window *w, wf_err *err)
{
    const char *mode = wf_node_string(n, "auto_pad", "NOTSET");
    int64_t pads[2 * WF_WINDOW_AXES];

    w->auto_pad = WF_PAD_EXPLICIT;
    memset(w->before, 0, sizeof w->before);
    memset(w->after, 0, sizeof w->after);
    if (strcmp(mode, "SAME_UPPER") == 0) {
        w->auto_pad = WF_PAD_SAME_UPPER;
    } else if (strcmp(mode, "SAME_LOWER") == 0) {
        w->auto_pad = WF_PAD_SAME_LOWER;
    } else if (strcmp(mode, "NOTSET") == 0 || !mode[0]) {
        WF_TRY(read_list(n, "pads", 2 * (size_t)w->n, 0, 0, pads, err));
        memcpy(w->before, pads, w->n * sizeof pads[0]);
        memcpy(w->after, pads + w->n, w->n * sizeof pads[0]);
    } else if (strcmp(mode, "VALID") != 0) {
        return wf_fail(err, WF_INVALID, NULL,
                       "auto_pad is \"%.40s\", and must be NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                       mode);
    }
    return WF_OK;
}

static wf_status read_kernel(const wf_node *n, const int64_t kernel[], wf_window *w, wf_err *err)
{
    size_t given;

    w->whole = !kernel && !wf_node_ints(n, "kernel_shape", &given);
    WF_TRY(read_list(n, "kernel_shape", w->n, 1, -1, w->kernel, err));
    for (uint32_t i = 0; kernel && i < w->n; i++) {
        if (kernel[i] == 0 || kernel[i] > MOST)
            return wf_fail(err, WF_SHAPE, NULL,
                           "its weights have %" PRId64 " taps along spatial axis %u", kernel[i], i);
        if (kernel[i] > 0 && w->kernel[i] > 0 && kernel[i] != w->kernel[i])
            return wf_fail(err, WF_SHAPE, NULL,
                           "kernel_shape says %" PRId64 " along spatial axis %u, and the weights "
                           "have %" PRId64,
                           w->kernel[i], i, kernel[i]);
        w->kernel[i] = kernel[i] > 0 ? kernel[i] : w->kernel[i];
    }
    return WF_OK;
}

wf_status wf_window_read(const wf_node *n, uint32_t rank, const int64_t kernel[], wf_window *w,
                         wf_err *err)
{
    if (rank < 3)
        return wf_fail(err, WF_SHAPE, NULL, "X has %u axes, and must have [batch, channels, ...]",
                       rank);
    if (rank > 2 + WF_WINDOW_AXES)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "X has %u spatial axes, and weft goes over 1 to %d", rank - 2,
                       WF_WINDOW_AXES);
    memset(w, 0, sizeof *w);
    w->n = rank - 2;
    w->ceil = wf_node_int(n, "ceil_mode", 0) != 0;
    WF_TRY(read_kernel(n, kernel, w, err));
    WF_TRY(read_list(n, "strides", w->n, 1, 1, w->stride, err));
    WF_TRY(read_list(n, "dilations", w->n, 1, 1, w->dilation, err));
    return read_auto_pad(n, w, err);
}

/* How far a window reaches. */
static int64_t reach(const wf_window *w, uint32_t i)
{
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

static void split_pad(wf_window *w, uint32_t i, int64_t total)
{
    total = WF_MAX(total, (int64_t)0);
    w->before[i] = w->auto_pad == WF_PAD_SAME_LOWER ? total - total / 2 : total / 2;
    w->after[i] = total - w->before[i];
}

wf_status wf_window_outputs(wf_window *w, uint32_t i, int64_t size, int64_t *outputs, wf_err *err)
{
    int64_t span, stride = w->stride[i];

    if (size > LONGEST)
        return wf_fail(err, WF_SHAPE, NULL,
                       "spatial axis %u has %" PRId64 " elements, which is no length", i, size);
    if (w->whole)
        w->kernel[i] = WF_MAX(size, (int64_t)1);
    if (w->auto_pad != WF_PAD_EXPLICIT) {
        *outputs = size / stride + (size % stride != 0);
        split_pad(w, i, (*outputs - 1) * stride + reach(w, i) - size);
        return WF_OK;
    }
    span = size + w->before[i] + w->after[i] - reach(w, i);
    if (span < 0)
        return wf_fail(err, WF_SHAPE, NULL,
                       "spatial axis %u has %" PRId64 " elements, %" PRId64
                       " with its padding, and the window reaches over %" PRId64,
                       i, size, size + w->before[i] + w->after[i], reach(w, i));
    *outputs = span / stride + 1;
    /* A window that would begin in the padding behind the input is left out. */
    if (w->ceil && span % stride && *outputs * stride < size + w->before[i])
        ++*outputs;
    return WF_OK;
}

wf_status wf_window_axis(const wf_window *w, uint32_t i, const wf_axis *axis, wf_axis *out,
                         wf_err *err)
{
    wf_window copy = *w;
    int64_t outputs, bound = -1;

    if (w->whole) {
        *out = wf_axis_of(1);
        return WF_OK;
    }
    if (w->kernel[i] < 0) {
        *out = wf_axis_unknown(-1);
        return WF_OK;
    }
    if (axis->size >= 0) {
        WF_TRY(wf_window_outputs(&copy, i, axis->size, &outputs, err));
        *out = wf_axis_of(outputs);
        return WF_OK;
    }
    if (w->stride[i] == 1 &&
        (w->auto_pad != WF_PAD_EXPLICIT || w->before[i] + w->after[i] == reach(w, i) - 1)) {
        *out = *axis; /* "same": a symbol stays what it is */
        return WF_OK;
    }
    if (axis->bound >= 0 && wf_window_outputs(&copy, i, axis->bound, &outputs, NULL) == WF_OK)
        bound = outputs;
    *out = wf_axis_unknown(bound);
    return WF_OK;
}

wf_status wf_window_transposed(const wf_node *n, wf_window *w, uint32_t i, int64_t inputs,
                               int64_t *size, wf_err *err)
{
    int64_t more[WF_WINDOW_AXES], shape[WF_WINDOW_AXES + 2], full;
    size_t given;
    const int64_t *wanted = wf_node_ints(n, "output_shape", &given);

    WF_TRY(read_list(n, "output_padding", w->n, 0, 0, more, err));
    if (inputs > MOST)
        return wf_fail(err, WF_SHAPE, NULL, "spatial axis %u has %" PRId64 " elements", i, inputs);
    full = (inputs - 1) * w->stride[i] + reach(w, i) + more[i];
    if (wanted) {
        /* Files give the spatial axes, some batch and channels in front of them. */
        size_t lead = given == w->n + (size_t)2 ? 2 : 0;

        WF_TRY(read_list(n, "output_shape", w->n + lead, 1, 1, shape, err));
        *size = shape[lead + i];
        /* The odd element of padding goes in front unless SAME_UPPER says otherwise. */
        if (*size > full) {
            w->before[i] = w->after[i] = 0;
            return WF_OK;
        }
        w->before[i] = w->auto_pad == WF_PAD_SAME_UPPER ? (full - *size) / 2
                                                        : full - *size - (full - *size) / 2;
        w->after[i] = full - *size - w->before[i];
        return WF_OK;
    }
    if (w->auto_pad != WF_PAD_EXPLICIT) {
        *size = inputs * w->stride[i];
        split_pad(w, i, full - *size);
        return WF_OK;
    }
    *size = full - w->before[i] - w->after[i];
    return *size >= 0 ? WF_OK
                      : wf_fail(err, WF_SHAPE, NULL,
                                "spatial axis %u would have %" PRId64 " elements", i, *size);
}
