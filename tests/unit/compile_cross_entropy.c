/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_cross_entropy.c - crossentropies that are written out are the losses that they
 * are: the same for tame logits, and finite for wild ones. */
#include "tests/unit/compile_fuse.h"

enum { CLASSES = 3 };

typedef enum form {
    LOG_OF_SOFTMAX,  /* Log(Softmax(x)), and the mean of its picked ones */
    LIKELIHOOD,      /* NegativeLogLikelihoodLoss(LogSoftmax(x)) */
    LIKELIHOOD_LAST, /* the same, of [batch, 3] along the last axis, by Log(Softmax(x)) */
    GATHERED,
    ONE_HOT,
    ONE_HOT_CAST /* made of int64, as F.one_hot is exported */
} form;

static wf_value *one_hot(lab *l, wf_value *labels, bool cast)
{
    const int64_t two[] = {2};
    wf_tensor *t = NULL;
    wf_attr axis = wf_attr_int("axis", 1);
    wf_value *in[3] = {labels, wf_emit_scalar(&l->e, WF_I64, CLASSES), NULL}, *hot;

    must(wf_tensor_new(cast ? WF_I64 : lab_dtype, 1, two, &t, &l->err), &l->err);
    memset(t->data, 0, wf_tensor_bytes(t));
    if (cast)
        ((int64_t *)t->data)[1] = 1;
    else if (lab_dtype == WF_F64)
        ((double *)t->data)[1] = 1;
    else
        wf_f32_mut(t)[1] = 1;
    in[2] = wf_emit_constant(&l->e, "off_on", &t);
    hot = wf_emit_op(&l->e, "OneHot", 3, in, 1, &axis);
    return wf_emit_cast(&l->e, hot, lab_dtype);
}

/* Labels of check_graphs: 0, 1, 2, and below 0 some that count from the end. */
static wf_value *written_out(lab *l, wf_value *x, form f)
{
    wf_emit *e = &l->e;
    int64_t dims[] = {-1, 2};
    wf_value *labels = add_input(l->g, "labels", WF_I64, x->rank == 2 ? 1 : 2, dims), *p, *picked;
    wf_attr axis = wf_attr_int("axis", x->rank == 2 && f != GATHERED ? -1 : 1);
    wf_attr attrs[] = {wf_attr_int("ignore_index", 1)};

    if (f == LIKELIHOOD || f == LIKELIHOOD_LAST) /* of classes alone */
        labels = wf_emit_unary(e, "Abs", labels);
    if (f == LIKELIHOOD)
        p = wf_emit_op(e, "LogSoftmax", 1, &x, 1, &axis);
    else
        p = wf_emit_log(e, wf_emit_op(e, "Softmax", 1, &x, 1, &axis));
    switch (f) {
    case LIKELIHOOD:
    case LIKELIHOOD_LAST:
        return wf_emit_op(e, "NegativeLogLikelihoodLoss", 2, (wf_value *[]){p, labels},
                          f == LIKELIHOOD, attrs);
    case GATHERED:
        axis = wf_attr_int("axis", 1);
        picked = wf_emit_op(
            e, "GatherElements", 2,
            (wf_value *[]){p, wf_emit_unsqueeze(e, labels, 1, (const int64_t[]){1})}, 1, &axis);
        return wf_emit_neg(e, wf_emit_reduce_mean(e, picked, 0, NULL, false));
    case ONE_HOT:
    case ONE_HOT_CAST:
        picked = wf_emit_mul(e, one_hot(l, labels, f == ONE_HOT_CAST), p);
        picked = wf_emit_reduce_sum(e, picked, 1, (const int64_t[]){1}, f == ONE_HOT);
        return wf_emit_neg(e, wf_emit_reduce_mean(e, picked, 0, NULL, false));
    default:
        return wf_emit_reduce_mean(e, wf_emit_mul(e, p, p), 0, NULL, false);
    }
}

static void written_out_losses_are_recognised(void **state)
{
    (void)state;
    for (form f = LOG_OF_SOFTMAX; f <= ONE_HOT_CAST; f++)
        for (int rank = 2; rank <= (f == LIKELIHOOD_LAST ? 2 : 3); rank++) {
            lab l;
            wf_value *x;
            wf_compiled *c;

            lab_open(&l, rank, (const int64_t[]){-1, CLASSES, 2});
            x = wf_emit_mul(
                &l.e, l.x,
                lab_variable(&l, "w", 1, rank == 2 ? (const int64_t[]){3} : (const int64_t[]){2}));
            c = lab_close_grad(&l, written_out(&l, x, f));
            assert_int_equal(count_op(c->graph, "Softmax") + count_op(c->graph, "Log"), 0);
            assert_int_equal(count_op(c->graph, "SoftmaxCrossEntropyLoss"), f != LOG_OF_SOFTMAX);
            assert_int_equal(count_op(c->graph, "LogSoftmax"), f == LOG_OF_SOFTMAX);
            wf_compiled_free(&c);
        }
}

/* A softmax over the batch, and a sum over it. */
static void what_is_no_loss_stays(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        lab l;
        wf_value *p, *labels;
        wf_attr axis = wf_attr_int("axis", i);
        wf_compiled *c;

        lab_open(&l, 2, (const int64_t[]){-1, CLASSES});
        labels = add_input(l.g, "labels", WF_I64, 1, (const int64_t[]){-1});
        p = wf_emit_op(&l.e, "LogSoftmax", 1, &l.x, 1, &axis);
        p = wf_emit_mul(&l.e, p, one_hot(&l, labels, false));
        lab_output(&l, wf_emit_reduce_sum(&l.e, p, 1, (const int64_t[]){!i}, false), "y");
        c = lab_close(&l);
        assert_int_equal(count_op(c->graph, "SoftmaxCrossEntropyLoss"), 0);
        wf_compiled_free(&c);
    }
}

/* OneHot gives zeros for what is no class. */
static void labels_of_no_class_count_nothing_in_one_hot(void **state)
{
    lab l;
    wf_value *p, *labels;
    wf_compiled *c;
    wf_attr axis = wf_attr_int("axis", 1);

    (void)state;
    lab_open(&l, 2, (const int64_t[]){-1, CLASSES});
    labels = add_input(l.g, "labels", WF_I64, 1, (const int64_t[]){-1});
    labels = wf_emit_mul(&l.e, labels, wf_emit_scalar(&l.e, WF_I64, 3)); /* -3 to 6 */
    p = wf_emit_op(&l.e, "LogSoftmax", 1, &l.x, 1, &axis);
    p = wf_emit_mul(&l.e, p, one_hot(&l, labels, false));
    lab_output(&l, wf_emit_reduce_sum(&l.e, p, 1, (const int64_t[]){1}, false), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "SoftmaxCrossEntropyLoss"), 1);
    wf_compiled_free(&c);
}

/* y log s + (1 - y) log(1 - s), or (1 - y) x - log s. */
static wf_value *written_out_binary(lab *l, wf_value *x, bool with_logits, bool other_labels)
{
    wf_emit *e = &l->e;
    wf_value *y = add_input(l->g, "labels", WF_I64, 2, (const int64_t[]){-1, 3});
    wf_value *one = lab_scalar(l, 1.0), *s = wf_emit_unary(e, "Sigmoid", x), *a, *b;

    y = wf_emit_cast(e, y, lab_dtype);
    b = wf_emit_sub(e, one, other_labels ? wf_emit_mul(e, y, y) : y);
    if (with_logits)
        return wf_emit_sub(e, wf_emit_mul(e, b, x), wf_emit_log(e, s));
    a = wf_emit_mul(e, wf_emit_log(e, s), y);
    return wf_emit_add(e, a, wf_emit_mul(e, b, wf_emit_log(e, wf_emit_sub(e, one, s))));
}

static void written_out_binary_losses_are_recognised(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        lab l;
        wf_value *x;
        wf_compiled *c;
        bool other_labels = i >= 2;

        lab_open(&l, 2, (const int64_t[]){-1, 3});
        x = wf_emit_mul(&l.e, l.x, lab_variable(&l, "w", 1, (const int64_t[]){3}));
        c = lab_close_grad(&l, written_out_binary(&l, x, i & 1, other_labels));
        assert_int_equal(count_op(c->graph, "SigmoidCrossEntropy"),
                         other_labels && !(i & 1) ? 2 : 1);
        assert_true(count_op(c->graph, "Chain") + count_op(c->graph, "Mul") >= other_labels);
        wf_compiled_free(&c);
    }
}

/* The probability of the label is 0 in f32, and its logarithm is not. */
static void large_logits_have_a_finite_loss(void **state)
{
    float x[EVAL_BATCH * CLASSES] = {-500, 500, 0, 0, 0, 0, 1000, -1000, 0};
    int64_t labels[EVAL_BATCH] = {0, 1, 1, 2, 2};
    wf_compile_spec spec = {.mode = WF_COMPILE_GRAD, .loss = "loss"};
    fed feeds[] = {{"x", x}, {"labels", labels}, {NULL, NULL}};
    evaluated p;
    lab l;
    wf_compiled *c;
    double loss, want = (1000.0 + log(3.0) + 2000.0 + 2 * log(3.0)) / EVAL_BATCH;

    (void)state;
    if (lab_dtype == WF_F64)
        return;
    lab_open(&l, 2, (const int64_t[]){-1, CLASSES});
    lab_output(&l,
               written_out(&l, wf_emit_add(&l.e, l.x, lab_variable(&l, "w", 0, NULL)), GATHERED),
               "loss");
    spec.graph = l.g;
    c = compile(&spec);
    p = eval_graph(c->graph, feeds);
    loss = (double)wf_f32(output_of(&p, "loss"))[0];
    assert_true(fabs(loss - want) < 1e-3 * want);
    assert_true(fabs((double)wf_f32(output_of(&p, c->outputs[1].name))[0]) < 1e-5);
    eval_free(&p);
    wf_compiled_free(&c);
    wf_graph_free(&l.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_out_losses_are_recognised),
        cmocka_unit_test(what_is_no_loss_stays),
        cmocka_unit_test(labels_of_no_class_count_nothing_in_one_hot),
        cmocka_unit_test(written_out_binary_losses_are_recognised),
        cmocka_unit_test(large_logits_have_a_finite_loss),
    };

    return lab_run(tests);
}
