/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/grid_sample_template.h - sampling of a grid, of one type. A template for
 * grid_sample.c: T and SUFFIX are defined before it is included, and are not any more behind it. */
#define typed_elements WF_JOIN(elements, SUFFIX)
#define sample WF_JOIN(sample, SUFFIX)
#define grad WF_JOIN(grad, SUFFIX)
#define grads WF_JOIN(grads, SUFFIX)

static void typed_elements(const job *j, int64_t point, elements *e)
{
    const T *grid = (const T *)j->grid + point * j->s.rank;
    double place[AXES] = {0};

    for (uint32_t i = 0; i < j->s.rank; i++)
        place[i] = (double)grid[i];
    find_elements(&j->s, place, e);
}

static void sample(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_sampling *s = &j->s;
    elements e;

    for (int64_t p = begin; p < end; p++) {
        int64_t n = p / s->points * s->channels;

        typed_elements(j, p, &e);
        for (int64_t c = n; c < n + s->channels; c++) {
            const T *x = (const T *)j->x + c * s->image;
            double sum = 0;

            for (uint32_t k = 0; k < e.n; k++)
                sum += e.weight[k] * (double)x[e.at[k]];
            ((T *)j->y)[c * s->points + p % s->points] = (T)sum;
        }
    }
}

static void grad(const job *j, int64_t p, double dgrid[AXES])
{
    const wf_sampling *s = &j->s;
    int64_t n = p / s->points * s->channels;
    elements e;

    typed_elements(j, p, &e);
    for (int64_t c = n; c < n + s->channels; c++) {
        const T *x = (const T *)j->x + c * s->image;
        T *dx = j->dx ? (T *)j->dx + c * s->image : NULL;
        double dy = (double)((const T *)j->dy)[c * s->points + p % s->points];

        for (uint32_t k = 0; k < e.n; k++) {
            if (dx)
                dx[e.at[k]] += (T)(dy * e.weight[k]);
            for (uint32_t i = 0; i < s->rank; i++)
                dgrid[i] += dy * e.slope[i][k] * (double)x[e.at[k]];
        }
    }
}

/* By image: what one adds to, no other does. */
static void grads(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t p = begin * j->s.points; p < end * j->s.points; p++) {
        double dgrid[AXES] = {0};

        grad(j, p, dgrid);
        for (uint32_t i = 0; i < j->s.rank && j->dgrid; i++)
            ((T *)j->dgrid)[p * j->s.rank + i] = (T)dgrid[j->s.rank - 1 - i];
    }
}

#undef typed_elements
#undef sample
#undef grad
#undef grads
#undef T
#undef SUFFIX
