/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/subnormal.h - numbers below 1.2e-38 count as zero.
 *
 * A mean whose gradient has become zero decays into the subnormal numbers and stays there, where
 * one operation costs an x86 processor over a hundred cycles: Adam on a network with dead units
 * ran ten times slower. TensorFlow's and XLA's threads flush them as well.
 */
#ifndef WF_BASE_SUBNORMAL_H
#define WF_BASE_SUBNORMAL_H

#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* The calling thread's control word, for wf_restore_subnormals. */
static inline uint64_t wf_subnormals(void)
{
#if defined(__x86_64__)
    return _mm_getcsr();
#elif defined(__aarch64__)
    uint64_t control;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return 0;
#endif
}

/* The calling thread treats subnormal numbers as it did then. */
static inline void wf_restore_subnormals(uint64_t control)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)control);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
    (void)control;
#endif
}

/* From here on the calling thread, and every thread that it starts (Linux hands the control word
 * on), reads subnormal operands as zero and writes zero for subnormal results. No effect on
 * processors other than x86-64 and 64-bit ARM. */
static inline void wf_flush_subnormals(void)
{
#if defined(__x86_64__)
    enum { FLUSH_TO_ZERO = 1 << 15, DENORMALS_ARE_ZERO = 1 << 6 };
    _mm_setcsr(_mm_getcsr() | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
#elif defined(__aarch64__)
    wf_restore_subnormals(wf_subnormals() | 1ULL << 24);
#endif
}

#endif
