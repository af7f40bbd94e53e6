/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/file.h - whole files and folders, with errors in words. */
#ifndef WF_BASE_FILE_H
#define WF_BASE_FILE_H

#include "common/base/bytes.h"
#include "common/base/status.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* open(2) for files on disk, without waiting: a pipe in place of a file would hold up whoever opens
 * it until somebody writes to it. A folder may be opened too. The caller closes *fd. Errors:
 * WF_NOTFOUND, WF_IO; WF_INVALID for a pipe, a socket or a device. */
WF_MUST_USE wf_status wf_file_open(const char *path, int flags, int *fd, wf_err *err);
/* Reads a whole file; *out must be empty and is the caller's. Errors: those of wf_file_open;
 * WF_FULL when it is larger than limit_bytes. */
WF_MUST_USE wf_status wf_file_read(const char *path, size_t limit_bytes, wf_bytes *out,
                                   wf_err *err);
/* Writes a file through a temporary name beside it, fsync, rename and fsync of the folder: after a
 * crash the old content or the new is there, never a part. */
WF_MUST_USE wf_status wf_file_write(const char *path, const void *data, size_t n, wf_err *err);
/* Makes a folder and those above it; it is fine if it is there. */
WF_MUST_USE wf_status wf_make_dirs(const char *path, wf_err *err);
bool wf_file_exists(const char *path);
/* The same path for a message: without links, "." and ".." as far as its folders exist. */
void wf_path_shown(const char *path, char out[PATH_MAX]);
/* Removes a file, or a folder and all in it; links are removed and not followed. It is fine if it
 * is not there. Errors: WF_IO with what is still there. */
WF_MUST_USE wf_status wf_remove_tree(const char *path, wf_err *err);
/* Makes the names in a folder durable (fsync of the folder). Errors: WF_UNSUPPORTED for a folder
 * that this user may not read, or of a file system that cannot; WF_NOTFOUND; WF_IO. */
WF_MUST_USE wf_status wf_sync_dir(const char *path, wf_err *err);
/* All n bytes, through short writes and EINTR. `path` is for the message. */
WF_MUST_USE wf_status wf_write_all(int fd, const void *data, size_t n, const char *path,
                                   wf_err *err);

#endif
