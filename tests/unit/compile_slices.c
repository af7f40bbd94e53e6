/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_slices.c - columns of a product: where the product makes no others, and where
 * it stays whole. The shapes that are left say which.
 */
#include "tests/unit/compile_fuse.h"

enum { ROWS_OF_B = 9, TERMS = 3 };

typedef struct cut {
    int64_t begin, end, axis;
    bool turned, biased, shared;
    int64_t columns; /* that a product makes */
} cut;

static wf_value *emit_slice(lab *l, wf_value *x, const cut *f)
{
    wf_value *in[] = {x, wf_emit_ints(&l->e, 1, &f->begin), wf_emit_ints(&l->e, 1, &f->end),
                      wf_emit_ints(&l->e, 1, &f->axis)};

    return wf_emit_op(&l->e, "Slice", 4, in, 0, NULL);
}

/* Of the one product of a graph. */
static int64_t columns_of(const wf_graph *g)
{
    int64_t columns = -1;

    for (size_t i = 0; i < g->n_nodes; i++)
        if (!strcmp(g->nodes[i]->op->name, "Gemm") || !strcmp(g->nodes[i]->op->name, "Linear")) {
            assert_int_equal(columns, -1);
            columns = g->nodes[i]->out[0]->axes[1].size;
        }
    return columns;
}

static void check_cut(const cut *f, int64_t rows)
{
    const int64_t dims[] = {f->turned ? ROWS_OF_B : TERMS, f->turned ? TERMS : ROWS_OF_B},
                  n = ROWS_OF_B;
    wf_value *w, *b, *y;
    wf_compiled *c;
    lab l;

    lab_open(&l, 2, (const int64_t[]){rows, TERMS});
    w = lab_variable(&l, "w", 2, dims);
    b = f->biased ? lab_variable(&l, "b", 1, &n) : NULL;
    y = wf_emit_gemm(&l.e, l.x, w, b, 1.5f, 1, false, f->turned);
    lab_output(&l, emit_slice(&l, y, f), "y");
    if (f->shared)
        lab_output(&l, wf_emit_unary(&l.e, "Sin", y), "z");
    c = lab_close(&l);
    assert_int_equal(columns_of(c->graph), f->columns);
    wf_compiled_free(&c);
}

static void columns_that_nobody_reads_are_not_made(void **state)
{
    static const cut cuts[] = {
        {0, 4, 1, true, false, false, 4},         {0, 4, 1, false, false, false, 4},
        {2, -3, -1, true, false, false, 4},       {5, INT64_MAX, 1, false, false, false, 4},
        {0, 4, 1, true, true, false, ROWS_OF_B},  /* a bias would have to be cut, too */
        {0, 4, 1, true, false, true, ROWS_OF_B},  /* another reads them all */
        {0, 4, 0, true, false, false, ROWS_OF_B}, /* rows */
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cuts); i++)
        check_cut(&cuts[i], -1);
}

/* To cut the factor would cost more than it saves. */
static void a_product_of_few_rows_stays_whole(void **state)
{
    static const cut few = {0, 4, 1, true, false, false, ROWS_OF_B},
                     many = {0, 4, 1, true, false, false, 4};

    (void)state;
    check_cut(&few, TERMS);
    check_cut(&many, TERMS + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_that_nobody_reads_are_not_made),
        cmocka_unit_test(a_product_of_few_rows_stays_whole),
    };

    return lab_run(tests);
}
