// SPDX-License-Identifier: Apache-2.0
// What times of steps are predicted from (runtime/tune/step_costs.h), for bench/step_costs.py.
//
// usage: step_features BENCH.json..
//
// Reads what `tare bench --layers --json` wrote. Prints a line for each step that took time: the
// row of step_costs.def, the median in nanoseconds, and the features.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/json/json.h"
#include "runtime/tune/step_costs.h"

static tare_status read_peak(const json_at *root, tare_machine_peak *peak, tare_error *err) {
    const json_at machine = tare__json_get(root, "machine"), at = tare__json_get(&machine, "peak");
    const json_at int8 = tare__json_get(&at, "int8_gops");
    const json_at floats = tare__json_get(&at, "float_gflops"), l2 = tare__json_get(&at, "l2_gbs");
    TARE_TRY(tare__json_double(&int8, &peak->int8_gops, err));
    const json_at vectors = tare__json_get(&at, "int8_vector_gops");
    TARE_TRY(tare__json_double(&vectors, &peak->int8_vector_gops, err));
    TARE_TRY(tare__json_double(&floats, &peak->float_gflops, err));
    return tare__json_double(&l2, &peak->l2_gbs, err);
}

static tare_status read_shape(const json_at *shape, tare_step *step, tare_error *err) {
    TARE_TRY(tare__json_expect(shape, JSON_ARRAY, err));
    const size_t count = json_array_size(shape->value);
    if (count > TARE_MAX_DIMS) return tare__json_fail(shape, err, "too many dimensions");
    step->output_ndim = (int)count;
    for (size_t d = 0; d < count; d++) {
        const json_at size = tare__json_item(shape, d);
        TARE_TRY(tare__json_int(&size, &step->output_shape[d], err));
    }
    return TARE_OK;
}

static tare_status read_step(const json_at *at, tare_step *step, double *ns, tare_error *err) {
    const json_at kind = tare__json_get(at, "kind"), op = tare__json_get(at, "op");
    const json_at kernel = tare__json_get(at, "kernel"), nodes = tare__json_get(at, "nodes");
    const json_at shape = tare__json_get(at, "output_shape"), macs = tare__json_get(at, "macs");
    const json_at bytes = tare__json_get(at, "bytes"), median = tare__json_get(at, "median_ms");
    *step = (tare_step){0};
    TARE_TRY(tare__json_string(&kind, &step->kind, err));
    TARE_TRY(tare__json_string(&op, &step->op, err));
    TARE_TRY(tare__json_string(&kernel, &step->kernel, err));
    TARE_TRY(tare__json_expect(&nodes, JSON_ARRAY, err));
    step->node_count = json_array_size(nodes.value);
    TARE_TRY(read_shape(&shape, step, err));
    TARE_TRY(tare__json_int(&macs, &step->macs, err));
    TARE_TRY(tare__json_int(&bytes, &step->input_bytes, err)); // of all tensors
    TARE_TRY(tare__json_flag(at, "multiplies_codes", &step->multiplies_codes, err));
    TARE_TRY(tare__json_double(&median, ns, err));
    *ns *= 1e6;
    return TARE_OK;
}

static tare_status print_steps(const json_at *root, const tare_machine_peak *peak, const char *key,
                               tare_error *err) {
    if (!tare__json_has(root, key)) return TARE_OK;
    const json_at list = tare__json_get(root, key);
    TARE_TRY(tare__json_expect(&list, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const json_at at = tare__json_item(&list, i);
        tare_step step;
        double ns, features[STEP_FEATURES];
        TARE_TRY(read_step(&at, &step, &ns, err));
        if (!(ns > 0)) continue;
        tare__step_features(peak, &step, features);
        (void)printf("%zu %.0f", tare__step_cost_row(&step), ns);
        for (size_t k = 0; k < STEP_FEATURES; k++) (void)printf(" %.17g", features[k]);
        (void)printf("\n");
    }
    return TARE_OK;
}

static tare_status print_file(const char *path, tare_error *err) {
    json_t *json = NULL;
    tare_machine_peak peak = {0};
    TARE_TRY(tare__json_parse_file(path, &json, err));
    const json_at root = tare__json_root(json);
    tare_status status = read_peak(&root, &peak, err);
    if (status == TARE_OK) status = print_steps(&root, &peak, "layers", err);
    if (status == TARE_OK) status = print_steps(&root, &peak, "against_layers", err);
    json_decref(json);
    return status;
}

int main(int argc, char **argv) {
    tare_error *err = tare_error_create();
    tare_status status = TARE_OK;
    for (int i = 1; i < argc && status == TARE_OK; i++) status = print_file(argv[i], err);
    if (status != TARE_OK)
        (void)fprintf(stderr, "step_features: %s: %s\n", tare_error_where(err),
                      tare_error_message(err));
    tare_error_destroy(err);
    return status == TARE_OK ? 0 : 1;
}
