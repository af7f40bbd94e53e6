/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/files.h - a folder of its own for a test, and files in it; gone with
 * test_folder_remove. */
#ifndef WF_TESTS_FILES_H
#define WF_TESTS_FILES_H

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

typedef struct test_folder {
    char path[64];
    char file[PATH_MAX]; /* of the last test_path */
} test_folder;

static inline void test_folder_make(test_folder *f)
{
    strcpy(f->path, "/tmp/weft-test-XXXXXX");
    if (!mkdtemp(f->path))
        abort();
}

static inline const char *test_path(test_folder *f, const char *name)
{
    snprintf(f->file, sizeof f->file, "%s/%s", f->path, name);
    return f->file;
}

static inline void test_folder_remove(test_folder *f)
{
    DIR *dir = opendir(f->path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            unlink(test_path(f, entry->d_name));
    if (dir)
        closedir(dir);
    rmdir(f->path);
}

/* Writes a file and returns its path, which lasts until the next call. */
static inline const char *test_write(test_folder *f, const char *name, const void *data, size_t n)
{
    FILE *file = fopen(test_path(f, name), "wb");

    if (!file || fwrite(data, 1, n, file) != n || fclose(file) != 0)
        abort();
    return f->file;
}

/* The same through gzip; its bytes on disk. */
static inline size_t test_write_gz(test_folder *f, const char *name, const void *data, size_t n)
{
    gzFile gz = gzopen(test_path(f, name), "wb");
    FILE *file;
    long size;

    if (!gz || gzwrite(gz, data, (unsigned)n) != (int)n || gzclose(gz) != Z_OK)
        abort();
    file = fopen(f->file, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        abort();
    size = ftell(file);
    fclose(file);
    return (size_t)size;
}

#endif
