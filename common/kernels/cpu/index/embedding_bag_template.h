/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/embedding_bag_template.h - bags of rows, of one type. A template for
 * embedding_bag.c: T and SUFFIX are defined before it is included, and are not any more behind it.
 */
#define add_row WF_JOIN(add_row, SUFFIX)
#define sum_of WF_JOIN(sum_of, SUFFIX)
#define sum_bags WF_JOIN(sum_bags, SUFFIX)
#define max_bags WF_JOIN(max_bags, SUFFIX)
#define add_rows WF_JOIN(add_rows, SUFFIX)
#define largest WF_JOIN(largest, SUFFIX)
#define add_largest WF_JOIN(add_largest, SUFFIX)
#define weights_grad WF_JOIN(weights_grad, SUFFIX)

static WF_INLINE void add_row(T *restrict to, const T *restrict from, T weight, int64_t dim)
{
    for (int64_t k = 0; k < dim; k++)
        to[k] += weight * from[k];
}

/* Of rows of one number, as those of linear models are: the sum stays in a register. */
static WF_INLINE T sum_of(const bags *b, const T *table, const T *weights, int64_t first)
{
    T sum = 0;

    for (int64_t i = first; i < first + b->most; i++) {
        int64_t id = id_at(b, i);

        if (id >= 0)
            sum += weights ? weights[i] * table[id] : table[id];
    }
    return sum;
}

/* Bags [begin, end). */
static void sum_bags(void *arg, int64_t begin, int64_t end)
{
    const bags *b = arg;
    const T *table = b->table, *weights = b->weights;
    T *y = (T *)b->rows + begin * b->dim;

    for (int64_t bag = begin; bag < end; bag++, y += b->dim) {
        int64_t first = bag * b->most;

        if (b->dim == 1) {
            *y = sum_of(b, table, weights, first);
            continue;
        }
        memset(y, 0, (size_t)b->dim * sizeof(T));
        for (int64_t i = first; i < first + b->most; i++) {
            int64_t id = id_at(b, i);

            if (id >= 0)
                add_row(y, table + id * b->dim, weights ? weights[i] : 1, b->dim);
        }
    }
}

/* The id whose row has the largest number of a column, the first of equals; -1: a bag without ids.
 */
static int64_t largest(const bags *b, int64_t bag, int64_t k)
{
    const T *table = b->table;
    int64_t found = -1;

    for (int64_t i = bag * b->most; i < (bag + 1) * b->most; i++) {
        int64_t id = id_at(b, i);

        if (id >= 0 && (found < 0 || table[id * b->dim + k] > table[found * b->dim + k]))
            found = id;
    }
    return found;
}

static void max_bags(void *arg, int64_t begin, int64_t end)
{
    const bags *b = arg;
    const T *table = b->table;
    T *y = b->rows;

    for (int64_t i = begin * b->dim; i < end * b->dim; i++) {
        int64_t id = largest(b, i / b->dim, i % b->dim);

        y[i] = id < 0 ? 0 : table[id * b->dim + i % b->dim];
    }
}

/* Rows [begin, end) of the gradient, zeroed, and what comes to them added in the order of the ids:
 * each thread passes over the ids of others. */
static void add_rows(void *arg, int64_t begin, int64_t end)
{
    const bags *b = arg;
    const T *dy = b->rows, *weights = b->weights;
    T *to = b->grad;

    memset(to + begin * b->dim, 0, (size_t)((end - begin) * b->dim) * sizeof(T));
    for (int64_t bag = 0; bag < b->n; bag++)
        for (int64_t i = bag * b->most; i < (bag + 1) * b->most; i++) {
            int64_t id = id_at(b, i);

            if (id >= begin && id < end)
                add_row(to + id * b->dim, dy + bag * b->dim, weights ? weights[i] : 1, b->dim);
        }
}

/* The same where the largest of each column alone has a gradient. */
static void add_largest(void *arg, int64_t begin, int64_t end)
{
    const bags *b = arg;
    const T *dy = b->rows;
    T *to = b->grad;

    memset(to + begin * b->dim, 0, (size_t)((end - begin) * b->dim) * sizeof(T));
    for (int64_t i = 0; i < b->n * b->dim; i++) {
        int64_t id = largest(b, i / b->dim, i % b->dim);

        if (id >= begin && id < end)
            to[id * b->dim + i % b->dim] += dy[i];
    }
}

/* Bags [begin, end). */
static void weights_grad(void *arg, int64_t begin, int64_t end)
{
    const bags *b = arg;
    const T *table = b->table;
    T *to = b->grad;

    for (int64_t bag = begin; bag < end; bag++) {
        const T *dy = (const T *)b->rows + bag * b->dim;

        for (int64_t i = bag * b->most; i < (bag + 1) * b->most; i++) {
            int64_t id = id_at(b, i);
            T sum = 0;

            for (int64_t k = 0; id >= 0 && k < b->dim; k++)
                sum += dy[k] * table[id * b->dim + k];
            to[i] = sum;
        }
    }
}

#undef add_row
#undef sum_of
#undef sum_bags
#undef max_bags
#undef add_rows
#undef largest
#undef add_largest
#undef weights_grad
#undef T
#undef SUFFIX
