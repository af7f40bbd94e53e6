/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/read_back.c */
#include "cmd/cli/read_back.h"
#include "common/ckpt/sum.h"
#include "common/tensor/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A weight whose values are given back. */
typedef struct wf_kept {
    char *name;
    char sum[WF_SUM_TEXT];
} kept;

/* Ids of a table's rows, which are keys of an operation in the file. */
static bool are_ids(const weft_tensor *t)
{
    return t->dtype == WEFT_I64;
}

static size_t bytes_of(const weft_tensor *t)
{
    return (size_t)weft_tensor_elements(t) * weft_dtype_size(t->dtype);
}

/* Whether the file has all weights as they were trained. */
static bool is_exact(const weft_model *m)
{
    weft_port p;

    for (size_t i = 0; weft_model_port(m, WEFT_VARIABLE, i, &p, NULL) == WEFT_OK; i++)
        if (p.dtype != WEFT_F32)
            return false;
    return true;
}

wf_status wf_read_back_begin(wf_read_back *r, wf_trained *t, const weft_model *m, wf_err *err)
{
    size_t n = weft_list_count(t->weights);
    bool exact = is_exact(m);

    snprintf(r->origin, sizeof r->origin, "%s", weft_list_origin(t->weights));
    r->kept = exact ? calloc(n + 1, sizeof *r->kept) : NULL;
    if (exact && !r->kept)
        return wf_fail_nomem(err, n * sizeof *r->kept);
    for (size_t i = 0; i < n; i++) {
        const weft_tensor *w = weft_list_tensor(t->weights, i);
        kept *k;

        if (are_ids(w))
            continue;
        r->n++;
        if (!exact)
            continue;
        k = &r->kept[r->n_kept];
        k->name = strdup(weft_list_name(t->weights, i));
        if (!k->name)
            return wf_fail_nomem(err, 0);
        wf_sum_of(w->data, bytes_of(w), k->sum);
        r->n_kept++;
    }
    if (exact)
        weft_list_free(&t->weights);
    return WF_OK;
}

static wf_status missing(const char *file, const char *name, wf_err *err)
{
    return wf_fail(err, WF_CORRUPT, NULL, "%s does not read back: \"%.200s\" is missing", file,
                   name);
}

static wf_status compare_sums(const wf_read_back *r, const weft_model *back, const char *file,
                              wf_err *err)
{
    for (size_t i = 0; i < r->n_kept; i++) {
        const kept *k = &r->kept[i];
        weft_tensor *t = NULL;
        char sum[WF_SUM_TEXT];

        if (weft_model_weight(back, k->name, &t, NULL) != WEFT_OK)
            return missing(file, k->name, err);
        wf_sum_of(t->data, bytes_of(t), sum);
        weft_tensor_free(&t);
        if (strcmp(sum, k->sum) != 0)
            return wf_fail(err, WF_CORRUPT, NULL, "%s does not read back: \"%.200s\" is another",
                           file, k->name);
    }
    return WF_OK;
}

/* Element i of a float32 tensor, or of halves that it was rounded to. */
static double number_at(const weft_tensor *t, int64_t i)
{
    const uint16_t *halves = t->data;

    return (double)(t->dtype == WEFT_F16    ? wf_f16_to_f32(halves[i])
                    : t->dtype == WEFT_BF16 ? wf_bf16_to_f32(halves[i])
                                            : ((const float *)t->data)[i]);
}

static bool has_numbers(const weft_tensor *t, const weft_tensor *like)
{
    return weft_tensor_elements(t) == weft_tensor_elements(like) &&
           (t->dtype == WEFT_F32 || t->dtype == WEFT_F16 || t->dtype == WEFT_BF16);
}

static wf_status compare_numbers(wf_read_back *r, const weft_list *weights, const weft_model *back,
                                 const char *file, wf_err *err)
{
    for (size_t i = 0; i < weft_list_count(weights); i++) {
        const weft_tensor *want = weft_list_tensor(weights, i);
        const char *name = weft_list_name(weights, i);
        weft_tensor *t = NULL;

        if (are_ids(want))
            continue;
        if (weft_model_weight(back, name, &t, NULL) != WEFT_OK || !has_numbers(t, want)) {
            weft_tensor_free(&t);
            return missing(file, name, err);
        }
        for (int64_t k = 0; k < weft_tensor_elements(want); k++)
            r->most = fmax(r->most, fabs(number_at(t, k) - number_at(want, k)));
        weft_tensor_free(&t);
    }
    return WF_OK;
}

wf_status wf_read_back_compare(wf_read_back *r, const wf_trained *t, const weft_model *back,
                               const char *file, wf_err *err)
{
    return r->kept ? compare_sums(r, back, file, err)
                   : compare_numbers(r, t->weights, back, file, err);
}

void wf_read_back_close(wf_read_back *r)
{
    for (size_t i = 0; i < r->n_kept; i++)
        free(r->kept[i].name);
    free(r->kept);
    *r = (wf_read_back){0};
}
