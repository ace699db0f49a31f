// SPDX-License-Identifier: Apache-2.0
// The layers of a run: their times, how close they are to the machine's peak, and why their kernels
// were chosen.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "support/report.h"
#include "tare/memory.h"

// --- reading ---

static bool computes(const tare_step *step, const char *node) {
    for (size_t i = 0; i < step->node_count; i++)
        if (strcmp(step->nodes[i], node) == 0) return true;
    return false;
}

/// Finds the step that computes a node; false if there is none.
static bool find_step(const tare_session *session, const char *node, tare_step *out) {
    for (size_t i = 0; tare_session_get_step(session, i, out); i++)
        if (computes(out, node)) return true;
    return false;
}

// Includes the steps that change the layout before the node.
static uint64_t time_of_node(const tare_session *session, const char *node) {
    uint64_t sum = 0;
    tare_step step;
    for (size_t i = 0; tare_session_get_step(session, i, &step); i++)
        if (strcmp(step.node, node) == 0) sum += step.median_ns;
    return sum;
}

// If a step of the other model computes several of this model's steps, its time is divided in
// proportion to them.
static uint64_t time_in_other(const tare_session *session, const tare_session *other,
                              const tare_step *step) {
    tare_step theirs, one;
    uint64_t ours = 0;
    if (step->node_count == 0 || !find_step(other, step->node, &theirs)) return 0;
    for (size_t i = 0; tare_session_get_step(session, i, &one); i++)
        if (one.node_count > 0 && computes(&theirs, one.node)) ours += one.median_ns;
    const double share = ours > 0 ? (double)step->median_ns / (double)ours : 0;
    return (uint64_t)((double)time_of_node(other, theirs.node) * share);
}

static size_t count_nested(const tare_session *session) {
    size_t count = 0;
    tare_step step;
    const char *graph;
    while (tare_session_get_nested_step(session, count, &step, &graph)) count++;
    return count;
}

tare_status layer_list_read(layer_list *out, const tare_session *session,
                            const tare_session *against) {
    const size_t own = tare_session_step_count(session), nested = count_nested(session);
    layer *layers = tare_memory_allocate(own + nested + 1, sizeof *layers);
    if (layers == NULL) return TARE_OUT_OF_MEMORY;
    for (size_t i = 0; i < own; i++) {
        layers[i].graph = "";
        (void)tare_session_get_step(session, i, &layers[i].step);
        if (against != NULL) layers[i].other_ns = time_in_other(session, against, &layers[i].step);
    }
    for (size_t i = 0; i < nested; i++)
        (void)tare_session_get_nested_step(session, i, &layers[own + i].step,
                                           &layers[own + i].graph);
    *out = (layer_list){layers, own + nested};
    return TARE_OK;
}

void layer_list_release(layer_list *list) {
    tare_memory_release(list->layers);
    *list = (layer_list){0};
}

// --- figures ---

static double per_ns(double amount, const tare_step *step) {
    return step->median_ns > 0 ? amount / (double)step->median_ns : 0;
}

double layer_gops(const tare_step *step) {
    return per_ns(2.0 * (double)step->macs, step);
}

int64_t layer_bytes(const tare_step *step) {
    return step->input_bytes + step->output_bytes + step->weight_bytes;
}

double layer_gbs(const tare_step *step) {
    return per_ns((double)layer_bytes(step), step);
}

double layer_share_of_peak(const tare_step *step, const tare_machine_peak *peak) {
    const double most = step->multiplies_codes ? peak->int8_gops : peak->float_gflops;
    return most > 0 ? layer_gops(step) / most : 0;
}

bool layer_is_nested(const layer *l) {
    return l->graph[0] != '\0';
}

double layer_list_ns(const layer_list *list) {
    double sum = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!layer_is_nested(&list->layers[i])) sum += (double)list->layers[i].step.median_ns;
    return sum > 0 ? sum : 1;
}

static bool is_slower(const layer *l) {
    return l->other_ns > 0 && l->step.median_ns > l->other_ns;
}

// --- text ---

static const char *shape_text(const tare_step *step, char *out, size_t size) {
    out[0] = '\0';
    for (int d = 0; d < step->output_ndim; d++) {
        const size_t length = strlen(out);
        (void)snprintf(out + length, size - length, "%s%" PRId64, d > 0 ? "x" : "",
                       step->output_shape[d]);
    }
    return out;
}

enum { NAME_SIZE = 512 };

// PATH/NODE in a graph inside.
static const char *name_of(const layer *l, char out[NAME_SIZE]) {
    const char *node = l->step.node[0] != '\0' ? l->step.node : "(result)";
    (void)snprintf(out, NAME_SIZE, "%s%s%s", l->graph, layer_is_nested(l) ? "/" : "", node);
    return out;
}

static int widest_name(const layer_list *list) {
    char name[NAME_SIZE];
    size_t widest = 5;
    for (size_t i = 0; i < list->count; i++) {
        const size_t length = strlen(name_of(&list->layers[i], name));
        if (length > widest) widest = length;
    }
    return widest < 44 ? (int)widest : 44;
}

static void print_number(double value, int decimals, bool is_told) {
    if (is_told)
        printf("  %7.*f", decimals, value);
    else
        printf("  %7s", "");
}

static void print_layer(const layer *l, const tare_machine_peak *peak, int width, double all,
                        bool has_other) {
    const tare_step *step = &l->step;
    char shape[96], name[NAME_SIZE];
    const bool multiplies = step->macs > 0;
    printf("%-*.*s  %-16s  %9.1f", width, width, name_of(l, name),
           shape_text(step, shape, sizeof shape), (double)step->median_ns * 1e-3);
    if (layer_is_nested(l)) // it is part of another step's
        printf("  %5s", "");
    else
        printf("  %5.1f", 100.0 * (double)step->median_ns / all);
    print_number(layer_gops(step), 0, multiplies);
    print_number(100.0 * layer_share_of_peak(step, peak), 0, multiplies);
    print_number(layer_gbs(step), 1, true);
    if (has_other) {
        print_number((double)l->other_ns / (double)(step->median_ns > 0 ? step->median_ns : 1), 2,
                     l->other_ns > 0);
        printf("%c", is_slower(l) ? '!' : ' ');
    }
    printf("  %-28s  %s\n", step->kernel, step->why);
}

// "3 layers, 4.2 % of the time, WHAT: a, b, c"
static void print_found(const layer_list *list, bool (*is_one)(const layer *l), const char *what) {
    double ns = 0;
    size_t count = 0;
    char name[NAME_SIZE];
    for (size_t i = 0; i < list->count; i++)
        if (is_one(&list->layers[i])) {
            if (!layer_is_nested(&list->layers[i])) ns += (double)list->layers[i].step.median_ns;
            count++;
        }
    if (count == 0) return;
    printf("%zu layer%s, %.1f %% of the time, %s:", count, count > 1 ? "s" : "",
           100.0 * ns / layer_list_ns(list), what);
    for (size_t i = 0; i < list->count; i++)
        if (is_one(&list->layers[i])) printf(" %s", name_of(&list->layers[i], name));
    printf("\n");
}

static bool may_differ(const layer *l) {
    return l->step.bits_may_differ;
}

void print_layers(const layer_list *list, const tare_machine_peak *peak, bool has_other) {
    if (list->count == 0 || layer_is_nested(&list->layers[0])) {
        printf("no layers: this model runs node by node, without a plan%s\n",
               list->count > 0 ? "; its inner graphs have one" : "");
        if (list->count == 0) return;
    }
    const int width = widest_name(list);
    const double all = layer_list_ns(list);
    printf("%-*s  %-16s  %9s  %5s  %7s  %7s  %7s%s  %-28s  %s\n", width, "layer", "output",
           "median us", "%", "GOPS", "% peak", "GB/s", has_other ? "    ratio " : "", "kernel",
           "why");
    for (size_t i = 0; i < list->count; i++)
        print_layer(&list->layers[i], peak, width, all, has_other);
    print_found(list, is_slower, "slower than in the other model");
    print_found(list, may_differ, "computed by oneDNN in float, whose last bits may differ");
}

// --- JSON ---

static void print_layer_json(const layer *l, const tare_machine_peak *peak, double all,
                             json_out *json) {
    const tare_step *step = &l->step;
    char name[NAME_SIZE];
    json_out_open(json, NULL, '{');
    json_out_string(json, "node", layer_is_nested(l) ? name_of(l, name) : step->node);
    json_out_string(json, "graph", l->graph);
    json_out_string(json, "kind", step->kind);
    json_out_string(json, "op", step->op);
    json_out_open(json, "nodes", '[');
    for (size_t i = 0; i < step->node_count; i++) json_out_string(json, NULL, step->nodes[i]);
    json_out_close(json, ']');
    json_out_open(json, "input_shape", '[');
    for (int d = 0; d < step->input_ndim; d++)
        json_out_integer(json, NULL, (uint64_t)step->input_shape[d]);
    json_out_close(json, ']');
    json_out_open(json, "output_shape", '[');
    for (int d = 0; d < step->output_ndim; d++)
        json_out_integer(json, NULL, (uint64_t)step->output_shape[d]);
    json_out_close(json, ']');
    json_out_number(json, "median_ms", (double)step->median_ns * 1e-6);
    json_out_number(json, "lower_ms", (double)step->lower_ns * 1e-6);
    json_out_number(json, "upper_ms", (double)step->upper_ns * 1e-6);
    json_out_number(json, "share", layer_is_nested(l) ? 0 : (double)step->median_ns / all);
    json_out_integer(json, "macs", (uint64_t)step->macs);
    json_out_integer(json, "bytes", (uint64_t)layer_bytes(step));
    json_out_number(json, "gops", layer_gops(step));
    json_out_number(json, "gbs", layer_gbs(step));
    json_out_bool(json, "multiplies_codes", step->multiplies_codes);
    json_out_number(json, "share_of_peak", layer_share_of_peak(step, peak));
    if (l->other_ns > 0) {
        json_out_number(json, "against_ms", (double)l->other_ns * 1e-6);
        json_out_bool(json, "is_slower", is_slower(l));
    }
    json_out_string(json, "kernel", step->kernel);
    json_out_string(json, "why", step->why);
    json_out_bool(json, "bits_may_differ", step->bits_may_differ);
    json_out_close(json, '}');
}

void print_layers_json(const layer_list *list, const tare_machine_peak *peak, const char *key,
                       json_out *json) {
    const double all = layer_list_ns(list);
    json_out_open(json, key, '[');
    for (size_t i = 0; i < list->count; i++) print_layer_json(&list->layers[i], peak, all, json);
    json_out_close(json, ']');
}
