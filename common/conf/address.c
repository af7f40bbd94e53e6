/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/address.c */
#include "common/conf/address.h"

#include <string.h>

static const char HOW[] = "write tcp://HOST:PORT or ipc://PATH";

static wf_status read_ipc(wf_conf_reader *r, const wf_tree *node, const char *path,
                          wf_task_conf *out, wf_err *err)
{
    if (!path[0])
        return wf_read_fail(r, node, err, WF_USAGE, HOW, "the address %.200s names no path",
                            node->text);
    if (out->path)
        return wf_read_fail(r, node, err, WF_USAGE, "name one of each kind",
                            "a task has two addresses of the kind ipc");
    out->path = path[0] == '/' ? path : wf_arena_printf(r->arena, "%s/%s", r->folder, path);
    if (!out->path)
        return wf_fail_nomem(err, strlen(path));
    if (strlen(out->path) > WF_IPC_MAX)
        return wf_read_fail(r, node, err, WF_USAGE, "use a shorter path, or tcp://127.0.0.1:PORT",
                            "the path of ipc://%.200s has %zu bytes; a socket's name may have %d",
                            out->path, strlen(out->path), WF_IPC_MAX);
    return WF_OK;
}

static bool host_ok(const char *host, size_t n)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    const char *letters = name;

    if (n == 0 || n > 253)
        return false;
    if (host[0] == '[') {
        if (n < 4 || host[n - 1] != ']')
            return false;
        letters = "0123456789abcdefABCDEF:.";
        host++;
        n -= 2;
    }
    for (size_t i = 0; i < n; i++)
        if (!strchr(letters, host[i]))
            return false;
    return true;
}

static wf_status read_tcp(wf_conf_reader *r, const wf_tree *node, const char *rest,
                          wf_task_conf *out, wf_err *err)
{
    const char *colon = strrchr(rest, ':');
    size_t n = colon ? (size_t)(colon - rest) : 0;
    uint64_t port = 0;

    if (!colon || !host_ok(rest, n))
        return wf_read_fail(r, node, err, WF_USAGE, HOW, "the address %.200s is malformed",
                            node->text);
    for (const char *p = colon + 1; *p; p++)
        port = *p < '0' || *p > '9' || port > 65535 ? 65536 : 10 * port + (uint64_t)(*p - '0');
    if (port < 1 || port > 65535)
        return wf_read_fail(r, node, err, WF_USAGE, NULL,
                            "the port \"%.40s\" of %.200s is not a number from 1 to 65535",
                            colon + 1, node->text);
    if (out->host)
        return wf_read_fail(r, node, err, WF_USAGE, "name one of each kind",
                            "a task has two addresses of the kind tcp");
    if (rest[0] == '[') {
        rest++;
        n -= 2;
    }
    out->host = wf_arena_strndup(r->arena, rest, n);
    if (!out->host)
        return wf_fail_nomem(err, n);
    if (strcmp(out->host, "0.0.0.0") == 0 || strcmp(out->host, "::") == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "name the host as the other tasks reach it",
                            "%.200s is no address that another task can connect to", node->text);
    out->port = (uint32_t)port;
    return WF_OK;
}

static wf_status read_one(wf_conf_reader *r, const wf_tree *node, wf_task_conf *out, wf_err *err)
{
    const char *text;

    WF_TRY(wf_read_text(r, node, &text, err));
    if (strncmp(text, "ipc://", 6) == 0)
        return read_ipc(r, node, text + 6, out, err);
    if (strncmp(text, "tcp://", 6) == 0)
        return read_tcp(r, node, text + 6, out, err);
    return wf_read_fail(r, node, err, WF_USAGE, HOW, "the address %.200s is malformed", text);
}

/* As the wire has it: tcp in front, which all can reach. */
static const char *join(wf_conf_reader *r, const wf_task_conf *t, const char *tcp)
{
    if (!t->path)
        return tcp;
    return wf_arena_printf(r->arena, "%s%sipc://%s", tcp ? tcp : "", tcp ? "|" : "", t->path);
}

wf_status wf_read_address(wf_conf_reader *r, const wf_tree *node, wf_task_conf *out, wf_err *err)
{
    const wf_tree *t = node->kind == WF_TREE_LIST ? node->first : node;
    size_t n = node->kind == WF_TREE_LIST ? node->n : 1;
    const char *tcp = NULL;

    out->line = node->line;
    if (n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, HOW, "a task has no address");
    for (size_t i = 0; i < n; i++, t = t->next) {
        WF_TRY(read_one(r, t, out, err));
        if (strncmp(t->text, "tcp://", 6) == 0)
            tcp = t->text;
    }
    out->address = join(r, out, tcp);
    return out->address ? WF_OK : wf_fail_nomem(err, WF_IPC_MAX);
}

bool wf_address_is_local(const wf_task_conf *t)
{
    return !t->host || strcmp(t->host, "localhost") == 0 || strncmp(t->host, "127.", 4) == 0 ||
           strcmp(t->host, "::1") == 0;
}

static const char *plain_host(const char *host)
{
    return strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
}

bool wf_address_same(const wf_task_conf *a, const wf_task_conf *b)
{
    if (a->path && b->path && strcmp(a->path, b->path) == 0)
        return true;
    return a->host && b->host && a->port == b->port &&
           strcmp(plain_host(a->host), plain_host(b->host)) == 0;
}
