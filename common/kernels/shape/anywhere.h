/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/anywhere.h - for formulas in headers, which the host's code and kernels of
 * GPUs compile alike. */
#ifndef WF_KERNELS_SHAPE_ANYWHERE_H
#define WF_KERNELS_SHAPE_ANYWHERE_H

#ifdef __CUDACC__
#define WF_ANYWHERE static __host__ __device__ inline
#else
#define WF_ANYWHERE static inline
#endif

#endif
