/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/disk.h - what checkpoints and journals do to files, as a table of functions.
 *
 * Programs use the POSIX one (wf_disk_posix); tests and the simulator use one in memory that loses
 * unsynced data and names at a crash and fails at the n-th call (tests/kit/memdisk.h), so that the
 * same code meets both.
 *
 * The model of durability is POSIX at its weakest: data is safe after `sync` of its file; a name
 * (made, renamed or removed) is safe after `sync_dir` of its folder. A sync that failed must not be
 * tried again on the same file: the kernel may have dropped the pages, and a second one can lie.
 *
 * Errors, of all of them: WF_NOTFOUND; WF_IO with path and the system's words; WF_NOMEM.
 */
#ifndef WF_BASE_DISK_H
#define WF_BASE_DISK_H

#include "common/base/arena.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_disk wf_disk;
typedef struct wf_disk_file wf_disk_file; /* an open file; each kind of disk has its own */

typedef enum wf_disk_mode {
    WF_DISK_READ,   /* must be there */
    WF_DISK_CREATE, /* made, or emptied if it is there */
    WF_DISK_APPEND  /* made if it is not there; writes go to its end */
} wf_disk_mode;

typedef struct wf_disk_ops {
    wf_status (*open)(wf_disk *d, const char *path, wf_disk_mode mode, wf_disk_file **out,
                      wf_err *err);
    wf_status (*write)(wf_disk_file *f, const void *data, size_t n, wf_err *err);
    wf_status (*read)(wf_disk_file *f, uint64_t offset, void *data, size_t n, wf_err *err);
    wf_status (*size)(wf_disk_file *f, uint64_t *bytes, wf_err *err);
    wf_status (*cut)(wf_disk_file *f, uint64_t bytes, wf_err *err);
    wf_status (*sync)(wf_disk_file *f, wf_err *err);
    wf_status (*close)(wf_disk_file *f, wf_err *err);
    wf_status (*rename)(wf_disk *d, const char *from, const char *to, wf_err *err);
    wf_status (*remove)(wf_disk *d, const char *path, wf_err *err);
    wf_status (*make_dir)(wf_disk *d, const char *path, wf_err *err);
    wf_status (*sync_dir)(wf_disk *d, const char *path, wf_err *err);
    wf_status (*list)(wf_disk *d, const char *path, wf_arena *arena, const char *const **names,
                      size_t *n, wf_err *err);
    wf_status (*free_bytes)(wf_disk *d, const char *path, uint64_t *bytes, wf_err *err);
} wf_disk_ops;

/* Kinds of disk put this first in a struct of their own. */
struct wf_disk {
    const wf_disk_ops *ops;
};
struct wf_disk_file {
    wf_disk *disk;
};

/* The real one. It has no state and is never freed; any thread may use it. */
wf_disk *wf_disk_posix(void);
/* The same for files that nobody looks for after a crash, since whoever made their folder removes
 * it: nothing is waited for to be durable. */
wf_disk *wf_disk_temporary(void);

/* Opens a file that the caller closes. */
WF_MUST_USE wf_status wf_disk_open(wf_disk *d, const char *path, wf_disk_mode mode,
                                   wf_disk_file **out, wf_err *err);
/* All n bytes at the end of what was written, or an error: a short write is one. */
WF_MUST_USE wf_status wf_disk_write(wf_disk_file *f, const void *data, size_t n, wf_err *err);
/* Exactly n bytes from `offset`. Errors: WF_CORRUPT when the file ends before. */
WF_MUST_USE wf_status wf_disk_read(wf_disk_file *f, uint64_t offset, void *data, size_t n,
                                   wf_err *err);
WF_MUST_USE wf_status wf_disk_size(wf_disk_file *f, uint64_t *bytes, wf_err *err);
/* Shortens an open file, as a journal drops a torn last record. */
WF_MUST_USE wf_status wf_disk_cut(wf_disk_file *f, uint64_t bytes, wf_err *err);
WF_MUST_USE wf_status wf_disk_sync(wf_disk_file *f, wf_err *err);
/* Closes *f and sets it to NULL, whatever comes of it; NULL is fine. The status matters after
 * writes: some file systems report a full disk only here. */
WF_MUST_USE wf_status wf_disk_close(wf_disk_file **f, wf_err *err);
/* For readers and failure paths, where the status says nothing new. */
void wf_disk_drop(wf_disk_file **f);
/* Replaces a file that has the new name. A folder may take only a name that is free, or that of an
 * empty folder. */
WF_MUST_USE wf_status wf_disk_rename(wf_disk *d, const char *from, const char *to, wf_err *err);
/* A file or an empty folder. */
WF_MUST_USE wf_status wf_disk_remove(wf_disk *d, const char *path, wf_err *err);
/* One folder, in one that is there; it is fine if it is there already. */
WF_MUST_USE wf_status wf_disk_make_dir(wf_disk *d, const char *path, wf_err *err);
/* Errors: WF_UNSUPPORTED for a folder that this user may not read, or of a file system that cannot;
 * WF_IO. */
WF_MUST_USE wf_status wf_disk_sync_dir(wf_disk *d, const char *path, wf_err *err);
/* The names in a folder, sorted by bytes, without "." and ".."; in the arena. */
WF_MUST_USE wf_status wf_disk_list(wf_disk *d, const char *path, wf_arena *arena,
                                   const char *const **names, size_t *n, wf_err *err);
/* What an ordinary user may still write on the file system of `path`. */
WF_MUST_USE wf_status wf_disk_free_bytes(wf_disk *d, const char *path, uint64_t *bytes,
                                         wf_err *err);

/* Built from the calls above, for every kind of disk. */

/* A whole file; *out must be empty and is the caller's. Errors: WF_FULL beyond limit_bytes. */
WF_MUST_USE wf_status wf_disk_read_all(wf_disk *d, const char *path, size_t limit_bytes,
                                       wf_bytes *out, wf_err *err);
/* The whole content through a temporary name beside it: write, sync, rename, sync of the folder.
 * After a crash the old content is there or the new, never a part. */
WF_MUST_USE wf_status wf_disk_replace(wf_disk *d, const char *path, const void *data, size_t n,
                                      wf_err *err);
/* The folder and those above it, each made durable in the one above; also the last that was there,
 * whose maker may have ended before. */
WF_MUST_USE wf_status wf_disk_make_dirs(wf_disk *d, const char *path, wf_err *err);
/* A folder of files (no folders within) and the folder itself; WF_OK when it is not there. */
WF_MUST_USE wf_status wf_disk_remove_dir(wf_disk *d, const char *path, wf_err *err);
/* Whether the path is there and can be looked at. */
bool wf_disk_exists(wf_disk *d, const char *path);

#endif
