/* SPDX-License-Identifier: Apache-2.0 */
/* examples/c/spirals.c - draws points on three arms of a spiral, trains the network of spirals.yaml
 * on them in this process, evaluates it, and asks it for the arms of a few points.
 *
 *     make && ./spirals          the working folder gets two csv files, .weft and spirals.onnx
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft.h>

enum { ARMS = 3, TRAIN = 600, EVAL = 150 };

static weft_error error;

static void must(weft_code code, const char *what)
{
    if (code == WEFT_OK)
        return;
    fprintf(stderr, "%s: %s%s%s\n", what, error.message, error.hint[0] ? "; " : "", error.hint);
    exit(1);
}

/* A number in [-1, 1] that is the same in every run. */
static double noise(void)
{
    static unsigned state = 1;

    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / (1 << 23) - 1;
}

/* The point of arm `arm` that lies `part` of the way out. */
static void place(int arm, double part, double blur, float point[2])
{
    double angle = 2 * M_PI * arm / ARMS + 3 * part + blur * noise(), far = 0.2 + 0.8 * part;

    point[0] = (float)(far * cos(angle));
    point[1] = (float)(far * sin(angle));
}

static void draw(const char *path, int n)
{
    FILE *f = fopen(path, "w");
    float point[2];

    if (!f) {
        perror(path);
        exit(1);
    }
    fprintf(f, "a,b,arm\n");
    for (int i = 0; i < n; i++) {
        place(i % ARMS, (noise() + 1) / 2, 0.2, point);
        fprintf(f, "%.6f,%.6f,%d\n", point[0], point[1], i % ARMS);
    }
    fclose(f);
}

static int show(void *arg, const weft_report *r)
{
    unsigned *shown = arg;

    if (r->eval_epoch > *shown && r->n_eval == 2)
        printf("epoch %2u  %s %.3f  %s %.3f\n", r->eval_epoch, r->eval[0].name, r->eval[0].value,
               r->eval[1].name, r->eval[1].value);
    *shown = r->eval_epoch;
    return 0; /* 1: stop, with a checkpoint */
}

/* The arm with the greatest score for each of n points. */
static int ask(weft_model *m)
{
    float points[ARMS * 4][2];
    int64_t shape[2] = {ARMS * 4, 2};
    const weft_tensor t = {.data = points, .dtype = WEFT_F32, .rank = 2, .shape = shape};
    const weft_feed feed = {.name = "point", .tensor = &t};
    weft_list *out = NULL;
    const float *score;
    int right = 0;

    for (int i = 0; i < ARMS * 4; i++)
        place(i % ARMS, i / (double)(ARMS * 4), 0, points[i]);
    must(weft_model_predict(m, 1, &feed, NULL, &out, &error), "predict");
    score = weft_list_tensor(out, 0)->data;
    for (int i = 0; i < ARMS * 4; i++, score += ARMS) {
        int best = 0;

        for (int k = 1; k < ARMS; k++)
            best = score[k] > score[best] ? k : best;
        right += best == i % ARMS;
    }
    weft_list_free(&out);
    return right;
}

int main(int argc, char *argv[])
{
    weft_job *job = NULL;
    weft_list *weights = NULL;
    weft_model *model = NULL;
    weft_evaluation e;
    unsigned shown = 0;
    const weft_fit_options options = {.resume = 1, .report_ms = 10, .report = show, .arg = &shown};

    printf("weft %s\n", weft_version());
    weft_process_settings(); /* this program has nothing else that computes */
    must(weft_job_open(argc > 1 ? argv[1] : "spirals.yaml", &job, &error), "job");
    draw("spirals_train.csv", TRAIN);
    draw("spirals_eval.csv", EVAL);
    must(weft_fit(job, &options, NULL, &error), "fit");
    must(weft_job_weights(job, ".weft/checkpoints", WEFT_STEP_NEWEST, NULL, NULL, &weights, &error),
         "checkpoint");
    must(weft_job_evaluate(job, weights, NULL, &e, &error), "evaluate");
    printf("%s: %s %.3f  %s %.3f\n", weft_list_origin(weights), e.metrics[0].name,
           e.metrics[0].value, e.metrics[1].name, e.metrics[1].value);
    must(weft_model_of_job(job, weights, &model, &error), "model");
    printf("%d of %d points are on the arm that was asked for\n", ask(model), ARMS * 4);
    must(weft_model_write(model, "spirals.onnx", &error), "export");
    weft_model_free(&model);
    weft_list_free(&weights);
    weft_job_free(&job);
    return e.metrics[1].value > 0.9 ? 0 : 1;
}
