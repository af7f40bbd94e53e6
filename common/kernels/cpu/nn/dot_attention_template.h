/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/dot_attention_template.h - loops over rows of scores, of one type. A
 * template for dot_attention.c: T, SUFFIX, EXP and LOG are defined before it is included, and
 * are not any more behind it. */
#define typed_top WF_JOIN(top, SUFFIX)
#define typed_dot WF_JOIN(dot, SUFFIX)
#define exp_sum WF_JOIN(exp_sum, SUFFIX)
#define multiply WF_JOIN(multiply, SUFFIX)
#define typed_fill WF_JOIN(fill, SUFFIX)
#define typed_sum WF_JOIN(sum, SUFFIX)
#define slope WF_JOIN(slope, SUFFIX)
#define probabilities WF_JOIN(probabilities, SUFFIX)
#define slopes WF_JOIN(slopes, SUFFIX)

WF_MULTIVERSION static T typed_top(const T *x, int64_t n)
{
    T lane[LANES], top = x[0];
    int64_t i = 0;

    for (int k = 0; k < LANES; k++)
        lane[k] = top;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    for (int k = 0; k < LANES; k++)
        top = lane[k] > top ? lane[k] : top;
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

WF_MULTIVERSION static T typed_dot(const T *x, const T *y, int64_t n)
{
    T lane[LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += x[i + k] * y[i + k];
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

WF_MULTIVERSION static T exp_sum(T *x, T top, int64_t n)
{
    T lane[LANES] = {0}, sum = 0;
    int64_t i = 0;

    WF_NO_OVERLAP
    for (int64_t k = 0; k < n; k++)
        x[k] = EXP(x[k] - top);
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += x[i + k];
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

WF_MULTIVERSION static void multiply(T *x, T factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* x is scaled and masked by whole numbers of steps: a column mask has step 1, a row's 0. */
WF_MULTIVERSION static void typed_fill(T *x, const uint8_t *mask, int64_t step, T fill, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        x[i] = mask[i * step] ? fill : x[i];
}

WF_MULTIVERSION static void typed_sum(T *x, const T *mask, int64_t step, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        x[i] += mask[i * step];
}

/* ds = p (dp - dot) scale, in dp's place. */
WF_MULTIVERSION static void slope(const T *p, T *dp, T dot, T scale, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        dp[i] = p[i] * (dp[i] - dot) * scale;
}

static void probabilities(const job *j, const block *b)
{
    T *sums = j->sums ? j->sums->data : NULL;

    for (int64_t r = 0; r < b->rows; r++) {
        T *x = (T *)b->scores + r * b->columns, top, sum;

        multiply(x, (T)j->p->a.scale, b->columns);
        for (int64_t k = b->row + r + 1; j->p->a.causal && k < b->columns; k++)
            x[k] = -(T)INFINITY;
        if (j->p->mask.n) {
            place m = mask_row(j->p, b->head, b->row + r);

            if (j->p->sums)
                typed_sum(x, (const T *)j->in[3]->data + m.at, m.step, b->columns);
            else
                typed_fill(x, (const uint8_t *)j->in[3]->data + m.at, m.step, (T)j->p->a.fill,
                           b->columns);
        }
        top = typed_top(x, b->columns);
        sum = exp_sum(x, top, b->columns);
        multiply(x, 1 / sum, b->columns);
        if (sums)
            sums[b->head * j->p->a.t + b->row + r] = top + LOG(sum);
    }
}

static void slopes(const job *j, const block *b, void *dp)
{
    for (int64_t r = 0; r < b->rows; r++) {
        const T *p = (const T *)b->scores + r * b->columns;
        T *ds = (T *)dp + r * b->columns;

        slope(p, ds, typed_dot(p, ds, b->columns), (T)j->p->a.scale, b->columns);
        if (j->p->mask.n && !j->p->sums) {
            place m = mask_row(j->p, b->head, b->row + r);

            typed_fill(ds, (const uint8_t *)j->in[3]->data + m.at, m.step, 0, b->columns);
        }
    }
}

#undef typed_top
#undef typed_dot
#undef exp_sum
#undef multiply
#undef typed_fill
#undef typed_sum
#undef slope
#undef probabilities
#undef slopes
#undef T
#undef SUFFIX
#undef EXP
#undef LOG
