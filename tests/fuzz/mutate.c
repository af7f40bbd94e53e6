/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/mutate.c - changes to a model as a message: blind bytes rarely get past protobuf, and
 * a model whose names do not fit together rarely gets past import.
 *
 * The message is unpacked into an arena, a few fields are changed by the generated descriptors, and
 * it is packed again. Messages may come to be shared between two places: packing only reads. */
#include "common/graph/op.h"
#include "common/onnx/expand.h"
#include "common/onnx/onnx.pb-c.h"
#include "common/pb/pb.h"
#include "tests/fuzz/target.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 2048, STRINGS = 1024, CHANGES = 4, DEPTH = 24 };

typedef struct model {
    wf_arena *arena;
    ProtobufCMessage *root;
    ProtobufCMessage *messages[MESSAGES]; /* all of them, for the next change */
    size_t n_messages;
    char *strings[STRINGS]; /* all that is in it: names to wire up differently */
    size_t n_strings;
    uint64_t random;
} model;

/* splitmix64 (Steele, Lea & Flood 2014): libFuzzer gives 32 bits of seed a call. */
static uint64_t draw(model *m, uint64_t below)
{
    uint64_t z = m->random += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % below;
}

static void *at(ProtobufCMessage *message, unsigned offset)
{
    return (char *)message + offset;
}

/* How many elements a repeated field has, or whether an optional one is there. */
static size_t *count_of(ProtobufCMessage *message, const ProtobufCFieldDescriptor *f)
{
    return at(message, f->quantifier_offset);
}

static void collect(model *m, ProtobufCMessage *message, int depth)
{
    if (m->n_messages == MESSAGES || depth == DEPTH)
        return;
    m->messages[m->n_messages++] = message;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &message->descriptor->fields[i];
        bool repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
        void *field = at(message, f->offset);
        void **items = repeated ? *(void ***)field : field;
        size_t n = repeated ? *count_of(message, f) : 1;

        for (size_t k = 0; k < n; k++) {
            if (f->type == PROTOBUF_C_TYPE_MESSAGE && items[k])
                collect(m, items[k], depth + 1);
            else if (f->type == PROTOBUF_C_TYPE_STRING && items[k] && m->n_strings < STRINGS)
                m->strings[m->n_strings++] = items[k];
            else if (f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING)
                break;
        }
    }
}

static int64_t draw_number(model *m, int64_t old)
{
    static const int64_t edges[] = {
        0,
        1,
        -1,
        2,
        -2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        11,
        16,
        17,
        63,
        64,
        127,
        128,
        255,
        256,
        1000,
        65535,
        65536,
        INT32_MAX,
        INT32_MIN,
        1LL << 24,
        1LL << 31,
        1LL << 32,
        1LL << 40,
        1LL << 61,
        1LL << 62,
        INT64_MAX,
        INT64_MIN,
        INT64_MAX / 2,
        -(1LL << 40),
    };

    if (draw(m, 3) == 0)
        return (int64_t)((uint64_t)old + draw(m, 5) - 2);
    return draw(m, 2) ? (int64_t)draw(m, 6) : edges[draw(m, WF_COUNT(edges))];
}

static double draw_real(model *m)
{
    static const double edges[] = {0,   1,    -1,    0.5,   2,       1e-30, 1e30,
                                   0.1, -0.0, 1e300, 65504, 0.0 / 1, 3};

    return draw(m, 8) ? edges[draw(m, WF_COUNT(edges))] : (draw(m, 2) ? 1 / 0.0 : 0.0 / 0.0);
}

static const wf_op *draw_op(model *m)
{
    size_t n = 0, n_expansions = 0, i;

    while (wf_op_at(n))
        n++;
    while (wf_expansion_at(n_expansions))
        n_expansions++;
    i = draw(m, n + n_expansions);
    return i < n ? wf_op_at(i) : &wf_expansion_at(i - n)->op;
}

static const char *draw_word(model *m)
{
    static const char *const words[] = {
        "NOTSET",        "SAME_UPPER",
        "SAME_LOWER",    "VALID",
        "linear",        "nearest",
        "cubic",         "zeros",
        "border",        "reflection",
        "constant",      "reflect",
        "edge",          "wrap",
        "mean",          "sum",
        "none",          "DCR",
        "CRD",           "tanh",
        "forward",       "reverse",
        "bidirectional", "Tanh",
        "Relu",          "Sigmoid",
        "half_pixel",    "asymmetric",
        "align_corners", "floor",
        "ceil",          "stretch",
        "not_larger",    "tf_crop_and_resize",
        "ij,jk->ik",     "...i->...",
        "ii->i",         "bij,bjk->bik",
        "mul",           "add",
        "max",           "min",
        "loss",          "",
    };

    return words[draw(m, WF_COUNT(words))];
}

static char *draw_string(model *m, const ProtobufCFieldDescriptor *f)
{
    const wf_op *op = draw_op(m);
    size_t n = 0;

    if (strcmp(f->name, "op_type") == 0)
        return wf_arena_strdup(m->arena, op->name);
    if (strcmp(f->name, "domain") == 0)
        return wf_arena_strdup(m->arena, draw(m, 2) ? op->domain : "");
    while (op->attrs && op->attrs[n].name)
        n++;
    if (n && draw(m, 8) == 0)
        return wf_arena_strdup(m->arena, op->attrs[draw(m, n)].name);
    if (m->n_strings && draw(m, 8))
        return m->strings[draw(m, m->n_strings)];
    return wf_arena_strdup(m->arena, draw_word(m));
}

/* Bytes of a tensor, or a string of an attribute. */
static void change_bytes(model *m, ProtobufCBinaryData *b)
{
    const char *word = draw_word(m);
    uint8_t *copy = wf_arena_alloc(m->arena, b->len + 64);

    if (!copy)
        return;
    if (b->len)
        memcpy(copy, b->data, b->len);
    b->data = copy;
    switch (draw(m, 4)) {
    case 0: /* a word */
        b->len = strlen(word);
        memcpy(copy, word, b->len);
        break;
    case 1: /* shorter */
        b->len = draw(m, b->len + 1);
        break;
    case 2: /* longer */
        memset(copy + b->len, (int)draw(m, 256), 64);
        b->len += draw(m, 64);
        break;
    default: /* eight of them a number */
        if (b->len >= 8) {
            int64_t number = draw_number(m, 0);

            memcpy(copy + draw(m, b->len / 8) * 8, &number, sizeof number);
        }
    }
}

/* An attribute that some operation knows, of the kind that it has there. */
static void fill_attribute(model *m, Weft__Onnx__Attribute *a)
{
    static const int types[] = {0, 2, 7, 1, 6, 3, 8, 4, 5}; /* only to be told apart: any will do */
    const wf_op *op = draw_op(m);
    size_t n = 0;

    while (op->attrs && op->attrs[n].name)
        n++;
    if (n)
        a->name = wf_arena_strdup(m->arena, op->attrs[draw(m, n)].name);
    a->has_i = a->has_type = true;
    a->i = draw_number(m, 1);
    a->type = types[draw(m, WF_COUNT(types))];
}

static ProtobufCMessage *make_message(model *m, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *made;
    size_t n = 0;

    for (size_t i = 0; i < m->n_messages; i++) /* another of its kind, most of the time */
        if (m->messages[i]->descriptor == type && draw(m, ++n) == 0 && draw(m, 4))
            return m->messages[i];
    made = wf_arena_alloc(m->arena, type->sizeof_message);
    if (!made)
        return NULL;
    type->message_init(made);
    if (type == &weft__onnx__attribute__descriptor)
        fill_attribute(m, (Weft__Onnx__Attribute *)made);
    return made;
}

/* Another value for the element at `to`. */
static void change_value(model *m, const ProtobufCFieldDescriptor *f, void *to)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
        *(int32_t *)to = (int32_t)draw_number(m, *(int32_t *)to);
        break;
    case PROTOBUF_C_TYPE_INT64:
        *(int64_t *)to = draw_number(m, *(int64_t *)to);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)to = (float)draw_real(m);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)to = draw_real(m);
        break;
    case PROTOBUF_C_TYPE_STRING:
        *(char **)to = draw_string(m, f);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        change_bytes(m, to);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)to = make_message(m, f->descriptor);
        break;
    default:
        break;
    }
}

static size_t size_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_FLOAT:
        return 4;
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 8;
    }
}

static void change_repeated(model *m, ProtobufCMessage *message, const ProtobufCFieldDescriptor *f)
{
    size_t *n = count_of(message, f), size = size_of(f), i = *n ? draw(m, *n) : 0;
    char **field = at(message, f->offset), *items;
    void *swapped[2];

    items = wf_arena_alloc(m->arena, (*n + 1) * size);
    if (!items)
        return;
    if (*n)
        memcpy(items, *field, *n * size);
    *field = items;
    switch (*n ? draw(m, 5) : 0) {
    case 0: /* one more: new */
        memset(items + *n * size, 0, size);
        change_value(m, f, items + *n * size);
        ++*n;
        break;
    case 1: /* one more: the same again */
        memcpy(items + *n * size, items + i * size, size);
        ++*n;
        break;
    case 2: /* one fewer */
        memmove(items + i * size, items + (i + 1) * size, (*n - i - 1) * size);
        --*n;
        break;
    case 3: /* two in the other order */
        memcpy(swapped, items, size);
        memcpy(items, items + i * size, size);
        memcpy(items + i * size, swapped, size);
        break;
    default:
        change_value(m, f, items + i * size);
    }
    for (i = 0; f->type == PROTOBUF_C_TYPE_MESSAGE && i < *n; i++)
        if (!((void **)(void *)items)[i])
            *n = i; /* there was no memory for it */
}

static void change_optional(model *m, ProtobufCMessage *message, const ProtobufCFieldDescriptor *f)
{
    void *field = at(message, f->offset);
    bool has_flag = f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_MESSAGE;
    bool gone = draw(m, 8) == 0;

    if (has_flag)
        *(protobuf_c_boolean *)at(message, f->quantifier_offset) = !gone;
    else if (gone)
        *(void **)field = NULL;
    if (!gone)
        change_value(m, f, field);
}

static void change(model *m)
{
    ProtobufCMessage *message;
    const ProtobufCFieldDescriptor *f;

    m->n_messages = m->n_strings = 0;
    collect(m, m->root, 0);
    message = m->messages[draw(m, m->n_messages)];
    f = &message->descriptor->fields[draw(m, message->descriptor->n_fields)];
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        change_repeated(m, message, f);
    else
        change_optional(m, message, f);
}

static bool unpack(model *m, const uint8_t *data, size_t n, unsigned seed)
{
    static const wf_pb_limits limits = {
        .max_bytes = 1 << 20, .max_depth = DEPTH, .max_fields = 20000, .budget_bytes = 16 << 20};
    wf_err err = {0};

    *m = (model){.random = seed};
    return wf_pb_unpack(&weft__onnx__model__descriptor, data, n, &limits, &m->arena, &m->root,
                        &err) == WF_OK;
}

/* How deep messages are nested: a change may put one into itself, and packing would never end. */
static bool is_tree(const ProtobufCMessage *message, int depth, size_t *budget)
{
    if (depth == DEPTH || *budget == 0)
        return false;
    --*budget;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &message->descriptor->fields[i];
        const char *base = (const char *)message;
        bool repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
        const void *field = base + f->offset;
        const ProtobufCMessage *const *items = repeated ? *(ProtobufCMessage ***)field : field;
        size_t n = repeated ? *(const size_t *)(base + f->quantifier_offset) : 1;

        for (size_t k = 0; f->type == PROTOBUF_C_TYPE_MESSAGE && k < n; k++)
            if (items[k] && !is_tree(items[k], depth + 1, budget))
                return false;
    }
    return true;
}

/* 0 when it does not fit. */
static size_t pack(const model *m, uint8_t *out, size_t room)
{
    size_t budget = MESSAGES, n;

    if (!is_tree(m->root, 0, &budget))
        return 0;
    n = protobuf_c_message_get_packed_size(m->root);
    return n <= room ? protobuf_c_message_pack(m->root, out) : 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t room, unsigned seed)
{
    model m;
    size_t made = 0;

    if (seed % 16 == 0 || !unpack(&m, data, n, seed))
        return LLVMFuzzerMutate(data, n, room);
    for (uint64_t i = 0, changes = 1 + draw(&m, CHANGES); i < changes; i++)
        change(&m);
    made = pack(&m, data, room);
    wf_arena_free(&m.arena);
    return made ? made : LLVMFuzzerMutate(data, n, room);
}

/* A message of one takes the place of one of its kind in the other; a graph adds its nodes. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b,
                                 uint8_t *out, size_t room, unsigned seed)
{
    model to, from = {0};
    size_t made = 0;

    if (!unpack(&to, a, n_a, seed))
        return 0;
    if (unpack(&from, b, n_b, seed)) {
        ProtobufCMessage *message, *other;

        collect(&to, to.root, 0);
        collect(&from, from.root, 0);
        message = to.messages[draw(&to, to.n_messages)];
        for (size_t tries = 0; tries < from.n_messages; tries++) {
            other = from.messages[draw(&to, from.n_messages)];
            if (other->descriptor != message->descriptor)
                continue;
            memcpy(message, other, message->descriptor->sizeof_message);
            break;
        }
        made = pack(&to, out, room);
    }
    wf_arena_free(&from.arena);
    wf_arena_free(&to.arena);
    return made;
}
