// SPDX-License-Identifier: Apache-2.0
// The getters of torch's backend configs: which node of a match is the convolution, and which
// further input the fused module takes. For a match of another shape they return NULL; in Python
// the unpacking would fail.
#include <string.h>

#include "config/builtin_names.h"

typedef const tare_match_node match_node;

static const tare_match *sum_of_relu(const tare_match *match) { // (relu, (add, ..))
    return tare_match_count(match) == 2 ? tare_match_nested(match, 1) : NULL;
}

static match_node *operand(const tare_match *sum, size_t i) { // (add, left, right)
    return tare_match_count(sum) == 3 ? tare_match_node_at(sum, i) : NULL;
}

static match_node *normalized_operand(const tare_match *sum, size_t i) { // left is (bn, conv)
    const tare_match *pair = tare_match_count(sum) == 3 ? tare_match_nested(sum, i) : NULL;
    return tare_match_count(pair) == 2 ? tare_match_node_at(pair, 1) : NULL;
}

static size_t one_extra(match_node *extra, const tare_match_node **out, size_t capacity) {
    if (!extra || capacity == 0) return 0;
    out[0] = extra;
    return 1;
}

// A pair of getters: the convolution is `find`(sum, side), the extra input is the other operand.
#define PAIR(name, sum, find, side)                                                                \
    static match_node *name##_root(void *user, const tare_match *match) {                          \
        (void)user;                                                                                \
        return find(sum, side);                                                                    \
    }                                                                                              \
    static size_t name##_extra(void *user, const tare_match *match, match_node **out,              \
                               size_t capacity) {                                                  \
        (void)user;                                                                                \
        return one_extra(operand(sum, 3 - (side)), out, capacity);                                 \
    }

PAIR(conv_add_left, match, operand, 1)
PAIR(conv_add_right, match, operand, 2)
PAIR(conv_bn_add_left, match, normalized_operand, 1)
PAIR(conv_bn_add_right, match, normalized_operand, 2)
PAIR(conv_add_relu_left, sum_of_relu(match), operand, 1)
PAIR(conv_add_relu_right, sum_of_relu(match), operand, 2)
PAIR(conv_bn_add_relu_left, sum_of_relu(match), normalized_operand, 1)
PAIR(conv_bn_add_relu_right, sum_of_relu(match), normalized_operand, 2)

static match_node *pooling_root(void *user, const tare_match *match) { // (getitem, max_pool, 0)
    (void)user;
    return operand(match, 1);
}

static const struct {
    const char *name;
    tare_root_node_getter getter;
} root_getters[] = {
#define ONEDNN "torch.ao.quantization.backend_config.onednn."
    {ONEDNN "_conv_add_root_node_getter_left", conv_add_left_root},
    {ONEDNN "_conv_add_root_node_getter_right", conv_add_right_root},
    {ONEDNN "_conv_bn_add_root_node_getter_left", conv_bn_add_left_root},
    {ONEDNN "_conv_bn_add_root_node_getter_right", conv_bn_add_right_root},
    {ONEDNN "_conv_add_relu_root_node_getter_left", conv_add_relu_left_root},
    {ONEDNN "_conv_add_relu_root_node_getter_right", conv_add_relu_right_root},
    {ONEDNN "_conv_bn_add_relu_root_node_getter_left", conv_bn_add_relu_left_root},
    {ONEDNN "_conv_bn_add_relu_root_node_getter_right", conv_bn_add_relu_right_root},
    {"torch.ao.quantization.backend_config._qnnpack_pt2e.get_pooling_configs.root_node_getter",
     pooling_root},
};

static const struct {
    const char *name;
    tare_extra_inputs_getter getter;
} extra_getters[] = {
    {ONEDNN "_conv_add_extra_inputs_getter_left", conv_add_left_extra},
    {ONEDNN "_conv_add_extra_inputs_getter_right", conv_add_right_extra},
    {ONEDNN "_conv_bn_add_extra_inputs_getter_left", conv_bn_add_left_extra},
    {ONEDNN "_conv_bn_add_extra_inputs_getter_right", conv_bn_add_right_extra},
    {ONEDNN "_conv_add_relu_extra_inputs_getter_left", conv_add_relu_left_extra},
    {ONEDNN "_conv_add_relu_extra_inputs_getter_right", conv_add_relu_right_extra},
    {ONEDNN "_conv_bn_add_relu_extra_inputs_getter_left", conv_bn_add_relu_left_extra},
    {ONEDNN "_conv_bn_add_relu_extra_inputs_getter_right", conv_bn_add_relu_right_extra},
};

enum {
    ROOT_COUNT = sizeof root_getters / sizeof *root_getters,
    EXTRA_COUNT = sizeof extra_getters / sizeof *extra_getters,
};

tare_root_node_getter tare__root_node_getter_find(const char *name) {
    for (size_t i = 0; i < ROOT_COUNT; i++)
        if (strcmp(root_getters[i].name, name) == 0) return root_getters[i].getter;
    return NULL;
}

const char *tare__root_node_getter_name_at(const void *unused, size_t index) {
    (void)unused;
    return index < ROOT_COUNT ? root_getters[index].name : NULL;
}

tare_extra_inputs_getter tare__extra_inputs_getter_find(const char *name) {
    for (size_t i = 0; i < EXTRA_COUNT; i++)
        if (strcmp(extra_getters[i].name, name) == 0) return extra_getters[i].getter;
    return NULL;
}

const char *tare__extra_inputs_getter_name_at(const void *unused, size_t index) {
    (void)unused;
    return index < EXTRA_COUNT ? extra_getters[index].name : NULL;
}
