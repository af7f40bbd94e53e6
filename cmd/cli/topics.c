/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/topics.c - one row a topic: how to print it, and how its words are written. */
#include "cmd/cli/topics.h"
#include "common/base/cc.h"
#include "common/compile/compile.h"
#include "common/conf/layers.h"
#include "common/optim/rule.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 90, INDENT = 6 };

/* A name with its options behind it; lines are broken between options. */
typedef struct entry {
    size_t at;
    const char *before;
} entry;

static entry begin(const char *name)
{
    return (entry){(size_t)printf("  %s", name), ": "};
}

static void add(entry *e, const char *word)
{
    size_t n = strlen(e->before) + strlen(word);

    if (e->at + n > COLUMNS) {
        printf("%s\n%*s%s", e->before[0] == ':' ? ":" : ",", INDENT, "", word);
        e->at = INDENT + strlen(word);
    } else {
        printf("%s%s", e->before, word);
        e->at += n;
    }
    e->before = ", ";
}

/* ---- tables ---- */

static void print_keys(void)
{
    const char *map, *name, *usual;

    for (size_t i = 0; wf_job_key_at(i, &map, &name, &usual); i++)
        printf("  %s%s%s%s%s\n", map ? map : "", map ? "." : "", name, usual ? ": " : "",
               usual ? usual : "");
}

typedef bool row_at(size_t i, const char **name, const char **alias, char *options, size_t size);

static void print_functions(row_at *at)
{
    const char *name, *alias;
    char options[160];

    for (size_t i = 0; at(i, &name, &alias, options, sizeof options); i++)
        printf("  %s%s%s%s%s\n", name, alias ? ", " : "", alias ? alias : "", *options ? ": " : "",
               options);
}

static void print_losses(void)
{
    print_functions(wf_compile_loss_at);
}

static void print_metrics(void)
{
    print_functions(wf_compile_metric_at);
}

/* Rows without options are known and not built. */
static void print_items(const wf_item_row rows[])
{
    for (; rows->type; rows++) {
        entry e;

        if (!rows->options)
            continue;
        e = begin(rows->type);
        for (const wf_option_row *o = rows->options; o->name; o++)
            add(&e, o->name);
        putchar('\n');
    }
}

static void print_layers(void)
{
    print_items(wf_layer_rows);
}

static void print_initializers(void)
{
    print_items(wf_initializer_rows);
}

static void print_steps(void)
{
    print_items(wf_step_rows);
}

static void print_callbacks(void)
{
    print_items(wf_callback_rows);
}

static void print_activations(void)
{
    const char *name;

    for (size_t i = 0; (name = wf_compile_activation_at(i)); i++)
        printf("  %s\n", name);
}

static void print_optimizers(void)
{
    for (size_t i = 0; wf_rules[i]; i++) {
        entry e = begin(wf_rules[i]->name);
        char text[96];

        for (const wf_option *o = wf_rules[i]->options; o->name; o++) {
            snprintf(text, sizeof text, "%s %g", o->name, o->otherwise);
            add(&e, text);
        }
        putchar('\n');
    }
}

/* ---- topics ---- */

static const struct {
    const char *name;
    void (*print)(void);
    const char *more, *page;
} topics[] = {
    {"keys", print_keys, "Keys of a job file, with their defaults.",
     "docs/jobs.md, with the pages that it names,"},
    {"layers", print_layers,
     "Layers of model.layers and their options: `- dense: {units: 128, activation: relu}`.",
     "docs/jobs.md"},
    {"activations", print_activations, "`activation: relu`, of a layer or as a layer of its own.",
     "docs/jobs.md"},
    {"initializers", print_initializers,
     "`kernel_initializer: he_normal`, or `{random_normal: {stddev: 0.01}}`.", "docs/jobs.md"},
    {"steps", print_steps, "Steps of data.map: `map: {x: [{scale: 0.0039}, {reshape: [784]}]}`.",
     "docs/data.md"},
    {"losses", print_losses,
     "Names and options: `loss: huber`, `loss: {huber: {delta: 2.0}}`, or by output.",
     "docs/jobs.md"},
    {"metrics", print_metrics,
     "Names and options: `metrics: [accuracy, {auc: {curve: PR}}]`. The name of any loss function "
     "is\na metric too.",
     "docs/jobs.md"},
    {"optimizers", print_optimizers,
     "`optimizer: adam`, or `{adam: {learning_rate: 0.01}}`. Each also has warmup_steps, "
     "clipvalue,\n"
     "clipnorm, global_clipnorm and gradient_accumulation_steps.",
     "docs/jobs.md"},
    {"callbacks", print_callbacks, "`callbacks: [{early_stopping: {patience: 3}}]`.",
     "docs/jobs.md"},
};

bool wf_topic_print(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(topics); i++) {
        if (strcmp(topics[i].name, name) != 0)
            continue;
        topics[i].print();
        printf("\n%s\n%s explains each.\n", topics[i].more, topics[i].page);
        return true;
    }
    return false;
}

const char *wf_topic_at(size_t i)
{
    return i < WF_COUNT(topics) ? topics[i].name : NULL;
}
