/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/memdisk.h - a disk in memory that can lose power, fill up and fail.
 *
 * It keeps the promise of common/base/disk.h and not a bit more: at a crash, of each file what was
 * written since its last sync is there, in part there, there as zeroes, or gone; of each folder any
 * subset of the names made, renamed or removed since its last sync_dir happened. A rename is one
 * change: both of its names, or neither. The seed chooses.
 *
 * Every call counts from 1 and may be made to fail. One thread at a time.
 */
#ifndef WF_TESTS_KIT_MEMDISK_H
#define WF_TESTS_KIT_MEMDISK_H

#include "common/base/disk.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_memdisk wf_memdisk;

/* An empty one, with "/"; the caller owns it. NULL when there is no memory. */
wf_memdisk *wf_memdisk_new(void);
/* All of it, with what is not synced; files open on the other stay with the other. */
wf_memdisk *wf_memdisk_copy(const wf_memdisk *m);
/* Frees *m and sets it to NULL; NULL is fine. Files must be closed. */
void wf_memdisk_free(wf_memdisk **m);
/* What code under test is given; lives as long as m. */
wf_disk *wf_memdisk_disk(wf_memdisk *m);

/* Calls so far. */
uint64_t wf_memdisk_calls(const wf_memdisk *m);
/* Another number when a name may have changed, or what a file holds that is not appended to. */
uint64_t wf_memdisk_changes(const wf_memdisk *m);
/* Call number `at` (counted from now on, 1 is the next) fails with errnum; if `onwards`, so do all
 * that follow. 0: none fails. A write that fails leaves a part of its bytes. */
void wf_memdisk_fail(wf_memdisk *m, uint64_t at, int errnum, bool onwards);
/* While the disk is full, writes and new files and folders fail with ENOSPC. */
void wf_memdisk_fill(wf_memdisk *m, bool full);
/* While quiet, calls are not counted and none fails: for an oracle that looks on. */
void wf_memdisk_quiet(wf_memdisk *m, bool quiet);
/* The power goes and comes back. */
void wf_memdisk_crash(wf_memdisk *m, uint64_t seed);
/* The bytes of a file, to be read or spoilt by a test; NULL when there is none. */
uint8_t *wf_memdisk_bytes(wf_memdisk *m, const char *path, size_t *size);

#endif
