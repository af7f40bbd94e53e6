/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/copy_past.h - copies past the caches, for memory that another core reads next. A core
 * that writes a line which another one has read must first take it from that one's cache, and waits
 * for most of these. Stores that go past the cache do not wait (Intel 64 and IA-32 Architectures
 * Software Developer's Manual, volume 1, 10.4.6.2, "Caching of Temporal vs. Non-Temporal Data").
 */
#ifndef WF_BASE_COPY_PAST_H
#define WF_BASE_COPY_PAST_H

#include <stddef.h>

/* Like memcpy; what is stored later is seen after the copy. Where the processor has no such stores,
 * and for few bytes, it is memcpy. */
void wf_copy_past_cache(void *restrict to, const void *restrict from, size_t bytes);

#endif
