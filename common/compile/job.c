/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/job.c - what to compile, out of a job file. */
#include "common/compile/compile.h"
#include "common/optim/rule.h"

#include <string.h>

void wf_compile_spec_of_job(const wf_job_conf *job, wf_compile_mode mode,
                            const wf_strategy *strategy, uint32_t n_ps, wf_model *model,
                            wf_compile_spec *spec)
{
    /* NULL is an unknown name, which whoever wants the optimizer answers. */
    const wf_rule *rule = job->optimizer.type ? wf_rule_find(job->optimizer.type) : NULL;
    bool is_libsvm = job->format && strcmp(job->format, "libsvm") == 0;

    *model = (wf_model){.file = job->path,
                        .inputs = job->inputs,
                        .n_inputs = job->n_inputs,
                        .bags = job->bags,
                        .n_bags = job->n_bags,
                        .pairs = job->columns,
                        .n_pairs = is_libsvm ? job->n_columns : 0,
                        .layers = job->layers,
                        .n_layers = job->n_layers,
                        .outputs = job->outputs,
                        .n_outputs = job->n_outputs,
                        .outputs_line = job->outputs_line};
    *spec = (wf_compile_spec){
        .onnx_path = job->onnx,
        .model = job->onnx ? NULL : model,
        .mode = mode,
        .strategy = strategy,
        .losses = job->losses,
        .n_losses = job->n_losses,
        .loss_weights = job->loss_weights,
        .n_loss_weights = job->n_loss_weights,
        .labels = job->labels,
        .n_labels = job->n_labels,
        .sample_weights = job->sample_weights,
        .n_sample_weights = job->n_sample_weights,
        .class_weights = job->class_weights,
        .n_class_weights = job->n_class_weights,
        .from_logits = job->from_logits == WF_YES  ? WF_COMPILE_LOGITS_TRUE
                       : job->from_logits == WF_NO ? WF_COMPILE_LOGITS_FALSE
                                                   : WF_COMPILE_LOGITS_AUTO,
        .fields = job->train.fields,
        .n_fields = job->train.n,
        .metrics = job->metrics,
        .n_metrics = job->n_metrics,
        .batch = (int64_t)job->batch,
        .seed = job->seed,
        .n_ps = n_ps,
        .slice_bytes = job->slice_bytes,
        .pins = job->pins,
        .n_pins = job->n_pins,
        .balances = job->balance,
        .whole_variables = rule && rule->whole,
        .accumulates = wf_conf_number(&job->optimizer, "gradient_accumulation_steps", 1) > 1,
        .file = job->path,
        .trainable = job->trainable,
        .n_trainable = job->n_trainable,
        .trainable_line = job->trainable_line,
        .freeze = job->freeze,
        .n_freeze = job->n_freeze,
        .weights = job->weights.file ? &job->weights : NULL,
        .freeze_line = job->freeze_line,
        .tables = job->tables,
        .n_tables = job->n_tables,
        .tables_line = job->tables_line,
        .codecs = job->codecs,
        .n_codecs = job->n_codecs,
        .narrow = wf_compute_kept(job->compute),
        .scales_loss = job->compute == WF_COMPUTE_F16,
        .loss_line = job->n_losses ? job->loss_line : job->model_line,
        .metrics_line = job->metrics_line,
    };
}

/* The line of the option that is to blame: with those up to it the sentence is the same. */
static int line_of(const wf_conf_item *item, const char *const names[], const double values[],
                   const wf_err *why)
{
    wf_err early;
    wf_opt opt;

    for (uint32_t n = 0; n < item->n_options; n++)
        if (wf_opt_init(&opt, item->type, n + 1, names, values, &early) != WF_OK &&
            strcmp(early.what, why->what) == 0)
            return item->options[n].line;
    return item->line;
}

wf_status wf_compile_optimizer_of_job(const wf_job_conf *job, wf_opt *out, wf_err *err)
{
    const wf_conf_item *item = &job->optimizer;
    const char *names[WF_MAX_SETTINGS];
    double values[WF_MAX_SETTINGS];
    wf_err why = {0};
    uint32_t n = 0;
    wf_status rc;

    if (item->n_options > WF_MAX_SETTINGS)
        return wf_fail(err, WF_USAGE, NULL, "%s:%d: %s has no %zu options", job->path, item->line,
                       item->type, item->n_options);
    for (; n < item->n_options; n++) {
        names[n] = item->options[n].name;
        values[n] = item->options[n].number;
    }
    rc = wf_opt_init(out, item->type, n, names, values, &why);
    if (rc != WF_OK && err)
        *err = why;
    return rc == WF_OK
               ? WF_OK
               : wf_err_wrap(err, rc, "%s:%d", job->path, line_of(item, names, values, &why));
}
