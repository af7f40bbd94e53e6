/* SPDX-License-Identifier: Apache-2.0 */
/* lib/weft.h - libweft: models run, differentiated, evaluated and trained from C.
 *
 *     weft_model *m = NULL;
 *     weft_error error;
 *     if (weft_model_open("mlp.onnx", &m, &error) != WEFT_OK)
 *         fprintf(stderr, "%s; %s\n", error.message, error.hint);
 *
 * Errors. Functions that can fail return a weft_code and take a weft_error last, which may be NULL.
 * Its message is one sentence: what is wrong, and where; its hint, if there is one, what to do
 * about it. A function that fails has changed nothing, and has set what it would have made to NULL.
 *
 * Ownership. What a function stores through `out` is the caller's, to be given to the `_free`
 * function of its type, which takes its address, sets it to NULL, and accepts NULL. What a function
 * returns as a const pointer is lent for as long as its documentation says. Arguments are read
 * during the call only: names, tensors and memory under views may be freed after it.
 *
 * Threads. Functions on different handles may run at the same time in different threads. A handle
 * belongs to one thread at a time; functions that take it as const may share it. The library starts
 * threads of its own for the time of a call, or for the life of a model, and installs no signal
 * handlers. It changes nothing of the process around it but through weft_process_settings.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1

/* ---- version, process, errors ---- */

/* "0.1.0"; static. */
WEFT_API const char *weft_version(void);

/* Settings of the process that weft's own programs make at their start, for a program that does
 * little else: OpenBLAS runs on its caller's thread alone and ends its own threads, since weft cuts
 * work into pieces for threads of its own, and takes kernels by the processor's features where it
 * does not know the processor; malloc keeps large blocks; the calling thread, and those it starts
 * later, take subnormal numbers as zero. Results of weft are the same bits only with the first and
 * third. For the start: while it runs nobody may use OpenBLAS, or the environment. */
WEFT_API void weft_process_settings(void);

typedef enum weft_code {
    WEFT_OK = 0,
    WEFT_NOMEM = 1,       /* memory, or a stated limit on it, is used up */
    WEFT_INVALID = 2,     /* a value that cannot be right */
    WEFT_USAGE = 3,       /* arguments or a job file that contradict themselves or the model */
    WEFT_SHAPE = 4,       /* shapes or dtypes do not go together */
    WEFT_NOTFOUND = 5,    /* a file or name is not there */
    WEFT_EXISTS = 6,      /* it is there already and may not be replaced */
    WEFT_UNSUPPORTED = 7, /* weft does not do this */
    WEFT_IO = 8,          /* the system refused */
    WEFT_CORRUPT = 9,     /* a file is no longer what was written */
    WEFT_PROTO = 10,
    WEFT_TIMEOUT = 11,
    WEFT_FULL = 12,
    WEFT_MISMATCH = 13, /* two things that must agree do not */
    WEFT_NUMERIC = 14,  /* NaN or infinity where none may be */
    WEFT_SUPERSEDED = 15,
    WEFT_STOPPED = 16, /* ended on request before it was done */
    WEFT_AGAIN = 17    /* not now: the same request may succeed later */
} weft_code;

typedef struct weft_error {
    weft_code code;
    char message[1024];
    char hint[256]; /* may be empty */
    char name[256]; /* the input that was not fed, where that is the error; otherwise empty */
} weft_error;

/* "WEFT_SHAPE"; "?" for a number that is no code. */
WEFT_API const char *weft_code_name(weft_code code);

/* ---- tensors ---- */

/* The numbers are ONNX's (TensorProto.DataType). */
typedef enum weft_dtype {
    WEFT_F32 = 1,
    WEFT_U8 = 2,
    WEFT_I32 = 6,
    WEFT_I64 = 7,
    WEFT_BOOL = 9, /* bytes of 0 and 1 */
    WEFT_F16 = 10,
    WEFT_F64 = 11,
    WEFT_BF16 = 16
} weft_dtype;

/* "float32", "int64", ...: numpy's names, and "bfloat16"; "?" for an unknown one. */
WEFT_API const char *weft_dtype_name(weft_dtype dtype);
/* The dtype of such a name; 0 if there is none. */
WEFT_API weft_dtype weft_dtype_of(const char *name);
/* Bytes of one element; 0 for an unknown one. */
WEFT_API size_t weft_dtype_size(weft_dtype dtype);

enum { WEFT_MAX_RANK = 8 };

/* Elements in memory of the host, as DLPack has them. A caller may fill one in by itself, on its
 * stack for example, and give it to any function but weft_tensor_free. */
typedef struct weft_tensor {
    void *data; /* of the first element; may be NULL where there is none */
    weft_dtype dtype;
    int32_t rank;     /* at most WEFT_MAX_RANK; 0: one element */
    int64_t *shape;   /* [rank] */
    int64_t *strides; /* [rank], in elements; NULL: dense, the last axis fastest */
    void *owner;      /* of weft: leave it NULL */
} weft_tensor;

/* A dense tensor of zeroes. shape [rank]. Errors: WEFT_INVALID, WEFT_SHAPE, WEFT_NOMEM. */
WEFT_API weft_code weft_tensor_new(weft_dtype dtype, int32_t rank, const int64_t shape[],
                                   weft_tensor **out, weft_error *error);
/* A tensor over memory of the caller's, which must outlive it; shape [rank] and strides [rank] (or
 * NULL) are copied. Errors: WEFT_INVALID, WEFT_SHAPE, WEFT_NOMEM. */
WEFT_API weft_code weft_tensor_view(void *data, weft_dtype dtype, int32_t rank,
                                    const int64_t shape[], const int64_t strides[],
                                    weft_tensor **out, weft_error *error);
/* Frees a tensor of weft_tensor_new, weft_tensor_view or weft_model_weight. */
WEFT_API void weft_tensor_free(weft_tensor **t);
/* Elements: the product of the shape; -1 for a tensor that cannot be right. */
WEFT_API int64_t weft_tensor_elements(const weft_tensor *t);

/* Tensors by name: results, or weights. */
typedef struct weft_list weft_list;

/* An empty one. Errors: WEFT_NOMEM. */
WEFT_API weft_code weft_list_new(weft_list **out, weft_error *error);
/* All tensors of a .safetensors or .onnx file. Errors: WEFT_USAGE for another kind of file;
 * WEFT_NOTFOUND, WEFT_CORRUPT, WEFT_INVALID, WEFT_IO, WEFT_NOMEM. */
WEFT_API weft_code weft_list_read(const char *path, weft_list **out, weft_error *error);
/* Adds a copy of a tensor. Errors: WEFT_EXISTS, WEFT_INVALID, WEFT_SHAPE, WEFT_NOMEM. */
WEFT_API weft_code weft_list_add(weft_list *l, const char *name, const weft_tensor *t,
                                 weft_error *error);
/* 0 for NULL. */
WEFT_API size_t weft_list_count(const weft_list *l);
/* Name and tensor i, lent until the list is added to or freed; NULL past the end. */
WEFT_API const char *weft_list_name(const weft_list *l, size_t i);
WEFT_API const weft_tensor *weft_list_tensor(const weft_list *l, size_t i);
/* The tensor of that name, likewise; NULL when there is none. */
WEFT_API const weft_tensor *weft_list_find(const weft_list *l, const char *name);
/* Where it comes from: the name of a checkpoint ("step-00012000"), or ""; lent as above. */
WEFT_API const char *weft_list_origin(const weft_list *l);
WEFT_API void weft_list_free(weft_list **l);

/* ---- models ---- */

typedef struct weft_model weft_model;
typedef struct weft_job weft_job;

/* What an input is fed. */
typedef struct weft_feed {
    const char *name;
    const weft_tensor *tensor; /* float32 is rounded for an input of bfloat16 */
    const char *origin;        /* what messages call it, as "x.npy"; NULL: "the feed" */
} weft_feed;

/* All zero is a good default, and what NULL stands for. */
typedef struct weft_run_options {
    uint64_t seed;       /* of random operations */
    uint32_t threads;    /* 0: one per processor */
    size_t memory_limit; /* bytes; 0: 1 GiB and 1024 times what the model and its feeds hold, within
                          * the machine's memory */
    uint64_t batch;      /* weft_model_predict: records of one run; 0: all at once */
    void (*warn)(void *arg, const char *sentence); /* told what the compiler warns of; or NULL */
    void *arg;
    const char *device; /* "cuda:0", a GPU of this host; NULL: the cpu */
} weft_run_options;

/* Evaluates an ONNX file once as it stands: fetches [n_fetches] names values, none: all outputs.
 * The file is read for these very feeds: loops are unrolled, and shapes known, by what is fed.
 * Errors: WEFT_USAGE: a feed that the file has no input for, an input fed twice or (error.name) not
 * at all; WEFT_SHAPE; WEFT_NOTFOUND: the file, or a name of fetches; WEFT_INVALID,
 * WEFT_UNSUPPORTED: the file; WEFT_NOMEM. */
WEFT_API weft_code weft_run_file(const char *path, size_t n_feeds, const weft_feed feeds[],
                                 size_t n_fetches, const char *const fetches[],
                                 const weft_run_options *options, weft_list **out,
                                 weft_error *error);
/* Differentiates the scalar output `loss` of the file with regard to variables and inputs by name,
 * wrt [n_wrt]; none: all trainable variables. The first result is the loss; behind it come its
 * derivatives in the order of wrt, with the name, dtype and shape of what they are by; zero where
 * the loss does not depend on it. Errors: as weft_run_file. */
WEFT_API weft_code weft_gradient_file(const char *path, const char *loss, size_t n_feeds,
                                      const weft_feed feeds[], size_t n_wrt,
                                      const char *const wrt[], const weft_run_options *options,
                                      weft_list **out, weft_error *error);

/* Reads an ONNX file; external data may lie in its folder. Errors: WEFT_NOTFOUND, WEFT_IO,
 * WEFT_INVALID, WEFT_UNSUPPORTED, WEFT_SHAPE, WEFT_NOMEM. */
WEFT_API weft_code weft_model_open(const char *path, weft_model **out, weft_error *error);
/* The same from memory, without external data. */
WEFT_API weft_code weft_model_decode(const void *data, size_t size, weft_model **out,
                                     weft_error *error);
/* A job's model for inference: no loss, no labels, no dropout. `weights` take the place of the
 * job's first values (NULL: those). Errors: WEFT_USAGE, WEFT_SHAPE, WEFT_NOTFOUND, WEFT_NOMEM. */
WEFT_API weft_code weft_model_of_job(const weft_job *job, const weft_list *weights,
                                     weft_model **out, weft_error *error);
/* Puts the steps of data.map in front of the inputs that the job standardises: they then take
 * records as the files have them (docs/jobs.md). The steps go by what was learnt with `weights`;
 * NULL: by the training data. `inputs` [size] gets their names, "x, age", cut to fit; "" when there
 * are none. Errors: WEFT_UNSUPPORTED for a map that ONNX cannot say; WEFT_MISMATCH; those of the
 * training data; WEFT_NOMEM. The model is of no use then. */
WEFT_API weft_code weft_model_take_map(weft_model *m, const weft_job *job, const weft_list *weights,
                                       char *inputs, size_t size, weft_error *error);
WEFT_API void weft_model_free(weft_model **m);

typedef enum weft_kind { WEFT_INPUT = 1, WEFT_OUTPUT, WEFT_VARIABLE } weft_kind;

/* An input, output or variable of a model. */
typedef struct weft_port {
    const char *name; /* lent until the model is freed */
    weft_dtype dtype;
    int32_t rank;                 /* -1: not known before a run */
    int64_t shape[WEFT_MAX_RANK]; /* -1: any extent, as of a batch */
    int trainable;                /* of a variable */
} weft_port;

/* How many there are; 0 for NULL. */
WEFT_API size_t weft_model_count(const weft_model *m, weft_kind kind);
/* Describes number i. Errors: WEFT_INVALID past the end. */
WEFT_API weft_code weft_model_port(const weft_model *m, weft_kind kind, size_t i, weft_port *out,
                                   weft_error *error);

/* As weft_run_file and weft_gradient_file, with the model as it was opened and its weights as they
 * are. Compiles in every call: weft_model_predict is for many runs of one model. */
WEFT_API weft_code weft_model_run(weft_model *m, size_t n_feeds, const weft_feed feeds[],
                                  size_t n_fetches, const char *const fetches[],
                                  const weft_run_options *options, weft_list **out,
                                  weft_error *error);
WEFT_API weft_code weft_model_gradient(weft_model *m, const char *loss, size_t n_feeds,
                                       const weft_feed feeds[], size_t n_wrt,
                                       const char *const wrt[], const weft_run_options *options,
                                       weft_list **out, weft_error *error);
/* All outputs for the records of the feeds, in runs of options->batch. The model is compiled in the
 * first call, and a plan is kept for each of the eight batch sizes used last. Where inputs have an
 * open first axis, that is the batch, and must be the same for all of them; outputs of several
 * batches are put together along theirs. Errors: as weft_run_file; WEFT_SHAPE for an output that is
 * not of each record when there are several batches, or whose shape depends on the content of a
 * feed: weft_model_run evaluates such a model. */
WEFT_API weft_code weft_model_predict(weft_model *m, size_t n_feeds, const weft_feed feeds[],
                                      const weft_run_options *options, weft_list **out,
                                      weft_error *error);

/* A copy of a variable's or constant's content. Errors: WEFT_NOTFOUND, WEFT_NOMEM. */
WEFT_API weft_code weft_model_weight(const weft_model *m, const char *name, weft_tensor **out,
                                     weft_error *error);
/* Puts a copy of a tensor in its place. Errors: WEFT_NOTFOUND, WEFT_SHAPE, WEFT_NOMEM. */
WEFT_API weft_code weft_model_set_weight(weft_model *m, const char *name, const weft_tensor *t,
                                         weft_error *error);
/* Puts all of a list in place, or nothing if one of its names or shapes does not fit. Errors: as
 * above. */
WEFT_API weft_code weft_model_set_weights(weft_model *m, const weft_list *weights,
                                          weft_error *error);

/* Writes the model with its weights as an ONNX file, in one step. Unbounded tables of a job are
 * written as LabelEncoder and Gather. Errors: WEFT_IO, WEFT_UNSUPPORTED (2 GiB and more),
 * WEFT_NOMEM. */
WEFT_API weft_code weft_model_write(const weft_model *m, const char *path, weft_error *error);
/* The same into memory, to be freed with weft_bytes_free. */
WEFT_API weft_code weft_model_encode(const weft_model *m, void **data, size_t *size,
                                     weft_error *error);
WEFT_API void weft_bytes_free(void **data);
/* What such a file does otherwise than the model, as a sentence, cut to `size`; "" where there is
 * nothing: initial values of ids without a row cannot be said in ONNX. */
WEFT_API weft_code weft_model_note(const weft_model *m, char *note, size_t size, weft_error *error);
/* Writes its variables as a safetensors file, in one step. Errors: WEFT_IO, WEFT_NOMEM. */
WEFT_API weft_code weft_model_save(const weft_model *m, const char *path, weft_error *error);

/* ---- jobs and checkpoints ---- */

/* Reads a job file (docs/jobs.md); the data that it names is not opened. Errors: WEFT_NOTFOUND,
 * WEFT_USAGE "FILE:LINE: sentence", WEFT_UNSUPPORTED, WEFT_NOMEM. */
WEFT_API weft_code weft_job_open(const char *path, weft_job **out, weft_error *error);
/* The same from text of `size` bytes; `path` is for messages and for the folder of relative paths,
 * and need not be there; NULL: "job.yaml" in the working folder. */
WEFT_API weft_code weft_job_parse(const char *text, size_t size, const char *path, weft_job **out,
                                  weft_error *error);
/* That its model, loss, metrics and optimizer go together, as weft_fit looks at them first; files
 * of data must be there, and are not read. Errors: WEFT_USAGE, WEFT_NOTFOUND, WEFT_SHAPE,
 * WEFT_UNSUPPORTED, WEFT_NOMEM. */
WEFT_API weft_code weft_job_check(const weft_job *j, weft_error *error);
WEFT_API void weft_job_free(weft_job **j);
/* Lent until the job is freed; "" for NULL. */
WEFT_API const char *weft_job_name(const weft_job *j);

/* Which run of the job is meant where its checkpoints are: each training of a job is a run, and
 * they have numbers from 1. 0, as it is at first: the newest one. */
WEFT_API void weft_job_set_run(weft_job *j, uint32_t run);

/* In place of a step. */
enum { WEFT_STEP_NEWEST = -1, WEFT_STEP_BEST = -2 };

/* The weights of a checkpoint of the job below checkpoint_dir: that of `step`, or the newest that
 * verifies (`passed_over`, or NULL, is told of those that do not), or the one that a callback of
 * the job called the best. weft_list_origin gives its name. Errors: WEFT_NOTFOUND, WEFT_CORRUPT,
 * WEFT_MISMATCH for those of another model, WEFT_NOMEM. */
WEFT_API weft_code weft_job_weights(const weft_job *j, const char *checkpoint_dir, int64_t step,
                                    void (*passed_over)(void *arg, const char *sentence), void *arg,
                                    weft_list **out, weft_error *error);

/* The same, and the state of the optimizer, for a training that goes on with it
 * (weft_fit_options.optimizer): slots as "VARIABLE/SLOT", float32 of the variable's shape, and how
 * many updates it has had as "VARIABLE/updates" [1], int64. Rows of unbounded tables have none
 * here. Errors: those of weft_job_weights; both lists are NULL then. */
WEFT_API weft_code weft_job_state(const weft_job *j, const char *checkpoint_dir, int64_t step,
                                  weft_list **weights, weft_list **optimizer, weft_error *error);

enum { WEFT_MAX_METRICS = 64 };

typedef struct weft_metric {
    char name[64]; /* "loss", "accuracy"; cut to fit */
    double value;
} weft_metric;

typedef struct weft_evaluation {
    uint64_t records;
    uint32_t n_metrics;
    weft_metric metrics[WEFT_MAX_METRICS]; /* the loss first */
} weft_evaluation;

/* All records of a file, as the job's model takes the field of that name: read as npy by its name,
 * else in the job's format, taken through data.map, and of `dtype` (0: as they come out of the
 * map). Steps that learn from the training data (standardise, words) go by what was learnt
 * with `weights`; NULL: by the training data, which is read. Errors: WEFT_NOTFOUND, WEFT_INVALID,
 * WEFT_USAGE, WEFT_SHAPE: the file or the map; WEFT_MISMATCH: weights of another map; WEFT_IO,
 * WEFT_NOMEM. */
WEFT_API weft_code weft_job_records(const weft_job *j, const weft_list *weights, const char *field,
                                    const char *path, weft_dtype dtype, weft_tensor **out,
                                    weft_error *error);

/* Lends the job data of the program, for data of the format "memory": `train` and `eval` name
 * tensors as they name files with other formats, {x: images}, and this gives the tensor of such a
 * name, [records, ...]. It is read where it is, so the memory must stay as it is until the job is
 * freed or the name is fed again; a tensor with strides that are not dense is copied now. Bools
 * must be bytes of 0 and 1. Not while the job is trained or evaluated in another thread. Errors:
 * WEFT_INVALID for a name with other characters than letters, digits, "_", "." and "-", or a tensor
 * that is no data; WEFT_SHAPE; WEFT_FULL beyond 64 names; WEFT_NOMEM. */
WEFT_API weft_code weft_job_feed(weft_job *j, const char *name, const weft_tensor *t,
                                 weft_error *error);

/* From now on weft_job_evaluate reads field names[i] from paths[i], and others as data.eval has
 * them; in a format whose files hold all fields (text) names[i] is NULL. A job without eval data
 * needs a file for each field. Errors: WEFT_USAGE, WEFT_NOMEM. */
WEFT_API weft_code weft_job_eval_files(weft_job *j, size_t n, const char *const names[],
                                       const char *const paths[], weft_error *error);

/* Loss and metrics on the job's eval data, with `weights` in place of its first values (NULL: with
 * those). Of the options, `threads` counts. Errors: WEFT_USAGE for a job without such data;
 * WEFT_NOTFOUND, WEFT_SHAPE, WEFT_INVALID: the data; WEFT_NOTFOUND for weights none of which the
 * model has; WEFT_NOMEM. */
WEFT_API weft_code weft_job_evaluate(const weft_job *j, const weft_list *weights,
                                     const weft_run_options *options, weft_evaluation *out,
                                     weft_error *error);

/* A folder of a checkpoint, complete or not. */
typedef struct weft_checkpoint {
    uint64_t step;
    char name[64]; /* "step-00012000" */
    uint64_t bytes;
    int64_t created_ms; /* since 1970; 0: not known */
    int complete;       /* by names and sizes of its files; checksums are checked when it is read */
} weft_checkpoint;

/* The checkpoints of a run ("digits#2") or of a job's newest run, newest first: *out [*n], to be
 * freed with weft_checkpoints_free. Errors: WEFT_NOTFOUND for a job without any, WEFT_IO,
 * WEFT_NOMEM. */
WEFT_API weft_code weft_checkpoints(const char *checkpoint_dir, const char *job,
                                    weft_checkpoint **out, size_t *n, weft_error *error);
WEFT_API void weft_checkpoints_free(weft_checkpoint **list);

/* ---- training ---- */

/* How far a job is. Strings and arrays are lent for the call that gets it. */
typedef struct weft_report {
    const char *state;      /* "running", "done", "stopped", "failed", and words on the way */
    uint32_t run;           /* the number of this training of the job */
    uint64_t step;          /* global steps */
    uint32_t epoch, epochs; /* the epoch in hand, from 1 */
    double part;            /* of all the work, 0 to 1 */
    double samples_per_sec;
    uint32_t n_metrics; /* of the epoch so far, the loss first */
    weft_metric metrics[WEFT_MAX_METRICS];
    uint32_t n_eval; /* of the newest evaluation */
    weft_metric eval[WEFT_MAX_METRICS];
    uint32_t eval_epoch;
    int64_t checkpoint; /* the step of the newest checkpoint; -1: there is none */
} weft_report;

typedef struct weft_fit_options {
    const char *folder;         /* where the job's journal lies; NULL: ".weft" */
    const char *checkpoint_dir; /* NULL: FOLDER/checkpoints */
    uint32_t threads;           /* 0: one per processor */
    int resume;                 /* go on with the job's newest run, if there is one */
    uint32_t report_ms;         /* the least time between two reports; 0: 200 */
    /* Called with a report after each change of the job's state, each epoch and evaluation, and in
     * between every report_ms. Not 0: stop with a checkpoint; weft_fit then goes on for as long as
     * that takes. May be NULL. It must not call weft_fit on the same folder. */
    int (*report)(void *arg, const weft_report *report);
    void *arg;
    const char *device; /* "cuda:0", a GPU of this host; NULL: the cpu */
    int temporary; /* the caller removes folder and checkpoint_dir afterwards: nothing of them is
                    * waited for to be safe from a crash of the machine */
    /* The state of an optimizer, of weft_job_state, that a new run goes on with; slots that the
     * job's optimizer has not are passed over. NULL: it begins anew. Lent until weft_fit ends. One
     * that does not fit the variables fails the job. */
    const weft_list *optimizer;
} weft_fit_options;

/* Trains a job in this process until it is done: a master and one worker that holds the variables,
 * in the calling thread, whatever "strategy" the job names. Checkpoints are those of a cluster.
 * Subnormal numbers count as zero until it returns.
 * *last, if not NULL, is the last report, without lent strings but `state`, which is static.
 * It is a new run of the job, unless `resume` is set; runs beyond the job's `keep_runs` are
 * removed. Errors: WEFT_STOPPED when `report` asked for it: resume goes on with the job;
 * WEFT_EXISTS when another process trains in the folder; the job's own failure as WEFT_INVALID;
 * WEFT_USAGE, WEFT_NOTFOUND: job or data; WEFT_IO, WEFT_NOMEM.
 */
WEFT_API weft_code weft_fit(const weft_job *j, const weft_fit_options *options, weft_report *last,
                            weft_error *error);

/* ---- sessions on a cluster ---- */

/* A program's way into a cluster of `weft up`. Variables live in the cluster, on its ps, by
 * container and name: what one session assigns, every other session of that container reads,
 * whichever task each was opened at. They are beside those of training jobs, which sessions neither
 * see nor disturb, and are there until they are removed or the ps that has them ends.
 *
 * A session connects anew by itself: a task that is away for less than the timeout is not noticed,
 * and a change is made once, however often it had to be sent. After WEFT_TIMEOUT a change may have
 * been made or not; the session can be used again. The functions may be called from several
 * threads, and then wait for each other. In a child process that was forked they fail with
 * WEFT_INVALID. */
typedef struct weft_session weft_session;

/* All zero is a good default, and what NULL stands for. */
typedef struct weft_session_options {
    const char *container; /* whose variables are meant, up to 200 bytes; NULL: "" */
    uint32_t timeout_ms;   /* of each call to a task; 0: 10000 */
} weft_session_options;

/* Opens a session at "HOST:PORT", "tcp://HOST:PORT" or "ipc://PATH": the address of any task of the
 * cluster, its master, a ps or a worker. Errors: WEFT_INVALID for an address that is none;
 * WEFT_TIMEOUT when nobody answers there; WEFT_AGAIN where a task lets nobody in; WEFT_UNSUPPORTED
 * for a cluster without ps; WEFT_FULL for one that is larger than the limit on open files has room
 * for; WEFT_NOMEM. */
WEFT_API weft_code weft_session_open(const char *address, const weft_session_options *options,
                                     weft_session **out, weft_error *error);
/* Ends the session, after a call of another thread that is under way; none may begin any more.
 * Variables stay. In a child process that was forked it only forgets it. */
WEFT_API void weft_session_free(weft_session **s);
/* The task that the session was opened at, as "ps 1", into text [size], cut to fit. */
WEFT_API void weft_session_task(const weft_session *s, char *text, size_t size);

/* Makes a variable with a first value; one that is there keeps its value. Up to 256 MiB. Errors:
 * WEFT_SHAPE when it is there with another dtype or shape; WEFT_FULL when the ps has no room;
 * WEFT_INVALID, WEFT_TIMEOUT, WEFT_NOMEM. */
WEFT_API weft_code weft_session_create(weft_session *s, const char *name, const weft_tensor *first,
                                       weft_error *error);
/* Gives a variable another value of its dtype and shape. Errors: WEFT_NOTFOUND with the nearest
 * name; WEFT_SHAPE with both; WEFT_TIMEOUT, WEFT_NOMEM. */
WEFT_API weft_code weft_session_assign(weft_session *s, const char *name, const weft_tensor *value,
                                       weft_error *error);
/* Adds to a variable, in one step: of several sessions that add at the same time none is lost.
 * Integers wrap around. *sum, if it is not NULL, is the variable with what was added. Errors: as
 * above; WEFT_UNSUPPORTED for bool. */
WEFT_API weft_code weft_session_assign_add(weft_session *s, const char *name,
                                           const weft_tensor *value, weft_tensor **sum,
                                           weft_error *error);
/* The value of a variable, to be freed with weft_tensor_free. Errors: WEFT_NOTFOUND, WEFT_TIMEOUT,
 * WEFT_NOMEM. */
WEFT_API weft_code weft_session_read(weft_session *s, const char *name, weft_tensor **out,
                                     weft_error *error);
/* Removes a variable. Errors: WEFT_NOTFOUND, WEFT_TIMEOUT, WEFT_NOMEM. */
WEFT_API weft_code weft_session_remove(weft_session *s, const char *name, weft_error *error);

/* Adds an ONNX model to the session's graph; several models meet by the names of their values. Its
 * variables are the initializers that are trained (docs/import.md), and those that an operation
 * Read, Assign or AssignAdd of the domain "ai.weft" has as its first input. They are created in the
 * cluster as weft_session_create does. Errors: WEFT_EXISTS for a name of a value that the session
 * has already; WEFT_SHAPE for a variable that is there with another dtype or shape;
 * WEFT_INVALID, WEFT_UNSUPPORTED: the model; those of weft_session_create. The graph is as it was
 * then; variables that were created stay. */
WEFT_API weft_code weft_session_extend(weft_session *s, const void *model, size_t size,
                                       weft_error *error);
/* The same from a file, with external data in its folder. Errors: WEFT_NOTFOUND, WEFT_IO too. */
WEFT_API weft_code weft_session_extend_file(weft_session *s, const char *path, weft_error *error);

/* Runs what the fetches and targets need of the graph, on a worker: the one that the session was
 * opened at, or else one of the cluster's. Nodes whose doc_string begins with "/job:worker/task:N"
 * are computed by worker N. All variables are read as the run begins; assignments are made as it
 * ends, in the order of the graph, AssignAdd in one step each, and before if nodes compute with its
 * result. Send and Recv exchange values with other runs (docs/library.md). fetches [n_fetches] name
 * values, which come back in their order: also variables, and results of Assign and AssignAdd.
 * targets [n_targets] name values or nodes to be run, of which nothing comes back. Random
 * operations draw other numbers in each run of a session, and the same in run N of every session. A
 * run is compiled once for each set of fetches, targets and shapes of feeds, 32 of which are kept.
 * *out may be NULL if there are no fetches. Errors: WEFT_USAGE: nothing is wanted, a feed that the
 * graph has no input for, an input that is fed twice or (error.name) not at all; WEFT_NOTFOUND for
 * a fetch or target, with the nearest name, a variable that is not there any more, or a worker that
 * the cluster has not; WEFT_SHAPE; WEFT_INVALID for a Send or Recv that does not say its key or
 * task; WEFT_FULL for more than 256 feeds or results, or 256 MiB of either, or more sent values
 * than a worker keeps; WEFT_TIMEOUT, naming the task, or key and sender of a Recv; WEFT_NOMEM.
 * Where a run fails between two of its changes, the error says how many are made. */
WEFT_API weft_code weft_session_run(weft_session *s, size_t n_feeds, const weft_feed feeds[],
                                    size_t n_fetches, const char *const fetches[], size_t n_targets,
                                    const char *const targets[], weft_list **out,
                                    weft_error *error);

#ifdef __cplusplus
}
#endif

#endif
