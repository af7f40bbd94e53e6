/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/cc.h - compiler extensions, and nothing else, behind names of our own. */
#ifndef WF_BASE_CC_H
#define WF_BASE_CC_H

#define WF_MUST_USE __attribute__((warn_unused_result))
#define WF_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WF_NORETURN __attribute__((noreturn))
#define WF_UNUSED __attribute__((unused))
/* Inlined always, so that what calls it decides for which processor it is compiled. */
#define WF_INLINE inline __attribute__((always_inline))
/* In front of an inline function that kernels of GPUs call too. */
#ifdef __CUDACC__
#define WF_ALSO_GPU __host__ __device__
#else
#define WF_ALSO_GPU
#endif
#define WF_LIKELY(x) __builtin_expect(!!(x), 1)
#define WF_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* The empty statement keeps GCC (12) from leaving out calls of a function that does nothing else.
 */
#define WF_PREFETCH(p)                                                                             \
    do {                                                                                           \
        __builtin_prefetch(p);                                                                     \
        __asm__ volatile("");                                                                      \
    } while (0)
/* The same into the second cache. */
#define WF_PREFETCH_SECOND(p)                                                                      \
    do {                                                                                           \
        __builtin_prefetch(p, 0, 2);                                                               \
        __asm__ volatile("");                                                                      \
    } while (0)
#define WF_ALIGNED(n) __attribute__((aligned(n)))

/* Runs free_fn(&variable) when the variable leaves its scope; for tests, where brevity wins. */
#define WF_CLEANUP(free_fn) __attribute__((cleanup(free_fn)))

/* One function compiled for several processors, chosen by the loader. The sanitizers cannot run the
 * loader's resolver (it runs before they are set up), so there the portable form alone is built. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) &&                  \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define WF_MULTIVERSION                                                                            \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WF_MULTIVERSION
#endif

/* In front of a loop whose arrays are either apart or exactly the same (in place): without the word
 * the compiler's overlap test sends the second case down the scalar path. */
#if defined(__GNUC__) && !defined(__clang__)
#define WF_NO_OVERLAP _Pragma("GCC ivdep")
#else
#define WF_NO_OVERLAP
#endif

#define WF_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* a_b, of macros or names: what a template that is included for each type calls its functions. */
#define WF_JOIN_EXPANDED(a, b) a##_##b
#define WF_JOIN(a, b) WF_JOIN_EXPANDED(a, b)

#endif
