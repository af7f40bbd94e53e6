/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/memdisk.c - inodes by number, so that a copy is a copy. Out of memory is an assertion:
 * the test machine has it, and a test must not mistake it for a fault of the disk. */
#include "tests/kit/memdisk.h"
#include "common/base/rng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    char *name;
    size_t inode;
} entry;

typedef struct names {
    entry *list;
    size_t n;
} names;

/* A change of a folder's names since its last sync_dir. */
typedef struct change {
    char *from, *to; /* made: to; removed: from; renamed: both */
    size_t inode;
} change;

typedef struct inode {
    bool is_dir;
    wf_bytes now, durable;
    names now_names, durable_names;
    change *changes;
    size_t n_changes;
} inode;

struct wf_memdisk {
    wf_disk base; /* first */
    inode *inodes;
    size_t n;
    uint64_t calls, fail_at, changes;
    int errnum;
    bool onwards, quiet, full;
};

typedef struct mem_file {
    wf_disk_file base; /* first */
    size_t inode;
    bool writes, appends;
} mem_file;

static void *grow(void *list, size_t n, size_t size)
{
    void *more = realloc(list, (n + 1) * size);

    wf_assert(more);
    return more;
}

static size_t add_inode(wf_memdisk *m, bool is_dir)
{
    m->inodes = grow(m->inodes, m->n, sizeof *m->inodes);
    m->inodes[m->n] = (inode){.is_dir = is_dir};
    return m->n++;
}

static size_t find(const names *in, const char *name)
{
    for (size_t i = 0; i < in->n; i++)
        if (strcmp(in->list[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

static void set_name(names *in, const char *name, size_t to)
{
    size_t i = find(in, name);

    if (i == SIZE_MAX) {
        i = in->n;
        in->list = grow(in->list, in->n++, sizeof *in->list);
        in->list[i].name = strdup(name);
    }
    in->list[i].inode = to;
}

static void drop_name(names *in, const char *name)
{
    size_t i = find(in, name);

    if (i == SIZE_MAX)
        return;
    free(in->list[i].name);
    in->list[i] = in->list[--in->n];
}

static void close_names(names *in)
{
    for (size_t i = 0; i < in->n; i++)
        free(in->list[i].name);
    free(in->list);
    *in = (names){0};
}

static void copy_names(names *to, const names *from)
{
    close_names(to);
    for (size_t i = 0; i < from->n; i++)
        set_name(to, from->list[i].name, from->list[i].inode);
}

static void copy_bytes(wf_bytes *to, const wf_bytes *from)
{
    wf_bytes_close(to);
    wf_bytes_add(to, from->data, from->size);
    wf_assert(!to->failed);
}

static void add_change(inode *dir, const char *from, const char *to, size_t of)
{
    dir->changes = grow(dir->changes, dir->n_changes, sizeof *dir->changes);
    dir->changes[dir->n_changes++] =
        (change){from ? strdup(from) : NULL, to ? strdup(to) : NULL, of};
}

static void close_changes(inode *dir)
{
    for (size_t i = 0; i < dir->n_changes; i++) {
        free(dir->changes[i].from);
        free(dir->changes[i].to);
    }
    free(dir->changes);
    dir->changes = NULL;
    dir->n_changes = 0;
}

/* The folder that holds the last name of a path, and that name; false when it is not there. */
static bool walk(const wf_memdisk *m, const char *path, size_t *dir, char last[256])
{
    *dir = 0;
    snprintf(last, 256, ".");
    while (*path) {
        size_t n = strcspn(path, "/"), i;

        if (n == 0) {
            path++;
            continue;
        }
        if (strcmp(last, ".") != 0) {
            i = find(&m->inodes[*dir].now_names, last);
            if (i == SIZE_MAX || !m->inodes[m->inodes[*dir].now_names.list[i].inode].is_dir)
                return false;
            *dir = m->inodes[*dir].now_names.list[i].inode;
        }
        snprintf(last, 256, "%.*s", (int)n, path);
        path += n;
    }
    return true;
}

static bool lookup(const wf_memdisk *m, const char *path, size_t *out)
{
    char last[256];
    size_t dir, i;

    if (!walk(m, path, &dir, last))
        return false;
    if (strcmp(last, ".") == 0) {
        *out = dir;
        return true;
    }
    i = find(&m->inodes[dir].now_names, last);
    if (i == SIZE_MAX)
        return false;
    *out = m->inodes[dir].now_names.list[i].inode;
    return true;
}

static wf_status count_call(wf_memdisk *m, const char *what, const char *path, wf_err *err)
{
    if (m->quiet)
        return WF_OK;
    m->calls++;
    if (m->fail_at && (m->calls == m->fail_at || (m->onwards && m->calls > m->fail_at)))
        return wf_fail_errno(err, m->errnum, NULL, "cannot %s %s", what, path);
    return WF_OK;
}

/* As count_call, for what needs space. */
static wf_status count_growth(wf_memdisk *m, const char *what, const char *path, wf_err *err)
{
    WF_TRY(count_call(m, what, path, err));
    if (!m->quiet && m->full)
        return wf_fail_errno(err, ENOSPC, NULL, "cannot %s %s", what, path);
    return WF_OK;
}

static wf_status mem_open(wf_disk *d, const char *path, wf_disk_mode mode, wf_disk_file **out,
                          wf_err *err)
{
    wf_memdisk *m = (wf_memdisk *)d;
    char last[256];
    size_t dir, of;
    mem_file *f;

    WF_TRY(count_call(m, "open", path, err));
    if (!lookup(m, path, &of)) {
        if (mode == WF_DISK_READ || !walk(m, path, &dir, last))
            return wf_fail_errno(err, ENOENT, NULL, "cannot open %s", path);
        WF_TRY(count_growth(m, "make", path, err));
        of = add_inode(m, false);
        set_name(&m->inodes[dir].now_names, last, of);
        add_change(&m->inodes[dir], NULL, last, of);
    } else if (mode != WF_DISK_READ && m->inodes[of].is_dir) {
        return wf_fail_errno(err, EISDIR, NULL, "cannot create %s", path);
    } else if (mode == WF_DISK_CREATE) {
        wf_bytes_clear(&m->inodes[of].now);
    }
    f = grow(NULL, 0, sizeof *f);
    *f = (mem_file){{d}, of, mode != WF_DISK_READ, mode == WF_DISK_APPEND};
    m->changes += mode != WF_DISK_READ;
    *out = &f->base;
    return WF_OK;
}

static wf_status mem_write(wf_disk_file *base, const void *data, size_t n, wf_err *err)
{
    mem_file *f = (mem_file *)base;
    wf_memdisk *m = (wf_memdisk *)base->disk;
    wf_status rc = count_growth(m, "write", "a file", err);

    wf_assert(f->writes);
    m->changes += !f->appends;
    wf_bytes_add(&m->inodes[f->inode].now, data, rc == WF_OK ? n : n / 2);
    return rc;
}

static wf_status mem_read(wf_disk_file *base, uint64_t offset, void *data, size_t n, wf_err *err)
{
    mem_file *f = (mem_file *)base;
    wf_memdisk *m = (wf_memdisk *)base->disk;
    const wf_bytes *now = &m->inodes[f->inode].now;

    WF_TRY(count_call(m, "read", "a file", err));
    if (offset > now->size || n > now->size - offset)
        return wf_fail(err, WF_CORRUPT, NULL, "a file ends too early");
    memcpy(data, now->data + offset, n);
    return WF_OK;
}

static wf_status mem_size(wf_disk_file *base, uint64_t *bytes, wf_err *err)
{
    mem_file *f = (mem_file *)base;
    wf_memdisk *m = (wf_memdisk *)base->disk;

    WF_TRY(count_call(m, "look at", "a file", err));
    if (m->inodes[f->inode].is_dir)
        return wf_fail(err, WF_IO, NULL, "this is a folder");
    *bytes = m->inodes[f->inode].now.size;
    return WF_OK;
}

static wf_status mem_cut(wf_disk_file *base, uint64_t bytes, wf_err *err)
{
    mem_file *f = (mem_file *)base;
    wf_memdisk *m = (wf_memdisk *)base->disk;

    WF_TRY(count_call(m, "shorten", "a file", err));
    m->changes++;
    if (bytes < m->inodes[f->inode].now.size)
        m->inodes[f->inode].now.size = (size_t)bytes;
    return WF_OK;
}

static wf_status mem_sync(wf_disk_file *base, wf_err *err)
{
    mem_file *f = (mem_file *)base;
    wf_memdisk *m = (wf_memdisk *)base->disk;
    inode *of = &m->inodes[f->inode];

    WF_TRY(count_call(m, "sync", "a file", err));
    copy_bytes(&of->durable, &of->now);
    return WF_OK;
}

static wf_status mem_close(wf_disk_file *base, wf_err *err)
{
    wf_status rc = count_call((wf_memdisk *)base->disk, "close", "a file", err);

    free(base);
    return rc;
}

static wf_status mem_rename(wf_disk *d, const char *from, const char *to, wf_err *err)
{
    wf_memdisk *m = (wf_memdisk *)d;
    char old[256], new[256];
    size_t dir, to_dir, of, there;

    WF_TRY(count_call(m, "rename", from, err));
    m->changes++;
    if (!lookup(m, from, &of) || !walk(m, from, &dir, old) || !walk(m, to, &to_dir, new))
        return wf_fail_errno(err, ENOENT, NULL, "cannot rename %s", from);
    wf_assert(dir == to_dir); /* nothing in weft moves a file to another folder */
    if (lookup(m, to, &there) && m->inodes[there].is_dir && m->inodes[there].now_names.n > 0)
        return wf_fail_errno(err, ENOTEMPTY, NULL, "cannot rename %s to %s", from, to);
    drop_name(&m->inodes[dir].now_names, old);
    set_name(&m->inodes[dir].now_names, new, of);
    add_change(&m->inodes[dir], old, new, of);
    return WF_OK;
}

static wf_status mem_remove(wf_disk *d, const char *path, wf_err *err)
{
    wf_memdisk *m = (wf_memdisk *)d;
    char last[256];
    size_t dir, of;

    WF_TRY(count_call(m, "remove", path, err));
    m->changes++;
    if (!lookup(m, path, &of) || !walk(m, path, &dir, last))
        return wf_fail_errno(err, ENOENT, NULL, "cannot remove %s", path);
    if (m->inodes[of].is_dir && m->inodes[of].now_names.n > 0)
        return wf_fail_errno(err, ENOTEMPTY, NULL, "cannot remove %s", path);
    drop_name(&m->inodes[dir].now_names, last);
    add_change(&m->inodes[dir], last, NULL, of);
    return WF_OK;
}

static wf_status mem_make_dir(wf_disk *d, const char *path, wf_err *err)
{
    wf_memdisk *m = (wf_memdisk *)d;
    char last[256];
    size_t dir, of;

    WF_TRY(count_growth(m, "make folder", path, err));
    if (lookup(m, path, &of))
        return WF_OK;
    m->changes++;
    if (!walk(m, path, &dir, last))
        return wf_fail_errno(err, ENOENT, NULL, "cannot make folder %s", path);
    of = add_inode(m, true);
    set_name(&m->inodes[dir].now_names, last, of);
    add_change(&m->inodes[dir], NULL, last, of);
    return WF_OK;
}

static wf_status mem_sync_dir(wf_disk *d, const char *path, wf_err *err)
{
    wf_memdisk *m = (wf_memdisk *)d;
    size_t of;

    WF_TRY(count_call(m, "sync folder", path, err));
    if (!lookup(m, path, &of))
        return wf_fail_errno(err, ENOENT, NULL, "cannot sync folder %s", path);
    copy_names(&m->inodes[of].durable_names, &m->inodes[of].now_names);
    close_changes(&m->inodes[of]);
    return WF_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static wf_status mem_list(wf_disk *d, const char *path, wf_arena *arena, const char *const **out,
                          size_t *n, wf_err *err)
{
    wf_memdisk *m = (wf_memdisk *)d;
    const names *in;
    const char **list;
    size_t of;

    WF_TRY(count_call(m, "list", path, err));
    if (!lookup(m, path, &of))
        return wf_fail_errno(err, ENOENT, NULL, "cannot list %s", path);
    in = &m->inodes[of].now_names;
    list = wf_arena_array(arena, in->n, sizeof *list);
    wf_assert(list);
    for (size_t i = 0; i < in->n; i++)
        list[i] = wf_arena_strdup(arena, in->list[i].name);
    if (in->n)
        qsort(list, in->n, sizeof *list, by_bytes);
    *out = list;
    *n = in->n;
    return WF_OK;
}

static wf_status mem_free_bytes(wf_disk *d, const char *path, uint64_t *bytes, wf_err *err)
{
    (void)d, (void)path, (void)err;
    *bytes = 4096;
    return WF_OK;
}

static const wf_disk_ops mem_ops = {
    .open = mem_open,
    .write = mem_write,
    .read = mem_read,
    .size = mem_size,
    .cut = mem_cut,
    .sync = mem_sync,
    .close = mem_close,
    .rename = mem_rename,
    .remove = mem_remove,
    .make_dir = mem_make_dir,
    .sync_dir = mem_sync_dir,
    .list = mem_list,
    .free_bytes = mem_free_bytes,
};

wf_memdisk *wf_memdisk_new(void)
{
    wf_memdisk *m = calloc(1, sizeof *m);

    if (m) {
        m->base.ops = &mem_ops;
        add_inode(m, true);
    }
    return m;
}

wf_memdisk *wf_memdisk_copy(const wf_memdisk *m)
{
    wf_memdisk *c = calloc(1, sizeof *c);

    wf_assert(c);
    c->base.ops = &mem_ops;
    for (size_t i = 0; i < m->n; i++) {
        const inode *from = &m->inodes[i];
        inode *to = NULL;

        add_inode(c, from->is_dir);
        to = &c->inodes[i];
        copy_bytes(&to->now, &from->now);
        copy_bytes(&to->durable, &from->durable);
        copy_names(&to->now_names, &from->now_names);
        copy_names(&to->durable_names, &from->durable_names);
        for (size_t k = 0; k < from->n_changes; k++)
            add_change(to, from->changes[k].from, from->changes[k].to, from->changes[k].inode);
    }
    return c;
}

void wf_memdisk_free(wf_memdisk **m)
{
    if (!*m)
        return;
    for (size_t i = 0; i < (*m)->n; i++) {
        inode *of = &(*m)->inodes[i];

        wf_bytes_close(&of->now);
        wf_bytes_close(&of->durable);
        close_names(&of->now_names);
        close_names(&of->durable_names);
        close_changes(of);
    }
    free((*m)->inodes);
    free(*m);
    *m = NULL;
}

wf_disk *wf_memdisk_disk(wf_memdisk *m)
{
    return &m->base;
}

uint64_t wf_memdisk_calls(const wf_memdisk *m)
{
    return m->calls;
}

uint64_t wf_memdisk_changes(const wf_memdisk *m)
{
    return m->changes;
}

void wf_memdisk_fail(wf_memdisk *m, uint64_t at, int errnum, bool onwards)
{
    m->fail_at = at ? m->calls + at : 0;
    m->errnum = errnum;
    m->onwards = onwards;
}

void wf_memdisk_fill(wf_memdisk *m, bool full)
{
    m->full = full;
}

void wf_memdisk_quiet(wf_memdisk *m, bool quiet)
{
    m->quiet = quiet;
}

/* Of what was written since the last sync: nothing, all, a part, or a part and then zeroes. */
static void tear(inode *of, wf_rng_key key, uint64_t *counter)
{
    uint64_t how = wf_rng_below(key, (*counter)++, 4);
    size_t kept;

    if (how == 0) {
        copy_bytes(&of->now, &of->durable);
        return;
    }
    if (how > 1 && of->now.size > of->durable.size) {
        kept = of->durable.size + wf_rng_below(key, (*counter)++, of->now.size - of->durable.size);
        if (how == 3)
            memset(of->now.data + kept, 0, of->now.size - kept);
        else
            of->now.size = kept;
    }
    copy_bytes(&of->durable, &of->now);
}

static void forget(inode *dir, wf_rng_key key, uint64_t *counter)
{
    for (size_t i = 0; i < dir->n_changes; i++) {
        const change *c = &dir->changes[i];
        size_t at;

        if (wf_rng_below(key, (*counter)++, 2) == 0)
            continue;
        at = c->from ? find(&dir->durable_names, c->from) : SIZE_MAX;
        if (at != SIZE_MAX && dir->durable_names.list[at].inode == c->inode)
            drop_name(&dir->durable_names, c->from);
        if (c->to)
            set_name(&dir->durable_names, c->to, c->inode);
    }
    close_changes(dir);
    copy_names(&dir->now_names, &dir->durable_names);
}

void wf_memdisk_crash(wf_memdisk *m, uint64_t seed)
{
    wf_rng_key key = {seed, wf_rng_fold_str(0, "crash")};
    uint64_t counter = 0;

    m->fail_at = 0;
    m->changes++;
    for (size_t i = 0; i < m->n; i++) {
        if (m->inodes[i].is_dir)
            forget(&m->inodes[i], key, &counter);
        else
            tear(&m->inodes[i], key, &counter);
    }
}

uint8_t *wf_memdisk_bytes(wf_memdisk *m, const char *path, size_t *size)
{
    size_t of;

    if (!lookup(m, path, &of) || m->inodes[of].is_dir)
        return NULL;
    *size = m->inodes[of].now.size;
    return m->inodes[of].now.data;
}
