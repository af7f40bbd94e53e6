/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/embedding_bag.cu - EmbeddingBag(table, ids, weights): the rows of a bag
 * become one while they are read. EmbeddingBagGrad(dy, ids, table, weights) and
 * EmbeddingBagWeightsGrad(dy, ids, table). An id below 0 names no row; one beyond the table is told
 * of, and names none either. */
#include "common/kernels/cuda/index/ids.h"
#include "common/kernels/cuda/index/scatter.h"
#include "common/kernels/cuda/shape/move.h"

#include <cstring>

namespace
{

struct bags {
    wf_ids ids;            /* [n, most] */
    int64_t n, most, axis; /* axis: rows of the table */
    int64_t dim;
};

bags bags_of(const wf_tensor *ids, const wf_tensor *table)
{
    int64_t most = wf_dim(ids, -1), total = wf_elems(ids);

    return {wf_ids_of(ids), most ? total / most : 0, most, table->dims[0], table->dims[1]};
}

/* The row that id number i names; -1: none. */
WF_CODE int64_t row_at(const bags &b, int64_t i)
{
    int64_t id = wf_id_at(b.ids, i);

    return id < 0 || id >= b.axis ? -1 : id;
}

struct beyond {
    bags b;
    WF_CODE bool is_wrong(int64_t i) const
    {
        return wf_id_at(b.ids, i) >= b.axis;
    }
    WF_CODE void tell(int64_t i, wf_complaints c) const
    {
        wf_complain(c, WF_CUDA_BAD_ID, wf_id_at(b.ids, i), i, b.axis);
    }
};

/* The room for looking at ids comes first in the workspace. */
size_t look_bytes(const bags &b)
{
    return wf_look_bytes(b.n * b.most);
}

wf_status look(const wf_run *run, const bags &b, wf_err *err)
{
    return wf_look(run, beyond{b}, b.n * b.most, run->workspace, err);
}

bool is_max(const wf_node *node)
{
    return std::strcmp(wf_node_string(node, "mode", "sum"), "max") == 0;
}

template <class T> const T *data_of(const wf_tensor *t)
{
    return t ? static_cast<const T *>(t->data) : nullptr;
}

/* ---- EmbeddingBag ---- */

template <class T>
__global__ void sum_bags(bags b, const T *table, const T *weights, T *y, int64_t elems)
{
    for (int64_t e = wf_first(); e < elems; e += wf_all()) {
        const int64_t first = e / b.dim * b.most, k = e % b.dim;
        double sum = 0;

        for (int64_t i = first; i < first + b.most; i++) {
            int64_t row = row_at(b, i);

            if (row >= 0)
                sum += (double)(weights ? weights[i] : T(1)) * (double)table[row * b.dim + k];
        }
        y[e] = (T)sum;
    }
}

/* The row of a bag that has the largest number of a column, the first of equals; -1: the bag has no
 * ids. */
template <class T> WF_CODE int64_t largest(const bags &b, const T *table, int64_t bag, int64_t k)
{
    int64_t found = -1;

    for (int64_t i = bag * b.most; i < (bag + 1) * b.most; i++) {
        int64_t row = row_at(b, i);

        if (row >= 0 && (found < 0 || table[row * b.dim + k] > table[found * b.dim + k]))
            found = row;
    }
    return found;
}

template <class T> __global__ void max_bags(bags b, const T *table, T *y, int64_t elems)
{
    for (int64_t e = wf_first(); e < elems; e += wf_all()) {
        int64_t k = e % b.dim, row = largest(b, table, e / b.dim, k);

        y[e] = row < 0 ? T(0) : table[row * b.dim + k];
    }
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    (void)out, (void)err;
    prep->workspace_bytes = look_bytes(bags_of(in[1], in[0]));
    return WF_OK;
}

template <class T>
wf_status embedding_bag(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    bags b = bags_of(in[1], in[0]);
    const T *table = data_of<T>(in[0]);
    T *y = static_cast<T *>(out[0]->data);
    int64_t elems = wf_elems(out[0]);

    WF_TRY(look(run, b, err));
    if (elems == 0)
        return WF_OK;
    if (is_max(run->node))
        return wf_launch(run, "EmbeddingBag", max_bags<T>, wf_blocks(run, elems), err, b, table, y,
                         elems);
    return wf_launch(run, "EmbeddingBag", sum_bags<T>, wf_blocks(run, elems), err, b, table,
                     data_of<T>(in[2]), y, elems);
}

/* ---- EmbeddingBagGrad ---- */

template <class T> struct adds {
    using A = double;
    bags b;
    const T *dy, *weights;
    T *to;

    WF_CODE double join(double x, double y) const
    {
        return x + y;
    }
};

/* An item is an id. */
struct row_keys {
    bags b;

    WF_CODE uint32_t operator()(int64_t i) const
    {
        int64_t row = row_at(b, i);

        return (uint32_t)(row < 0 ? b.axis : row);
    }
};

template <class T> struct add_rows : adds<T> {
    WF_CODE double take(int64_t i, int64_t k) const
    {
        return (double)(this->weights ? this->weights[i] : T(1)) *
               (double)this->dy[i / this->b.most * this->b.dim + k];
    }
    WF_CODE void put(int64_t row, int64_t k, double all) const
    {
        this->to[row * this->b.dim + k] = (T)all;
    }
};

/* An item is an element of dy, and a row one of the table's: the largest alone has a gradient. */
template <class T> struct largest_keys {
    bags b;
    const T *table;

    WF_CODE uint32_t operator()(int64_t i) const
    {
        int64_t k = i % b.dim, row = largest(b, table, i / b.dim, k);

        return (uint32_t)(row < 0 ? b.axis * b.dim : row * b.dim + k);
    }
};

template <class T> struct add_largest : adds<T> {
    WF_CODE double take(int64_t i, int64_t) const
    {
        return this->dy[i];
    }
    WF_CODE void put(int64_t row, int64_t, double all) const
    {
        this->to[row] = (T)all;
    }
};

wf_scatter scatter_of(const wf_node *node, const bags &b)
{
    return is_max(node) ? wf_scatter{b.n * b.dim, b.axis * b.dim, 1}
                        : wf_scatter{b.n * b.most, b.axis, b.dim};
}

wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    bags b = bags_of(in[1], in[2]);
    wf_scatter s = scatter_of(prep->node, b);

    (void)out;
    prep->workspace_bytes = look_bytes(b) + wf_scatter_bytes(&s, sizeof(double));
    return wf_sort_check(s.items, s.rows, err);
}

template <class T>
wf_status embedding_bag_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    bags b = bags_of(in[1], in[2]);
    wf_scatter s = scatter_of(run->node, b);
    adds<T> a = {b, data_of<T>(in[0]), data_of<T>(in[3]), static_cast<T *>(out[0]->data)};
    void *room = static_cast<char *>(run->workspace) + look_bytes(b);

    WF_TRY(look(run, b, err));
    WF_TRY(wf_clear(run, out[0], err));
    if (is_max(run->node))
        return wf_scatter_all(run, largest_keys<T>{b, data_of<T>(in[2])}, add_largest<T>{a}, &s,
                              room, err);
    return wf_scatter_all(run, row_keys{b}, add_rows<T>{a}, &s, room, err);
}

/* ---- EmbeddingBagWeightsGrad ---- */

/* The longest row that a thread goes through alone. */
enum { SHORT = WF_WARP };

template <class T> __global__ void short_products(bags b, const T *dy, const T *table, T *to)
{
    for (int64_t i = wf_first(); i < b.n * b.most; i += wf_all()) {
        const int64_t row = row_at(b, i);
        double sum = 0;

        for (int64_t k = 0; row >= 0 && k < b.dim; k++)
            sum += (double)dy[i / b.most * b.dim + k] * (double)table[row * b.dim + k];
        to[i] = (T)sum;
    }
}

template <class T> __global__ void products(bags b, const T *dy, const T *table, T *to)
{
    for (int64_t i = blockIdx.x; i < b.n * b.most; i += gridDim.x) {
        const int64_t row = row_at(b, i);
        double sum = 0;

        for (int64_t k = threadIdx.x; row >= 0 && k < b.dim; k += blockDim.x)
            sum += (double)dy[i / b.most * b.dim + k] * (double)table[row * b.dim + k];
        sum = wf_join_block(sum, 0.0, wf_plus());
        if (threadIdx.x == 0)
            to[i] = (T)sum;
    }
}

wf_status prepare_weights(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                          wf_err *err)
{
    (void)out, (void)err;
    prep->workspace_bytes = look_bytes(bags_of(in[1], in[2]));
    return WF_OK;
}

template <class T>
wf_status weights_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    bags b = bags_of(in[1], in[2]);
    int64_t total = b.n * b.most;
    T *to = static_cast<T *>(out[0]->data);

    if (total == 0)
        return WF_OK;
    WF_TRY(look(run, b, err));
    if (b.dim <= SHORT)
        return wf_launch(run, "products", short_products<T>, wf_blocks(run, total), err, b,
                         data_of<T>(in[0]), data_of<T>(in[2]), to);
    return wf_launch_meeting(run, "products", products<T>, wf_blocks(run, total * WF_BLOCK),
                             wf_threads(b.dim), err, b, data_of<T>(in[0]), data_of<T>(in[2]), to);
}

} // namespace

#define ROW(name, dtype, prepare_, run_)                                                           \
    {                                                                                              \
        .op = name, .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype), .prepare = prepare_,       \
        .run = run_                                                                                \
    }
#define FLOATS(name, prepare, run)                                                                 \
    ROW(name, WF_F32, prepare, run<float>), ROW(name, WF_F64, prepare, run<double>)

WF_CUDA_ROWS(embedding_bag){
    FLOATS("EmbeddingBag", prepare, embedding_bag),
    FLOATS("EmbeddingBagGrad", prepare_grad, embedding_bag_grad),
    FLOATS("EmbeddingBagWeightsGrad", prepare_weights, weights_grad),
    {},
};
