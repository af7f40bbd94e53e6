/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/job.c - what to compile, out of a job file. */
#include "common/compile/compile.h"

void wf_compile_spec_of_job(const wf_job_conf *job, wf_compile_mode mode, uint32_t n_ps,
                            wf_model *model, wf_compile_spec *spec)
{
    *model = (wf_model){.file = job->path,
                        .inputs = job->inputs,
                        .n_inputs = job->n_inputs,
                        .layers = job->layers,
                        .n_layers = job->n_layers,
                        .outputs = job->outputs,
                        .n_outputs = job->n_outputs,
                        .outputs_line = job->outputs_line};
    *spec = (wf_compile_spec){
        .onnx_path = job->onnx,
        .model = job->onnx ? NULL : model,
        .mode = mode,
        .strategy = n_ps ? WF_COMPILE_PARAMETER_SERVER : WF_COMPILE_LOCAL,
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
        .fields = job->train,
        .n_fields = job->n_train,
        .metrics = job->metrics,
        .n_metrics = job->n_metrics,
        .batch = (int64_t)job->batch,
        .seed = job->seed,
        .n_ps = n_ps,
        .slice_bytes = job->slice_bytes,
        .file = job->path,
        .loss_line = job->n_losses ? job->loss_line : job->model_line,
        .metrics_line = job->metrics_line,
    };
}
