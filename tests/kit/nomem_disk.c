/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/nomem_disk.c - the functions of a memdisk, each in a pair of wf_nomem_spare. */
#include "tests/kit/nomem_disk.h"
#include "tests/kit/nomem.h"

static const wf_disk_ops *ops; /* a memdisk's, which are those of all */

#define SPARED(call)                                                                               \
    bool was = wf_nomem_spare(true);                                                               \
    wf_status rc = ops->call;                                                                      \
                                                                                                   \
    wf_nomem_spare(was);                                                                           \
    return rc

static wf_status spared_open(wf_disk *d, const char *path, wf_disk_mode mode, wf_disk_file **out,
                             wf_err *err)
{
    SPARED(open(d, path, mode, out, err));
}

static wf_status spared_write(wf_disk_file *f, const void *data, size_t n, wf_err *err)
{
    SPARED(write(f, data, n, err));
}

static wf_status spared_read(wf_disk_file *f, uint64_t offset, void *data, size_t n, wf_err *err)
{
    SPARED(read(f, offset, data, n, err));
}

static wf_status spared_size(wf_disk_file *f, uint64_t *bytes, wf_err *err)
{
    SPARED(size(f, bytes, err));
}

static wf_status spared_cut(wf_disk_file *f, uint64_t bytes, wf_err *err)
{
    SPARED(cut(f, bytes, err));
}

static wf_status spared_sync(wf_disk_file *f, wf_err *err)
{
    SPARED(sync(f, err));
}

static wf_status spared_close(wf_disk_file *f, wf_err *err)
{
    SPARED(close(f, err));
}

static wf_status spared_rename(wf_disk *d, const char *from, const char *to, wf_err *err)
{
    SPARED(rename(d, from, to, err));
}

static wf_status spared_remove(wf_disk *d, const char *path, wf_err *err)
{
    SPARED(remove(d, path, err));
}

static wf_status spared_make_dir(wf_disk *d, const char *path, wf_err *err)
{
    SPARED(make_dir(d, path, err));
}

static wf_status spared_sync_dir(wf_disk *d, const char *path, wf_err *err)
{
    SPARED(sync_dir(d, path, err));
}

static wf_status spared_list(wf_disk *d, const char *path, wf_arena *arena,
                             const char *const **names, size_t *n, wf_err *err)
{
    SPARED(list(d, path, arena, names, n, err));
}

static wf_status spared_free_bytes(wf_disk *d, const char *path, uint64_t *bytes, wf_err *err)
{
    SPARED(free_bytes(d, path, bytes, err));
}

static const wf_disk_ops spared = {
    .open = spared_open,
    .write = spared_write,
    .read = spared_read,
    .size = spared_size,
    .cut = spared_cut,
    .sync = spared_sync,
    .close = spared_close,
    .rename = spared_rename,
    .remove = spared_remove,
    .make_dir = spared_make_dir,
    .sync_dir = spared_sync_dir,
    .list = spared_list,
    .free_bytes = spared_free_bytes,
};

void wf_nomem_disk(wf_disk *memdisk)
{
    if (memdisk->ops != &spared)
        ops = memdisk->ops;
    memdisk->ops = &spared;
}
