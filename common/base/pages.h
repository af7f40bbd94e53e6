/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/pages.h - memory for bulk data: tensors, variables, records. */
#ifndef WF_BASE_PAGES_H
#define WF_BASE_PAGES_H

#include <stddef.h>

/* `bytes` of undefined content, aligned to 64 at least, for free(); NULL when there is no memory.
 * From 4 MiB on it lies on pages of 2 MiB where the system allows it: matrix products that stream
 * tens of megabytes, and rows that are read in no order, then hardly walk the page table. */
void *wf_pages_alloc(size_t bytes);

/* An array of `old` bytes from here, or NULL and 0, with so many: what is new is zeros. From 1 MiB
 * on neither growing nor shrinking copies it, and what is cut off goes back to the system. NULL
 * when there is no memory: the array is as it was. 0 bytes free it, and give NULL. */
void *wf_pages_resize(void *data, size_t old, size_t bytes);

#endif
