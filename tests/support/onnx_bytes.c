// SPDX-License-Identifier: Apache-2.0
// The fields' numbers are those of onnx.proto.
#include "support/onnx_bytes.h"

#include <stdlib.h>
#include <string.h>

static void varint(text *t, uint64_t value) {
    for (; value >= 0x80; value >>= 7) tare__text_char(t, (char)(value | 0x80));
    tare__text_char(t, (char)value);
}

void pb_int(text *t, unsigned field, int64_t value) {
    varint(t, (uint64_t)field << 3);
    varint(t, (uint64_t)value);
}

void pb_bytes(text *t, unsigned field, const void *bytes, size_t size) {
    varint(t, (uint64_t)field << 3 | 2);
    varint(t, size);
    tare__text_append_n(t, bytes, size);
}

void pb_text(text *t, unsigned field, const char *chars) {
    pb_bytes(t, field, chars, strlen(chars));
}

void pb_message(text *t, unsigned field, text message) {
    pb_bytes(t, field, tare__text_chars(&message), message.length);
    tare__text_release(&message);
}

// --- nodes ---

static void add_names(text *node, unsigned field, const char *names) {
    for (const char *at = names; *at != '\0'; at += *at == ' ') {
        const size_t length = strcspn(at, " ");
        pb_bytes(node, field, at, length == 1 && *at == '-' ? 0 : length);
        at += length;
    }
}

text onnx_node(const char *op_type, const char *name, const char *inputs, const char *outputs) {
    text node = {0};
    add_names(&node, 1, inputs);
    add_names(&node, 2, outputs);
    pb_text(&node, 3, name);
    pb_text(&node, 4, op_type);
    return node;
}

void onnx_attr_int(text *node, const char *name, int64_t value) {
    text attribute = {0};
    pb_text(&attribute, 1, name);
    pb_int(&attribute, 3, value);
    pb_int(&attribute, 20, 2);
    pb_message(node, 5, attribute);
}

void onnx_attr_graph(text *node, const char *name, text graph) {
    text attribute = {0};
    pb_text(&attribute, 1, name);
    pb_message(&attribute, 6, graph);
    pb_int(&attribute, 20, 5);
    pb_message(node, 5, attribute);
}

void onnx_attr_ints(text *node, const char *name, const int64_t *values, size_t count) {
    text attribute = {0};
    pb_text(&attribute, 1, name);
    for (size_t i = 0; i < count; i++) pb_int(&attribute, 8, values[i]);
    pb_int(&attribute, 20, 7);
    pb_message(node, 5, attribute);
}

static text float_attribute(const char *name, float value) {
    text attribute = {0};
    pb_text(&attribute, 1, name);
    varint(&attribute, 2 << 3 | 5);
    tare__text_append_n(&attribute, (const char *)&value, sizeof value);
    pb_int(&attribute, 20, 1);
    return attribute;
}

void onnx_attr_float(text *node, const char *name, float value) {
    pb_message(node, 5, float_attribute(name, value));
}

void onnx_attr_text(text *node, const char *name, const char *value) {
    text attribute = {0};
    pb_text(&attribute, 1, name);
    pb_text(&attribute, 4, value);
    pb_int(&attribute, 20, 3);
    pb_message(node, 5, attribute);
}

void onnx_attr_ref(text *node, const char *name, const char *of_function) {
    text attribute = {0};
    pb_text(&attribute, 1, name);
    pb_int(&attribute, 20, 1);
    pb_text(&attribute, 21, of_function);
    pb_message(node, 5, attribute);
}

static void add_property(text *to, unsigned field, const char *key, const char *value) {
    text entry = {0};
    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    pb_message(to, field, entry);
}

void onnx_scope_of(text *node, const char *names, const char *classes) {
    add_property(node, 9, "pkg.torch.onnx.name_scopes", names);
    add_property(node, 9, "pkg.torch.onnx.class_hierarchy", classes);
}

void onnx_add_node(text *graph, text node) {
    pb_message(graph, 1, node);
}

void onnx_call(text *graph, const char *op_type, const char *name, const char *inputs,
               const char *outputs) {
    onnx_add_node(graph, onnx_node(op_type, name, inputs, outputs));
}

// --- values ---

static text float_type(const char *shape) {
    text dims = {0}, tensor = {0}, type = {0};
    for (const char *at = shape; at != NULL && *at != '\0'; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        text dim = {0};
        if (*at >= '0' && *at <= '9')
            pb_int(&dim, 1, strtoll(at, NULL, 10));
        else
            pb_bytes(&dim, 2, at, length);
        pb_message(&dims, 1, dim);
        at += length;
    }
    pb_int(&tensor, 1, 1);
    if (shape != NULL) pb_message(&tensor, 2, dims);
    pb_message(&type, 1, tensor);
    return type;
}

static void add_value(text *graph, unsigned field, const char *name, const char *shape) {
    text info = {0};
    pb_text(&info, 1, name);
    pb_message(&info, 2, float_type(shape));
    pb_message(graph, field, info);
}

void onnx_input(text *graph, const char *name, const char *shape) {
    add_value(graph, 11, name, shape);
}

void onnx_output(text *graph, const char *name) {
    add_value(graph, 12, name, NULL);
}

// --- initializers ---

void onnx_floats(text *graph, const char *name, int ndim, const int64_t *dims) {
    text tensor = {0}, raw = {0};
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) {
        pb_int(&tensor, 1, dims[d]);
        count *= dims[d];
    }
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)(i * 37 % 19 - 9) / 16.0f + (float)name[0] / 1024.0f;
        tare__text_append_n(&raw, (const char *)&value, sizeof value);
    }
    pb_int(&tensor, 2, 1);
    pb_text(&tensor, 8, name);
    pb_message(&tensor, 9, raw);
    pb_message(graph, 5, tensor);
}

void onnx_number(text *graph, const char *name, float value) {
    text tensor = {0}, raw = {0};
    tare__text_append_n(&raw, (const char *)&value, sizeof value);
    pb_int(&tensor, 2, 1);
    pb_text(&tensor, 8, name);
    pb_message(&tensor, 9, raw);
    pb_message(graph, 5, tensor);
}

void onnx_int64s(text *graph, const char *name, const int64_t *values, size_t count) {
    text tensor = {0};
    pb_int(&tensor, 1, (int64_t)count);
    pb_int(&tensor, 2, 7);
    for (size_t i = 0; i < count; i++) pb_int(&tensor, 7, values[i]);
    pb_text(&tensor, 8, name);
    pb_message(graph, 5, tensor);
}

void onnx_external(text *graph, const char *name, int64_t count, const char *location,
                   const char *offset, const char *length) {
    text tensor = {0};
    pb_int(&tensor, 1, count);
    pb_int(&tensor, 2, 1);
    pb_text(&tensor, 8, name);
    add_property(&tensor, 13, "location", location);
    if (offset != NULL) add_property(&tensor, 13, "offset", offset);
    if (length != NULL) add_property(&tensor, 13, "length", length);
    pb_int(&tensor, 14, 1);
    pb_message(graph, 5, tensor);
}

text onnx_model(text graph, int64_t opset) {
    text model = {0}, set = {0};
    pb_int(&model, 1, 8);
    pb_text(&model, 2, "pytorch");
    pb_message(&model, 7, graph);
    pb_int(&set, 2, opset);
    pb_message(&model, 8, set);
    return model;
}

// --- functions ---

text onnx_function(const char *name, const char *inputs, const char *outputs,
                   const char *attributes, int64_t opset) {
    text function = {0}, set = {0};
    pb_text(&function, 1, name);
    add_names(&function, 4, inputs);
    add_names(&function, 5, outputs);
    add_names(&function, 6, attributes);
    pb_text(&set, 1, "");
    pb_int(&set, 2, opset);
    if (opset != 0) pb_message(&function, 9, set);
    if (opset == 0) tare__text_release(&set);
    pb_text(&function, 10, "own");
    return function;
}

void onnx_function_node(text *function, text node) {
    pb_message(function, 7, node);
}

void onnx_function_default(text *function, const char *name, float value) {
    pb_message(function, 11, float_attribute(name, value));
}

void onnx_add_function(text *file, text function) {
    pb_message(file, 25, function);
}

text onnx_function_call(const char *function, const char *name, const char *inputs,
                        const char *outputs) {
    text node = onnx_node(function, name, inputs, outputs);
    pb_text(&node, 7, "own");
    return node;
}
