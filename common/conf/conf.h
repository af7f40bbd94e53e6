/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/conf.h - the front door of common/conf: the two YAML files of weft as structs.
 *
 * cluster.yaml (where things run, docs/cluster.md) and a job file (what to train, docs/jobs.md).
 * Values are typed by the schema, never by guess: `job: 012` is the text "012". Every error is
 * "FILE:LINE: sentence" with WF_USAGE, or WF_UNSUPPORTED for a reserved word (the last section of
 * either page). Text from anywhere may be given to the parsers: size, depth, counts and numbers are
 * bounded before anything is kept.
 *
 * A struct and all that it points to live in its own arena: free it as a whole. Paths in it are
 * absolute: a relative one is relative to the folder of the file that names it.
 *
 * Other headers of this room: layers.h (the layers and map steps of a job file, and their options).
 */
#ifndef WF_CONF_CONF_H
#define WF_CONF_CONF_H

#include "common/base/arena.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/conf/run.h"
#include "common/data/data.h"
#include "common/tensor/compute.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_CONF_MAX_BYTES = 1 << 20, /* of a YAML file */
    WF_CONF_MAX_DEPTH = 32,
    WF_CONF_MAX_NAME = 64, /* of a cluster */
    WF_CONF_MAX_TASKS = 1024,
    WF_CONF_MAX_CALLBACKS = 8
};

/* ---- cluster.yaml ---- */

typedef struct wf_task_conf {
    const char *address;        /* "tcp://HOST:PORT" or "ipc:///ABSOLUTE/PATH", or both: wires.h */
    const char *host;           /* of tcp, without brackets; NULL without tcp */
    uint32_t port;              /* of tcp; 0 without */
    const char *path;           /* of ipc, absolute; NULL without */
    uint32_t threads;           /* of the executor; 1 unless the file says otherwise */
    const char *const *devices; /* [n_devices]: "cpu"; a worker's plans are for all of them */
    uint32_t n_devices;
    int line; /* in the file; 0 when it was made by wf_cluster_local */
} wf_task_conf;

typedef struct wf_cluster_conf {
    wf_arena *arena;
    const char *path; /* absolute; of the file, or where wf_cluster_local would have it */
    const char *name; /* "default" if the file gives none */
    wf_task_conf master;
    wf_task_conf *ps; /* [n_ps], at least 1 */
    uint32_t n_ps;
    wf_task_conf *workers; /* [n_workers], at least 1 */
    uint32_t n_workers;
    const char *state_dir;       /* .weft beside the file unless it says otherwise */
    const char *checkpoint_dir;  /* state_dir/checkpoints unless it says otherwise */
    const char *http;            /* where the master is to serve its page; NULL: nowhere */
    bool security_none;          /* the file allows plain text off loopback */
    int64_t heartbeat_ms;        /* how often a task speaks; 1000 */
    int64_t dead_ms;             /* silence after which it counts as dead; 5000 */
    int64_t stuck_ms;            /* without progress for so long it is given up; 60000 */
    bool checksums_always;       /* of payloads, on one host as well */
    bool shared_memory_off;      /* tasks of one host use the network too */
    bool direct_connections_off; /* pulls and pushes go over ZeroMQ too */
    uint32_t session_values;     /* that wait at a worker for their Recv, at most; 1024 */
    uint32_t session_values_mib; /* of them; 64 */
} wf_cluster_conf;

/* Reads a file. *out is the caller's. Errors: WF_NOTFOUND (`weft up` says what to do), WF_USAGE,
 * WF_UNSUPPORTED, WF_IO, WF_NOMEM. */
WF_MUST_USE wf_status wf_cluster_load(const char *path, wf_cluster_conf **out, wf_err *err);
/* The same from text; `path` is for messages and for the folder of relative paths. */
WF_MUST_USE wf_status wf_cluster_parse(const char *text, size_t size, const char *path,
                                       wf_cluster_conf **out, wf_err *err);
/* A cluster on this host with ipc addresses below state_dir; or with `tcp`, or where the path is
 * too long for a socket's name (107 bytes), tcp on free loopback ports. Nothing is made on disk. */
WF_MUST_USE wf_status wf_cluster_local(const char *state_dir, uint32_t n_ps, uint32_t n_workers,
                                       bool tcp, wf_cluster_conf **out, wf_err *err);
/* Writes a cluster.yaml that wf_cluster_load reads back as the same cluster. */
WF_MUST_USE wf_status wf_cluster_write(const wf_cluster_conf *conf, const char *path, wf_err *err);
/* Frees *c with all in it and sets it to NULL; NULL is fine. */
void wf_cluster_free(wf_cluster_conf **c);

/* ---- job files ---- */

typedef enum wf_conf_kind {
    WF_CONF_INT = 1,
    WF_CONF_NUMBER,
    WF_CONF_BOOL,
    WF_CONF_TEXT,
    WF_CONF_INTS,
    WF_CONF_NUMBERS,
    WF_CONF_WORDS,
    WF_CONF_INT_OR_WORD, /* of a row; read as _INT, or as _TEXT where it is one of its choice */
    WF_CONF_INT_OR_PATH, /* of a row; an option that is read is of one or the other, _INT or _TEXT
                          */
    WF_CONF_PATH,        /* of a row; read as _TEXT, from the job file's folder on */
    WF_CONF_ITEM
} wf_conf_kind;

/* One option of a layer, step or optimizer, typed by its schema row. */
typedef struct wf_conf_option {
    const char *name;
    wf_conf_kind kind;
    int64_t i;        /* WF_CONF_INT; WF_CONF_BOOL as 0 or 1 */
    double number;    /* WF_CONF_NUMBER; the same value for INT and BOOL */
    const char *text; /* WF_CONF_TEXT; the type of a WF_CONF_ITEM */
    const int64_t *ints;
    const double *numbers; /* WF_CONF_NUMBERS: each above the one before */
    const char *const *words;
    size_t n;                        /* of ints, numbers or words */
    const struct wf_conf_item *item; /* WF_CONF_ITEM: a thing with options of its own */
    int line;
} wf_conf_option;

/* A thing with options: a layer ("dense"), a map step ("scale"), an optimizer ("adam"). */
typedef struct wf_conf_item {
    const char *type;
    const wf_conf_option *options;
    size_t n_options;
    int line;
} wf_conf_item;

/* Variables whose rows travel. */
typedef struct wf_conf_table {
    const char *match;        /* a pattern of names */
    const char *rows;         /* "bounded", "unbounded" */
    const char *dtype;        /* of its values: "float32", "bfloat16", "float16", "int8" */
    uint64_t cache_rows;      /* that a worker caches; 0: none */
    uint32_t cache_staleness; /* steps for which it uses them; 8 */
    /* Of unbounded ones. */
    uint32_t admit_after;  /* pushes that name an id before it has a row */
    const char *admit;     /* "exact", "bloom": how these are counted */
    uint64_t admit_bytes;  /* of the filter */
    uint32_t evict_after;  /* updates; 0: never */
    uint64_t max_rows;     /* 0: no limit */
    uint64_t max_bytes;    /* 0: no limit */
    const char *evict;     /* "least_recently_used", "least_frequently_used" */
    const char *when_full; /* "evict", "disk", "fail" */
    int line;
} wf_conf_table;

/* How gradients and weights of some variables travel: "f32", "bf16", "f16", gradients also "int8"
 * or "topk" (common/wire/coding.h). */
typedef struct wf_conf_codec {
    const char *match; /* a pattern of names; NULL: all that can take it */
    const char *push, *pull;
    double ratio; /* of "topk": the share of the numbers that is sent; 0: the usual one */
    int line;
} wf_conf_codec;

/* Variables that lie on one ps. */
typedef struct wf_conf_pin {
    const char *match; /* a pattern of names */
    uint32_t ps;
    int line;
} wf_conf_pin;

/* What a worker holds of a model that is divided among workers. */
typedef struct wf_conf_stage {
    const char *match; /* a pattern of names of variables */
    uint32_t worker;
    const char *device; /* of the worker; NULL: its first */
    bool is_any;        /* a device of the only worker, which is not named */
    int line;
} wf_conf_stage;

typedef struct wf_conf_input {
    const char *name;
    int64_t dims[8]; /* of one example, without the batch axis */
    uint32_t rank;
    const char *dtype; /* "float32", "int32", "int64", "uint8"; NULL: float32 */
    int line;
} wf_conf_input;

/* A field of the data and where it is read, or what is done to it. */
typedef struct wf_conf_field {
    const char *name;
    const char *path;        /* absolute; of an array format */
    const char *const *more; /* [n_more] files that follow it */
    size_t n_more;
    const char *const *columns; /* [n_columns]; of a text format */
    size_t n_columns;
    bool is_row;               /* the columns are written as a list, even if it is one */
    const wf_conf_item *steps; /* [n_steps], in order; of `map` */
    size_t n_steps;
    int line;
} wf_conf_field;

/* The records of `train` or `eval`; n 0: none. */
/* A field of bags, and one of their weights. */
typedef struct wf_conf_bag {
    const char *ids, *weights; /* NULL: it has no weights */
    int line;
} wf_conf_bag;

typedef struct wf_conf_records {
    const wf_conf_field *fields; /* [n] */
    size_t n;
    const char *const *files; /* [n_files], absolute; of a text format, whose fields are columns */
    size_t n_files;
    int line;
    bool is_held_out; /* the end of the training files, by validation_split */
} wf_conf_records;

/* Hosts that have files near. */
typedef struct wf_conf_hosts {
    const char *match;        /* absolute: of a path, or of several as in fnmatch(3) */
    const char *const *hosts; /* [n], as addresses of cluster.yaml name them */
    size_t n;
    int line;
} wf_conf_hosts;

/* A loss or a metric of one output of the model. Options are of kind NUMBER, BOOL or TEXT by how
 * they look, with `text` as it is written: wf_conf_check_item holds them against a schema. */
typedef struct wf_conf_term {
    const char *output; /* NULL: the job names no output, and the model's first is meant */
    wf_conf_item item;
} wf_conf_term;

/* What is said of an output, or of the whole job when `output` is NULL: a word or a number. */
typedef struct wf_conf_said {
    const char *output;
    const char *text;
    double number;
    int line;
} wf_conf_said;

typedef struct wf_conf_class_weight {
    int64_t class_id;
    double weight;
    int line;
} wf_conf_class_weight;

/* Where first weights come from. */
typedef struct wf_conf_weights {
    const char *file; /* absolute; NULL: from the model */
    const struct wf_conf_rename {
        const char *variable, *tensor; /* of the model; in the file */
        int line;
    } * map; /* [n_map]: for names that differ */
    size_t n_map;
    bool strict; /* every variable and every weight of the file finds its match; true */
    int line;
} wf_conf_weights;

typedef enum wf_tristate { WF_AUTO = -1, WF_NO = 0, WF_YES = 1 } wf_tristate;

typedef enum wf_on_nan {
    WF_NAN_STOP = 0, /* the job fails */
    WF_NAN_SKIP,     /* the step is dropped whole */
    WF_NAN_ROLLBACK  /* the job goes back to its newest checkpoint */
} wf_on_nan;

/* What workers are dealt: records of any files, whole files, or files where each worker may have
 * one. */
typedef enum wf_shard_policy {
    WF_SHARD_DATA = 0,
    WF_SHARD_FILE,
    WF_SHARD_AUTO,
    WF_SHARDS
} wf_shard_policy;
/* The word of a job file. */
const char *wf_shard_word(wf_shard_policy p);

typedef struct wf_job_conf {
    wf_arena *arena;
    const char *path; /* of the file, as given: for messages */
    const char *name; /* `job:` */

    /* model: either onnx, or inputs and layers */
    const char *onnx; /* absolute path, or NULL */
    const wf_conf_input *inputs;
    size_t n_inputs;
    const wf_conf_item *layers;
    size_t n_layers;
    const char *const *outputs; /* [n_outputs] names of layers; none: the last layer */
    size_t n_outputs;
    int outputs_line;
    int model_line;

    const char *const *trainable; /* [n_trainable]: patterns of constants that are trained */
    size_t n_trainable;
    int trainable_line;
    const char *const *freeze; /* [n_freeze]: patterns of variables' names that are not trained */
    size_t n_freeze;
    int freeze_line;
    const wf_conf_table *tables; /* [n_tables] */
    size_t n_tables;
    int tables_line;
    const wf_conf_codec *codecs; /* [n_codecs]: the first one that matches a variable counts */
    size_t n_codecs;
    wf_conf_weights weights;

    /* [n_losses]: one without an output, or one for each output that is named; none: the model
     * holds its loss (an ONNX file with one). Names and options are the compiler's to check. */
    const wf_conf_term *losses;
    size_t n_losses;
    int loss_line;
    wf_tristate from_logits; /* WF_AUTO */
    const wf_conf_term *metrics;
    size_t n_metrics;
    int metrics_line;
    const wf_conf_said *loss_weights; /* numbers, by output */
    size_t n_loss_weights;
    const wf_conf_said *labels; /* data fields, by output */
    size_t n_labels;
    const wf_conf_said *sample_weights; /* data fields, by output */
    size_t n_sample_weights;
    const wf_conf_class_weight *class_weights;
    size_t n_class_weights;

    const char *format; /* common/data/formats.h */
    wf_conf_records train, eval;
    double validation_split; /* share of `train`, its end, that evaluation has as `eval`; 0: none */
    const wf_conf_field *columns; /* [n_columns]: the fields of a text format */
    size_t n_columns;
    const wf_column_spec *schema; /* [n_schema]: what is known of its columns */
    size_t n_schema;
    bool header;             /* true: its files begin with the names of the columns */
    char delimiter;          /* ',': between its cells */
    bool skips_bad_lines;    /* false: a line of csv with another number of cells fails the job */
    uint64_t features;       /* of libsvm; 0: as many as the model's input has */
    bool zero_based;         /* false: indices of libsvm count from 1 */
    const wf_conf_bag *bags; /* [n_bags]: fields of csv and tfrecord that are bags */
    size_t n_bags;
    char separator;           /* '|': between the values of a bag in one cell of csv */
    bool cuts_bags;           /* false: a bag longer than the model's input fails the job */
    bool labelled;            /* of text: a line begins with a label, as a field reads them */
    uint64_t sequence_length; /* of text: tokens of a window; 0: records are lines */
    uint64_t sequence_stride; /* from one window to the next; sequence_length */
    const wf_conf_field *map;
    size_t n_map;
    const struct wf_memory *memory; /* of `memory`: the tensors, borrowed; NULL as it is read */
    uint64_t synthetic_records;     /* of `synthetic`: records; 0 otherwise */
    bool shuffle;                   /* true */
    const wf_conf_hosts *hosts;     /* [n_hosts]: where files of `train` are near */
    size_t n_hosts;
    uint64_t split_records; /* 0: chosen by the master */
    wf_shard_policy shard;
    bool grows;               /* `train` are patterns of files that appear as it trains: */
    double poll_seconds;      /* between two looks at them */
    double settle_seconds;    /* for which a file is as it is before it is taken */
    double idle_stop_seconds; /* without a new one, after which the job is done; 0: never */
    int data_line;

    uint64_t batch;  /* per worker */
    uint64_t epochs; /* 1; WF_EPOCHS_ANY of data that grows */
    uint64_t steps;  /* global steps after which the job is done; 0: no bound */

    wf_conf_item optimizer; /* options are WF_CONF_NUMBER, a bool as 0 or 1; names unchecked here */

    const wf_conf_item *callbacks; /* [n_callbacks], by the rows of layers.h */
    size_t n_callbacks;

    const char *strategy; /* NULL: as the cluster has it */
    int strategy_line;
    const char *mode;        /* "async", "ssp", "bsp" */
    uint32_t staleness;      /* of ssp: how many steps a worker may be ahead of another */
    int staleness_line;      /* 0: not said */
    bool staleness_aware;    /* divide the learning rate of an update by its gradient's staleness */
    uint32_t backup_workers; /* of bsp: how many a step need not wait for; 0 */
    uint32_t pipeline;       /* 0 to 2; 0 */
    uint64_t every_steps;    /* between checkpoints; 0: not by steps */
    uint32_t every_seconds;  /* between checkpoints; 0: not by time */
    uint32_t keep;           /* 3 */
    uint32_t keep_runs;      /* 10 */
    wf_on_nan on_nan;        /* what a step with NaN or infinity does */
    uint64_t seed;           /* 0 */
    wf_compute compute;      /* what products of the network round their factors to; float32 */
    uint32_t initial_scale;  /* of the loss, with float16; 32768 */
    uint32_t growth_steps;   /* without infinity, after which the scale doubles; 2000 */
    bool deterministic;      /* no algorithm of a GPU's libraries is chosen by measuring; false */
    bool shard_optimizer;    /* each worker has the optimizer's state of a share of the variables */
    uint64_t slice_bytes;    /* 4 MiB */
    const wf_conf_pin *pins; /* [n_pins]; of those that match a name the first counts */
    size_t n_pins;
    bool balance;                /* slices move from ps with more traffic than others */
    double balance_over;         /* 1.25: what of the mean traffic is too much, */
    double balance_after_s;      /* 5: when it lasts so long */
    const wf_conf_stage *stages; /* [n_stages]; of those that match a name the first counts */
    size_t n_stages;
    bool finds_stages;      /* `place: auto`: the model is divided by memory */
    int place_line;         /* 0: the model is not divided */
    uint64_t micro_batches; /* of a batch; 0: one for each stage */
    int micro_batches_line; /* 0: not said */
} wf_job_conf;

enum { WF_EPOCHS_ANY = INT32_MAX /* no bound */ };

/* Whether there are records to evaluate on. */
static inline bool wf_job_evaluates(const wf_job_conf *job)
{
    return job->eval.n > 0 || job->validation_split > 0;
}

/* Whether the model is divided among workers. */
bool wf_job_is_divided(const wf_job_conf *job);

/* The text of a job file: *text is empty before and the caller's. Errors: WF_NOTFOUND, WF_IO,
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_job_read(const char *path, wf_bytes *text, wf_err *err);
/* Reads a job file. Errors as for a cluster file. Files that it names are not opened here. */
WF_MUST_USE wf_status wf_job_load(const char *path, wf_job_conf **out, wf_err *err);
/* The same from text, as the master and the workers have it; `path` is for messages and for the
 * folder of relative paths, and need not be there. */
WF_MUST_USE wf_status wf_job_parse(const char *text, size_t size, const char *path,
                                   wf_job_conf **out, wf_err *err);
/* Frees *j with all in it and sets it to NULL; NULL is fine. */
void wf_job_free(wf_job_conf **j);
/* Key i of a job file, of those that are built: *map is the key of the map that it stands in, or
 * NULL; *usual is its value where it is left out, as the file would say it, or NULL. False past the
 * last. For documentation and tests. */
bool wf_job_key_at(size_t i, const char **map, const char **name, const char **usual);

/* A job's text with one number or word changed, "optimizer.learning_rate=0.001": a key `set` at its
 * end says so. The caller frees *out. Errors: WF_USAGE for what is no change, or may not change for
 * a run that is `under_way`; whether the value is right is for wf_job_parse. */
WF_MUST_USE wf_status wf_job_change(const char *text, const char *change, bool under_way,
                                    char **out, wf_err *err);
/* The lines "  KEY: VALUE" of what was changed, borrowed from the text; NULL if nothing was. */
const char *wf_job_changes(const char *text);

/* Records of a batch in an evaluation: at least 500, since nothing is pushed there. */
static inline uint64_t wf_eval_batch(uint64_t train_batch)
{
    return train_batch > 500 ? train_batch : 500;
}

/* The option of that name, or NULL. */
const wf_conf_option *wf_conf_find(const wf_conf_item *item, const char *name);
/* Its value, or `otherwise` when it is not given. */
int64_t wf_conf_int(const wf_conf_item *item, const char *name, int64_t otherwise);
double wf_conf_number(const wf_conf_item *item, const char *name, double otherwise);
const char *wf_conf_text(const wf_conf_item *item, const char *name, const char *otherwise);

struct wf_option_row;
/* Holds the options of a loss or a metric against rows that end with a NULL name (NULL: it takes
 * none). `sort` names it in messages ("loss"), `file` where it stands, or is NULL. Errors: WF_USAGE
 * with file and line: unknown, of another kind, out of range. */
WF_MUST_USE wf_status wf_conf_check_item(const wf_conf_item *item, const char *sort,
                                         const struct wf_option_row *rows, const char *file,
                                         wf_err *err);

#endif
