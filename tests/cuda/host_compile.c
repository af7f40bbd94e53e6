/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_compile.c */
#include "tests/cuda/host_compile.h"
#include "common/base/bytes.h"
#include "common/base/file.h"
#include "common/kernels/cuda/on_host_thread.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    INVALID_OPTION = WF_CUDA_OF_NVRTC + 5,
    COMPILATION = WF_CUDA_OF_NVRTC + 6,
    INVALID_IMAGE = 200,
    NOT_FOUND = 500,
    BAD_VALUE = 1
};

static const size_t MOST_BYTES = (size_t)64 << 20;

/* What a kernel takes from code.h, and its way to this program's threads. */
static const char preamble[] = "#include \"common/kernels/cuda/on_host.h\"\n"
                               "#include <cmath>\n"
                               "extern \"C\" {\n"
                               "const wf_host_thread *(*host_self_of)(void);\n"
                               "const wf_host_thread *wf_host_self(void)\n"
                               "{\n"
                               "    return host_self_of();\n"
                               "}\n"
                               "}\n";

struct wf_cuda_program {
    char *source;
    wf_bytes code, said;
};

struct wf_cuda_library {
    void *opened;
};

static size_t objects, compilations;

size_t host_compile_objects(void)
{
    return objects;
}

size_t host_compile_count(void)
{
    return compilations;
}

/* ---- a compiler ---- */

/* Runs g++ with its messages in a file; its exit code, or -1: there is none. */
static int run_compiler(char *const argv[], const char *messages)
{
    extern char **environ;
    posix_spawn_file_actions_t files;
    pid_t child;
    int how = -1, failed;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, messages, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    failed = posix_spawnp(&child, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed || waitpid(child, &how, 0) != child || !WIFEXITED(how))
        return -1;
    return WEXITSTATUS(how) == 127 ? -1 : WEXITSTATUS(how);
}

/* Of what is put before each source. */
static int hash_of_preamble(void)
{
    wf_bytes text = {0};
    int hash;

    (void)!wf_file_read(HOST_SOURCES "/common/kernels/cuda/on_host.h", MOST_BYTES, &text, NULL);
    wf_bytes_puts(&text, preamble);
    hash = (int)(XXH3_64bits(wf_bytes_str(&text), text.size) & INT_MAX);
    wf_bytes_close(&text);
    return hash;
}

/* Asks once. */
int host_compiler_version(int *major, int *minor)
{
    static int found; /* 1: yes, -1: no */
    char gxx[] = "g++", version[] = "--version", *argv[] = {gxx, version, NULL};

    if (found == 0)
        found = run_compiler(argv, "/dev/null") == 0 ? 1 : -1;
    *major = 0; /* no NVRTC has it, so files of this compiler are never taken for NVRTC's */
    *minor = hash_of_preamble();
    return found > 0 ? 0 : WF_CUDA_NO_NVRTC;
}

int host_program_new(wf_cuda_program **out, const char *source)
{
    wf_cuda_program *p = calloc(1, sizeof *p);

    *out = p;
    if (!p)
        return WF_CUDA_NO_MEMORY;
    p->source = strdup(source);
    objects++;
    return 0;
}

static bool write_source(const wf_cuda_program *p, const char *path)
{
    FILE *f = fopen(path, "w");
    bool right = f && fputs(preamble, f) >= 0 && fputs(p->source, f) >= 0;

    return (!f || fclose(f) == 0) && right;
}

static int compile_in(wf_cuda_program *p, const char *folder)
{
    char source[PATH_MAX], library[PATH_MAX], messages[PATH_MAX];
    const char *const argv[] = {"g++", "-std=c++20", "-O1",  "-shared", "-fPIC", "-w",
                                "-I",  HOST_SOURCES, source, "-o",      library, NULL};
    int status;

    snprintf(source, sizeof source, "%s/program.cc", folder);
    snprintf(library, sizeof library, "%s/program.so", folder);
    snprintf(messages, sizeof messages, "%s/messages", folder);
    status = write_source(p, source) ? run_compiler((char *const *)(uintptr_t)argv, messages) : -1;
    if (wf_file_read(messages, MOST_BYTES, &p->said, NULL) != WF_OK || status < 0)
        return COMPILATION;
    if (status != 0 || wf_file_read(library, MOST_BYTES, &p->code, NULL) != WF_OK)
        return COMPILATION;
    return 0;
}

int host_program_compile(wf_cuda_program *p, int n, const char *const options[])
{
    char folder[] = "/tmp/weft-cuda-host-XXXXXX";
    int error;

    for (int i = 0; i < n; i++)
        if (strncmp(options[i], "--gpu-architecture=sm_", 22) != 0 &&
            strncmp(options[i], "--std=", 6) != 0)
            return INVALID_OPTION;
    if (!mkdtemp(folder))
        return COMPILATION;
    compilations++;
    error = compile_in(p, folder);
    (void)!wf_remove_tree(folder, NULL);
    return error;
}

int host_program_log_size(const wf_cuda_program *p, size_t *bytes)
{
    *bytes = p->said.size + 1;
    return 0;
}

int host_program_log(const wf_cuda_program *p, char *out)
{
    memcpy(out, wf_bytes_str(&p->said), p->said.size + 1);
    return 0;
}

int host_program_code_size(const wf_cuda_program *p, size_t *bytes)
{
    *bytes = p->code.size;
    return p->code.size ? 0 : BAD_VALUE;
}

int host_program_code(const wf_cuda_program *p, char *out)
{
    memcpy(out, p->code.data, p->code.size);
    return 0;
}

int host_program_free(wf_cuda_program *p)
{
    free(p->source);
    wf_bytes_close(&p->code);
    wf_bytes_close(&p->said);
    free(p);
    objects--;
    return 0;
}

/* ---- libraries ---- */

/* As CUDA does, it finds the length of code in it: the section headers end a library. */
static size_t bytes_of(const void *code)
{
    Elf64_Ehdr head;

    memcpy(&head, code, SELFMAG);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return 0;
    memcpy(&head, code, sizeof head);
    return head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
}

static void *open_bytes(const void *code, size_t bytes)
{
    const wf_host_thread *(**self)(void);
    char path[] = "/tmp/weft-cuda-host-XXXXXX";
    void *opened = NULL;
    int fd = mkstemp(path);

    if (fd < 0)
        return NULL;
    if (wf_write_all(fd, code, bytes, path, NULL) == WF_OK)
        opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    close(fd);
    unlink(path);
    self = opened ? dlsym(opened, "host_self_of") : NULL;
    if (self)
        *self = wf_host_self;
    return opened;
}

int host_library_load(wf_cuda_library **out, const void *code)
{
    size_t bytes = bytes_of(code);
    void *opened = bytes ? open_bytes(code, bytes) : NULL;

    *out = opened ? malloc(sizeof **out) : NULL;
    if (!*out)
        return opened ? WF_CUDA_NO_MEMORY : INVALID_IMAGE;
    (*out)->opened = opened;
    objects++;
    return 0;
}

int host_library_kernel(const void **out, wf_cuda_library *l, const char *name)
{
    *out = dlsym(l->opened, name);
    return *out ? 0 : NOT_FOUND;
}

int host_library_free(wf_cuda_library *l)
{
    dlclose(l->opened);
    free(l);
    objects--;
    return 0;
}
