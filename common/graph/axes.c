/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/axes.c - arithmetic on axes and carried elements, known or symbolic. */
#include "common/base/size.h"
#include "common/graph/infer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

wf_axis wf_axis_of(int64_t size)
{
    return (wf_axis){.size = size, .bound = size};
}

wf_axis wf_axis_unknown(int64_t bound)
{
    return (wf_axis){.size = -1, .bound = bound};
}

static bool same_symbol(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

bool wf_axis_same(const wf_axis *a, const wf_axis *b)
{
    if (a->size >= 0 || b->size >= 0)
        return a->size == b->size;
    return same_symbol(a->symbol, b->symbol);
}

bool wf_axes_clash(const wf_axis *a, const wf_axis *b)
{
    return a->size >= 0 && b->size >= 0 && a->size != b->size;
}

wf_axis wf_axis_merge(const wf_axis *a, const wf_axis *b)
{
    if (a->size >= 0)
        return *a;
    if (b->size >= 0)
        return *b;
    return a->symbol ? *a : *b;
}

/* A bound of both, or none. */
static int64_t bound_by(bool (*combine)(int64_t, int64_t, int64_t *), int64_t a, int64_t b)
{
    int64_t bound;

    return a >= 0 && b >= 0 && combine(a, b, &bound) ? bound : -1;
}

static bool add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static bool sub_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_sub_overflow(a, b, out);
}

/* Digits and a star in front of a name; what overflows is a name like another. */
int64_t wf_symbol_factor(const char *symbol, const char **base)
{
    size_t digits = strspn(symbol, "0123456789");

    *base = symbol;
    if (digits < 1 || digits > 18 || symbol[digits] != '*' || !symbol[digits + 1])
        return 1;
    *base = symbol + digits + 1;
    return strtoll(symbol, NULL, 10);
}

wf_status wf_axis_multiple(wf_graph *g, int64_t factor, const char *base, int64_t bound,
                           wf_axis *out, wf_err *err)
{
    *out = (wf_axis){.size = -1, .bound = bound, .symbol = base};
    if (factor == 1)
        return WF_OK;
    out->symbol = wf_arena_printf(g->arena, "%" PRId64 "*%s", factor, base);
    return out->symbol ? WF_OK : wf_fail_nomem(err, strlen(base));
}

wf_axis wf_axis_mul(const wf_axis *a, const wf_axis *b)
{
    int64_t size;

    if (a->size == 1)
        return *b;
    if (b->size == 1)
        return *a;
    if (a->size >= 0 && b->size >= 0 && wf_mul_i64(a->size, b->size, &size))
        return wf_axis_of(size);
    return wf_axis_unknown(bound_by(wf_mul_i64, a->bound, b->bound));
}

wf_axis wf_axis_add(const wf_axis *a, const wf_axis *b)
{
    int64_t size;

    if (a->size == 0)
        return *b;
    if (b->size == 0)
        return *a;
    if (a->size >= 0 && b->size >= 0 && add_i64(a->size, b->size, &size))
        return wf_axis_of(size);
    return wf_axis_unknown(bound_by(add_i64, a->bound, b->bound));
}

/* One axis of a broadcast: false when both are known, differ, and neither is 1. */
static bool broadcast(wf_axis *a, const wf_axis *b)
{
    if (b->size == 1 || wf_axis_same(a, b))
        return true;
    if (a->size == 1) {
        *a = *b;
        return true;
    }
    if (wf_axes_clash(a, b))
        return false;
    if (a->size >= 0)
        return true;
    *a = b->size >= 0
             ? *b
             : wf_axis_unknown(a->bound < 0 || b->bound < 0 ? -1 : WF_MAX(a->bound, b->bound));
    return true;
}

wf_status wf_axes_broadcast(wf_axis axes[WF_MAX_RANK], uint32_t *rank, const wf_value *v,
                            wf_err *err)
{
    uint32_t other = (uint32_t)v->rank, more = other > *rank ? other - *rank : 0;

    memmove(axes + more, axes, *rank * sizeof axes[0]);
    for (uint32_t i = 0; i < more; i++)
        axes[i] = wf_axis_of(1);
    *rank += more;
    for (uint32_t i = 0; i < other; i++) {
        wf_axis *a = &axes[*rank - other + i];

        if (!broadcast(a, &v->axes[i]))
            return wf_fail(err, WF_SHAPE,
                           "axes are matched from the last one; each pair must be "
                           "equal or one of them 1",
                           "%" PRId64 " does not broadcast with %" PRId64, a->size,
                           v->axes[i].size);
    }
    return WF_OK;
}

wf_status wf_axis_number(int64_t axis, uint32_t rank, uint32_t *out, wf_err *err)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return wf_fail(err, WF_SHAPE, NULL, "axis %" PRId64 " is not in a tensor of %u axes", axis,
                       rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return WF_OK;
}

wf_elem wf_elem_of(int64_t value)
{
    return (wf_elem){.is_known = true, .value = value, .bound = value};
}

wf_elem wf_elem_unknown(void)
{
    return (wf_elem){.bound = -1};
}

wf_elem wf_elem_of_axis(const wf_axis *axis)
{
    if (axis->size >= 0)
        return wf_elem_of(axis->size);
    return (wf_elem){.symbol = axis->symbol, .bound = axis->bound};
}

wf_axis wf_axis_of_elem(const wf_elem *e)
{
    if (e->is_known)
        return wf_axis_of(e->value);
    return (wf_axis){.size = -1, .symbol = e->symbol, .bound = e->bound};
}

static wf_elem combine(bool (*op)(int64_t, int64_t, int64_t *), const wf_elem *a, const wf_elem *b)
{
    int64_t value;

    return a->is_known && b->is_known && op(a->value, b->value, &value) ? wf_elem_of(value)
                                                                        : wf_elem_unknown();
}

static bool is(const wf_elem *e, int64_t value)
{
    return e->is_known && e->value == value;
}

wf_elem wf_elem_add(const wf_elem *a, const wf_elem *b)
{
    return is(a, 0) ? *b : is(b, 0) ? *a : combine(add_i64, a, b);
}

wf_elem wf_elem_sub(const wf_elem *a, const wf_elem *b)
{
    if (!a->is_known && !b->is_known && same_symbol(a->symbol, b->symbol))
        return wf_elem_of(0);
    return is(b, 0) ? *a : combine(sub_i64, a, b);
}

wf_elem wf_elem_mul(const wf_elem *a, const wf_elem *b)
{
    if (is(a, 0) || is(b, 0))
        return wf_elem_of(0);
    return is(a, 1) ? *b : is(b, 1) ? *a : combine(wf_mul_i64, a, b);
}

static bool div_i64(int64_t a, int64_t b, int64_t *out)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    *out = a / b;
    return true;
}

wf_elem wf_elem_div(const wf_elem *a, const wf_elem *b)
{
    return is(b, 1) ? *a : combine(div_i64, a, b);
}

wf_elem wf_elem_equal(const wf_elem *a, const wf_elem *b)
{
    const wf_elem *symbolic = a->is_known ? b : a, *other = a->is_known ? a : b;

    if (a->is_known && b->is_known)
        return wf_elem_of(a->value == b->value);
    if (same_symbol(a->symbol, b->symbol))
        return wf_elem_of(1);
    /* The size of an axis is never negative. */
    if (symbolic->symbol && other->is_known && other->value < 0)
        return wf_elem_of(0);
    return wf_elem_unknown();
}

wf_elem wf_elem_greater(const wf_elem *a, const wf_elem *b)
{
    if (a->is_known && b->is_known)
        return wf_elem_of(a->value > b->value);
    if (a->symbol && b->is_known && b->value < 0)
        return wf_elem_of(1);
    if (b->symbol && a->is_known && a->value < 0)
        return wf_elem_of(0);
    return wf_elem_unknown();
}

wf_elem wf_elem_less(const wf_elem *a, const wf_elem *b)
{
    return wf_elem_greater(b, a);
}

wf_elem wf_elem_max(const wf_elem *a, const wf_elem *b)
{
    wf_elem greater = wf_elem_greater(a, b);

    return !greater.is_known ? wf_elem_unknown() : greater.value ? *a : *b;
}

wf_elem wf_elem_min(const wf_elem *a, const wf_elem *b)
{
    wf_elem greater = wf_elem_greater(a, b);

    return !greater.is_known ? wf_elem_unknown() : greater.value ? *b : *a;
}
