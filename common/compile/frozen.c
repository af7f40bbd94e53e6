/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/frozen.c - frozen variables and large constants become Pulls, so that a graph
 * stays small however large the frozen part of its model is.
 *
 * They travel as trained variables do, from the ps, and workers pull them once and not in each
 * step. This stands behind folding and fusion: these look at content, and what they make of it is
 * what is pulled. What is small stays in the graph: a slice, a row in each list of slices and a
 * message would cost more than its bytes, and kernels read small constants (scales, bounds) before
 * they run.
 *
 * The train graph and the eval graph are compiled apart, and names that rewriting gave need not
 * mean the same content in both. So a constant is pulled by a name that has the checksum of its
 * content in it.
 */
#include "common/base/size.h"
#include "common/compile/pass.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Of a graph's content that parameter servers cannot hold: two graphs travel in one message. */
static const size_t MOST_BYTES = (size_t)120 << 20;

/* Of a constant's name: with checksum and offset it must be one for a tensor (ckpt/shard.h). */
static const size_t LONGEST_NAME = 900;

/* Whether v is given with the graph and never changes. */
static bool is_fixed(const wf_value *v)
{
    return v->known && !v->producer && !v->is_input &&
           (v->variable == WF_VAR_NOT || v->variable == WF_VAR_FROZEN);
}

static bool is_used(const wf_unit *u, const wf_value *v)
{
    return v->first_use || wf_is_output(u->graph, v);
}

static bool is_pulled(const wf_unit *u, const wf_value *v)
{
    return is_fixed(v) && v->dtype == WF_F32 && v->first_use && !wf_is_output(u->graph, v) &&
           wf_tensor_bytes(v->known) >= WF_FROZEN_BYTES;
}

/* The variable's own name, or the constant's with its checksum; a long one is hashed. */
static const char *name_of(wf_unit *u, const wf_value *v)
{
    const char *name = v->name;
    XXH128_hash_t sum;
    char hashed[32];

    if (v->variable == WF_VAR_FROZEN)
        return name;
    if (strlen(name) > LONGEST_NAME) {
        snprintf(hashed, sizeof(hashed), "constant-%016" PRIx64, XXH3_64bits(name, strlen(name)));
        name = hashed;
    }
    sum = XXH3_128bits_withSeed(
        v->known->data, wf_tensor_bytes(v->known),
        XXH3_64bits(v->known->dims, v->known->rank * sizeof(*v->known->dims)));
    return wf_arena_printf(u->arena, "%s@%016" PRIx64 "%016" PRIx64, name, (uint64_t)sum.high64,
                           (uint64_t)sum.low64);
}

/* Tables that are not float32 stay where they are, as long as a message carries them. */
static wf_status check_rest(const wf_unit *u, wf_err *err)
{
    const wf_value *largest = NULL;
    char type[128];
    size_t bytes = 0;

    for (size_t i = 0; i < u->graph->n_values; i++) {
        const wf_value *v = u->graph->values[i];

        if (!is_fixed(v) || !is_used(u, v) || is_pulled(u, v))
            continue;
        bytes += wf_tensor_bytes(v->known);
        if (!largest || wf_tensor_bytes(v->known) > wf_tensor_bytes(largest->known))
            largest = v;
    }
    if (bytes <= MOST_BYTES)
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "store it as float32, or feed it with the data",
                   "constant \"%s\" is %s, and parameter servers hold float32 only; constants of "
                   "other types take %zu MiB in all, and %zu MiB of them can be sent to workers",
                   largest->name, wf_value_str(largest, type, sizeof(type)), bytes >> 20,
                   MOST_BYTES >> 20);
}

/* Room in u->held for n more. */
static wf_status make_room(wf_unit *u, size_t n, wf_err *err)
{
    wf_held *held = wf_arena_array(u->arena, u->n_held + n, sizeof(*held));

    if (!held)
        return wf_fail_nomem(err, (u->n_held + n) * sizeof(*held));
    if (u->n_held)
        memcpy(held, u->held, u->n_held * sizeof(*held));
    u->held = held;
    return WF_OK;
}

static wf_status pull_one(wf_unit *u, wf_value *v, wf_err *err)
{
    const char *name = name_of(u, v);

    if (!name)
        return wf_fail_nomem(err, strlen(v->name));
    return wf_make_pull(u, v, name, WF_VAR_FROZEN, err);
}

wf_status wf_pass_frozen(wf_unit *u, wf_err *err)
{
    size_t n_values = u->graph->n_values, n = 0;

    if (!u->spec->strategy)
        return WF_OK;
    WF_TRY(wf_pass_prune(u, err)); /* what rewrites have bypassed is no use */
    WF_TRY(check_rest(u, err));
    for (size_t i = 0; i < n_values; i++)
        n += is_pulled(u, u->graph->values[i]);
    WF_TRY(make_room(u, n, err));
    for (size_t i = 0; i < n_values; i++) {
        wf_value *v = u->graph->values[i];

        if (is_pulled(u, v))
            WF_TRY(pull_one(u, v, err));
        else if (v->variable == WF_VAR_FROZEN && !is_used(u, v))
            v->variable = WF_VAR_NOT; /* of a branch that is gone: it is not to travel */
    }
    return wf_pass_prune(u, err);
}
