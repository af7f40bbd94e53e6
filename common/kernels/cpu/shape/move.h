/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/move.h - moving elements by strides, whatever their dtype. */
#ifndef WF_KERNELS_CPU_MOVE_H
#define WF_KERNELS_CPU_MOVE_H

#include "common/kernels/pool.h"
#include "common/kernels/shape/walk.h"
#include <stddef.h>

/* to[i] = from[offset of element i of the walk's operand 0]: `to` is dense. size: 1, 2, 4 or 8
 * bytes an element. */
void wf_gather_walk(const wf_walk *w, size_t size, const void *from, void *to);
/* The same, shared over the pool. */
void wf_gather_walk_over(wf_pool *pool, const wf_walk *w, size_t size, const void *from, void *to);
/* to[offset of element i of operand 0] = from[i]: `from` is dense. */
void wf_scatter_walk(const wf_walk *w, size_t size, const void *from, void *to);
/* Copies rows of `bytes`, which begin from_row and to_row bytes after each other, over the pool. */
void wf_copy_rows(wf_pool *pool, int64_t rows, size_t bytes, const void *from, size_t from_row,
                  void *to, size_t to_row);

#endif
