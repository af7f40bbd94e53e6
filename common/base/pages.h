/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/pages.h - memory for bulk data: tensors, variables, records. */
#ifndef WF_BASE_PAGES_H
#define WF_BASE_PAGES_H

#include <stddef.h>

/* `bytes` of undefined content, aligned to 64 at least, for free(); NULL when there is no memory.
 * From 4 MiB on it lies on pages of 2 MiB where the system allows it: matrix products that stream
 * tens of megabytes, and rows that are read in no order, then hardly walk the page table. */
void *wf_pages_alloc(size_t bytes);

#endif
