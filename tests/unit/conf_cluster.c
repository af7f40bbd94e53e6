/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/conf_cluster.c - cluster files: what is read, and the sentence for each that is wrong.
 */
#include "common/base/bytes.h"
#include "common/conf/conf.h"
#include "conf.h"

#include <stdlib.h>
#include <unistd.h>

static const char good[] =
    "cluster: demo\n"
    "master: {address: tcp://127.0.0.1:7700, http: 127.0.0.1:7780}\n"
    "ps:\n"
    "  - {address: tcp://127.0.0.1:7710}\n"
    "  - {address: \"tcp://[::1]:7711\"}\n"
    "workers:\n"
    "  - {address: tcp://127.0.0.1:7720, devices: [cpu, \"cuda:1\"], threads: 4}\n"
    "  - {address: ipc://run/w1}\n"
    "state_dir: .weft\n"
    "checkpoint_dir: /data/ckpt\n"
    "shared_memory: off\n"
    "direct_connections: off\n"
    "session_values: 12\n"
    "dead_ms: 7000\n";

static wf_status parse(const char *text, wf_cluster_conf **c, wf_err *err)
{
    return wf_cluster_parse(text, strlen(text), "/home/me/cluster.yaml", c, err);
}

static void a_cluster_file_becomes_a_struct(void **state)
{
    wf_cluster_conf *c = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(parse(good, &c, &err), WF_OK);
    assert_string_equal(c->name, "demo");
    assert_string_equal(c->path, "/home/me/cluster.yaml");
    assert_string_equal(c->master.address, "tcp://127.0.0.1:7700");
    assert_string_equal(c->http, "127.0.0.1:7780");
    assert_int_equal(c->n_ps, 2);
    assert_string_equal(c->ps[1].host, "::1");
    assert_int_equal(c->ps[1].port, 7711);
    assert_int_equal(c->ps[1].line, 5);
    assert_int_equal(c->n_workers, 2);
    assert_int_equal(c->workers[0].threads, 4);
    assert_string_equal(c->workers[0].devices[0], "cpu");
    assert_string_equal(c->workers[1].address, "ipc:///home/me/run/w1");
    assert_string_equal(c->state_dir, "/home/me/.weft");
    assert_string_equal(c->checkpoint_dir, "/data/ckpt");
    assert_int_equal(c->heartbeat_ms, 1000);
    assert_int_equal(c->dead_ms, 7000);
    assert_true(c->shared_memory_off);
    assert_true(c->direct_connections_off);
    assert_int_equal(c->session_values, 12);
    assert_int_equal(c->session_values_mib, 64);
    wf_cluster_free(&c);
    assert_null(c);
}

#define REST "ps: [{address: tcp://127.0.0.1:2}]\nworkers: [{address: tcp://127.0.0.1:3}]\n"
#define HEAD "master: {address: tcp://127.0.0.1:1}\n"

static const bad_text bad[] = {
    {"master: [\n", WF_USAGE, "/home/me/cluster.yaml:2: not YAML"},
    {HEAD "wrkers: []\n", WF_USAGE,
     "/home/me/cluster.yaml:2: unknown key \"wrkers\"; did you mean "
     "\"workers\"?"},
    {HEAD, WF_USAGE, "/home/me/cluster.yaml:1: the cluster has no \"workers\""},
    {"", WF_USAGE, "/home/me/cluster.yaml:1: the cluster has no \"master\""},
    {"- a\n", WF_USAGE, "/home/me/cluster.yaml:1: the cluster must be a map"},
    {HEAD HEAD REST, WF_USAGE, "/home/me/cluster.yaml:2: \"master\" is given a second time"},
    {HEAD REST "direct_connections: 1\n", WF_USAGE,
     "/home/me/cluster.yaml:4: \"direct_connections\" is on or off"},
    {HEAD REST "session_values: 0\n", WF_USAGE,
     "/home/me/cluster.yaml:4: \"session_values\" must be a whole number from 1 to 16384, not 0"},
    {HEAD REST "session_values_mib: many\n", WF_USAGE,
     "/home/me/cluster.yaml:4: \"session_values_mib\" must be a whole number from 1 to 1048576, "
     "not many"},
    {HEAD REST "shared_memory: perhaps\n", WF_USAGE,
     "/home/me/cluster.yaml:4: \"shared_memory\" is on or off"},
    {HEAD "ps: []\n", WF_USAGE, "/home/me/cluster.yaml:2: \"ps\" must be a list of 1 to"},
    {HEAD "ps: [{adress: tcp://a:1}]\n", WF_USAGE, "*did you mean \"address\""},
    {HEAD "ps: [{address: tcp://127.0.0.1:1}]\nworkers: [{address: tcp://127.0.0.1:3}]\n", WF_USAGE,
     "/home/me/cluster.yaml:2: ps/0 has the address tcp://127.0.0.1:1, and so has the master (line "
     "1)"},
    {HEAD "ps: [{address: tcp://localhost:1}]\nworkers: [{address: tcp://127.0.0.1:3}]\n", WF_USAGE,
     "/home/me/cluster.yaml:2: ps/0 has the address"},
    {"master: {address: tcp://10.0.0.5:1}\n" REST, WF_USAGE,
     "/home/me/cluster.yaml:1: the master is at tcp://10.0.0.5:1: plain text off this host; write "
     "security: none"},
    {"master: {address: tcp://127.0.0.1:70000}\n" REST, WF_USAGE,
     "/home/me/cluster.yaml:1: the port \"70000\""},
    {"master: {address: tcp://127.0.0.1:0}\n" REST, WF_USAGE, "*is not a number from 1 to 65535"},
    {"master: {address: tcp://127.0.0.1:99999999999999999999}\n" REST, WF_USAGE,
     "*from 1 to 65535"},
    {"master: {address: tcp://127.0.0.1:-1}\n" REST, WF_USAGE, "*is not a number from 1 to 65535"},
    {"master: {address: 127.0.0.1:7700}\n" REST, WF_USAGE,
     "/home/me/cluster.yaml:1: the address 127.0.0.1:7700 is malformed; write tcp://HOST:PORT"},
    {"master: {address: tcp://a b:1}\n" REST, WF_USAGE, "*is malformed"},
    {"master: {address: tcp://0.0.0.0:1}\n" REST, WF_USAGE, "*no address that another task can"},
    {"master: {address: ipc://}\n" REST, WF_USAGE, "*names no path"},
    {"master: {address: []}\n" REST, WF_USAGE, "*a task has no address"},
    {"master: {address: [tcp://127.0.0.1:1, tcp://127.0.0.1:2]}\n" REST, WF_USAGE,
     "*two addresses of the kind tcp; name one of each kind"},
    {"master: {address: [ipc://a, ipc://b]}\n" REST, WF_USAGE, "*of the kind ipc"},
    {HEAD "ps: [{address: [tcp://127.0.0.1:9, ipc://p]}]\nworkers: [{address: ipc://p}]\n",
     WF_USAGE, "*worker/0 has the address ipc:///home/me/p, and so has ps/0"},
    {HEAD REST "security: {curve: keys}\n", WF_UNSUPPORTED, "*is not built yet"},
    {HEAD REST "security: off\n", WF_USAGE, "/home/me/cluster.yaml:4: \"security\" is none or"},
    {HEAD REST "serve: {}\n", WF_UNSUPPORTED,
     "/home/me/cluster.yaml:4: \"serve\" is not built yet"},
    {HEAD REST "dead_ms: 1500\n", WF_USAGE, "*less than two heartbeats"},
    {HEAD REST "heartbeat_ms: fast\n", WF_USAGE,
     "/home/me/cluster.yaml:4: \"heartbeat_ms\" must be a whole number from 10 to 60000, not fast"},
    {HEAD REST "state_dir:\n", WF_USAGE, "/home/me/cluster.yaml:4: \"state_dir\" has no value"},
    {HEAD REST "state_dir: [a]\n", WF_USAGE, "*must be a word, not a list"},
    {HEAD REST "state_dir: &a x\n", WF_USAGE, "/home/me/cluster.yaml:4: anchors and aliases"},
    {HEAD REST "state_dir: !!str x\n", WF_USAGE, "/home/me/cluster.yaml:4: tags"},
    {HEAD REST "? [a]\n: b\n", WF_USAGE, "/home/me/cluster.yaml:4: a key must be a word"},
    {HEAD "ps:\n\t- {address: tcp://127.0.0.1:2}\n", WF_USAGE,
     "/home/me/cluster.yaml:3: a tab stands where YAML wants spaces"},
    {HEAD REST "---\na: b\n", WF_USAGE, "/home/me/cluster.yaml:4: a second document"},
    {HEAD "ps: [{address: tcp://127.0.0.1:2, threads: 0}]\n", WF_USAGE,
     "*\"threads\" must be a whole"},
    {HEAD "ps: [{address: tcp://127.0.0.1:2, devices: [tpu]}]\n", WF_USAGE, "*unknown device"},
    {HEAD "ps: [{address: tcp://127.0.0.1:2, devices: [gpu]}]\n", WF_USAGE,
     "*unknown device \"gpu\"; write cuda:0 for the first GPU of the host"},
    {HEAD "ps: [{address: tcp://127.0.0.1:2, devices: [\"cuda:00\"]}]\n", WF_USAGE,
     "*unknown device \"cuda:00\"; known: cpu, or cpu:0, cpu:1 and so on; and GPUs as cuda:0, "
     "cuda:1"},
    {HEAD "ps: [{address: tcp://127.0.0.1:2, devices: [cpu:x]}]\n", WF_USAGE,
     "*unknown device \"cpu:x\"; known: cpu, or cpu:0, cpu:1 and so on; and GPUs as cuda:0, "
     "cuda:1"},
    {HEAD "ps: [{address: tcp://127.0.0.1:2, devices: [cpu:1, cpu:1]}]\n", WF_USAGE,
     "*the device \"cpu:1\" is there twice"},
    {HEAD "ps: [{address: tcp://127.0.0.1:2, devices: [cpu, \"cuda:0\"]}]\n", WF_USAGE,
     "*a ps has no use for the device \"cuda:0\"; name it under devices of a worker"},
    {HEAD "ps: [{address: tcp://127.0.0.1:2, devices: []}]\n", WF_USAGE, "*names none"},
    {HEAD "ps: [{address: tcp://127.0.0.1:2, devices: [cpu, cpu]}]\n", WF_USAGE,
     "*the device \"cpu\" is there twice"},
};

static void each_bad_cluster_file_gets_its_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_cluster_conf *c = NULL;
        wf_err err = {0};
        wf_status rc = parse(bad[i].text, &c, &err);

        check_bad(&bad[i], rc, &err);
        assert_null(c);
    }
}

static void nesting_and_size_are_bounded(void **state)
{
    wf_cluster_conf *c = NULL;
    wf_bytes text = {0};
    wf_err err = {0};

    (void)state;
    for (int i = 0; i < 100000; i++)
        wf_bytes_puts(&text, "[");
    assert_int_equal(wf_cluster_parse(wf_bytes_str(&text), text.size, "c.yaml", &c, &err),
                     WF_USAGE);
    assert_non_null(strstr(err.what, "c.yaml:1: nested deeper than 32"));
    while (text.size <= WF_CONF_MAX_BYTES)
        wf_bytes_puts(&text, "# a comment that says nothing, many times over\n");
    assert_int_equal(wf_cluster_parse(wf_bytes_str(&text), text.size, "c.yaml", &c, &err),
                     WF_USAGE);
    assert_non_null(strstr(err.what, "a YAML file may have 1048576"));
    wf_bytes_close(&text);
}

static void every_cut_of_a_good_file_is_refused_or_read(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof good; n++) {
        wf_cluster_conf *c = NULL;
        wf_err err;

        if (wf_cluster_parse(good, n, "c.yaml", &c, &err) == WF_OK)
            wf_cluster_free(&c);
    }
}

static void check_round_trip(const char *state_dir, const char *scheme)
{
    char path[] = "/tmp/weft-conf-XXXXXX";
    wf_cluster_conf *made = NULL, *read = NULL;
    wf_err err;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(wf_cluster_local(state_dir, 2, 3, false, &made, &err), WF_OK);
    assert_int_equal(strncmp(made->ps[1].address, scheme, strlen(scheme)), 0);
    assert_false(made->shared_memory_off);
    made->shared_memory_off = made->direct_connections_off = true;
    made->session_values = 7;
    made->session_values_mib = 9;
    assert_int_equal(wf_cluster_write(made, path, &err), WF_OK);
    assert_int_equal(wf_cluster_load(path, &read, &err), WF_OK);
    assert_true(read->shared_memory_off);
    assert_true(read->direct_connections_off);
    assert_int_equal(read->session_values, 7);
    assert_int_equal(read->session_values_mib, 9);
    assert_int_equal(read->n_ps, 2);
    assert_int_equal(read->n_workers, 3);
    assert_string_equal(read->workers[2].address, made->workers[2].address);
    assert_string_equal(read->state_dir, made->state_dir);
    assert_string_equal(read->checkpoint_dir, made->checkpoint_dir);
    wf_cluster_free(&made);
    wf_cluster_free(&read);
    unlink(path);
}

static void a_local_cluster_survives_being_written(void **state)
{
    char deep[160];

    (void)state;
    check_round_trip("/tmp/a \"quoted\" place", "ipc://");
    memset(deep, 'd', sizeof deep);
    deep[0] = '/';
    deep[sizeof deep - 1] = 0;
    check_round_trip(deep, "tcp://127.0.0.1:");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cluster_file_becomes_a_struct),
        cmocka_unit_test(each_bad_cluster_file_gets_its_sentence),
        cmocka_unit_test(nesting_and_size_are_bounded),
        cmocka_unit_test(every_cut_of_a_good_file_is_refused_or_read),
        cmocka_unit_test(a_local_cluster_survives_being_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
