// SPDX-License-Identifier: Apache-2.0
// Synonyms of functions: torch gives some functions several names and prints one of them. Other
// names of overloads in torch.ops.aten are kept as they are, and looked up by the usual name.
#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "ops/op.h"

// clang-format off
static const struct {
    const char *name, *printed;
} synonyms[] = {
    {"operator.__add__",                       "operator.add"},
    {"operator.__floordiv__",                  "operator.floordiv"},
    {"operator.__getitem__",                   "operator.getitem"},
    {"operator.__mul__",                       "operator.mul"},
    {"operator.__sub__",                       "operator.sub"},
    {"operator.__truediv__",                   "operator.truediv"},
    {"operator.__neg__",                       "operator.neg"},
    {"operator.__pow__",                       "operator.pow"},
    {"operator.__matmul__",                    "operator.matmul"},
    {"operator.__mod__",                       "operator.mod"},
    {"operator.__eq__",                        "operator.eq"},
    {"operator.__ne__",                        "operator.ne"},
    {"operator.__lt__",                        "operator.lt"},
    {"operator.__le__",                        "operator.le"},
    {"operator.__gt__",                        "operator.gt"},
    {"operator.__ge__",                        "operator.ge"},
    {"operator.__abs__",                       "operator.abs"},
    {"builtins.getattr",                       "getattr"},
    {"torch.nn.functional.linear",             "torch._C._nn.linear"},
    {"torch.nn.functional.conv1d",             "torch.conv1d"},
    {"torch.nn.functional.conv2d",             "torch.conv2d"},
    {"torch.nn.functional.conv3d",             "torch.conv3d"},
    {"torch.nn.functional.conv_transpose1d",   "torch.conv_transpose1d"},
    {"torch.nn.functional.conv_transpose2d",   "torch.conv_transpose2d"},
    {"torch.nn.functional.conv_transpose3d",   "torch.conv_transpose3d"},
    {"torch.nn.functional.avg_pool1d",         "torch.avg_pool1d"},
    {"torch.nn.functional.avg_pool2d",         "torch._C._nn.avg_pool2d"},
    {"torch.nn.functional.avg_pool3d",         "torch._C._nn.avg_pool3d"},
    {"torch.nn.functional.adaptive_avg_pool1d", "torch.adaptive_avg_pool1d"},
    {"torch.nn.functional.relu_",              "torch.relu_"},
    {"torch.nn.functional.hardtanh_",          "torch._C._nn.hardtanh_"},
    {"torch.nn.functional.leaky_relu_",        "torch._C._nn.leaky_relu_"},
    {"torch.nn.functional.elu_",               "torch._C._nn.elu_"},
    {"torch.nn.functional.gelu",               "torch._C._nn.gelu"},
    {"torch.nn.functional.softplus",           "torch._C._nn.softplus"},
    {"torch.nn.functional.logsigmoid",         "torch._C._nn.log_sigmoid"},
    {"torch.nn.functional.prelu",              "torch.prelu"},
    {"torch.nn.functional.pixel_shuffle",      "torch.pixel_shuffle"},
    {"torch.nn.functional.pixel_unshuffle",    "torch.pixel_unshuffle"},
    {"torch.nn.functional.channel_shuffle",    "torch.channel_shuffle"},
    {"torch.nn.functional.scaled_dot_product_attention",
                                               "torch._C._nn.scaled_dot_product_attention"},
    {"torch.split",                            "torch.functional.split"},
    {"torch.einsum",                           "torch.functional.einsum"},
};
// clang-format on

const char *tare__function_canonical(const char *name) {
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(synonyms[i].name, name) == 0) return synonyms[i].printed;
    return name;
}

// An overload in torch.ops.<namespace> is "add.Tensor"; any other function is the last part of its
// name.
const char *tare__function_base_name(const char *name) {
    const char *canonical = tare__function_canonical(name);
    if (tare__starts_with(canonical, "torch.ops.")) {
        const char *space = strchr(canonical + strlen("torch.ops."), '.');
        if (space != NULL) return space + 1;
    }
    const char *dot = strrchr(canonical, '.');
    return dot != NULL ? dot + 1 : canonical;
}

bool tare__is_overload(const char *function) {
    return tare__starts_with(function, "torch.ops.");
}

bool tare__is_in_place_overload(const char *function) {
    const char *overload = tare__is_overload(function) ? strrchr(function, '.') : NULL;
    return overload != NULL && overload - function > 2 && overload[-1] == '_' &&
           overload[-2] != '_';
}

const char *tare__aten_name(const char *function) {
    static const char prefix[] = "torch.ops.aten.";
    return tare__starts_with(function, prefix) ? function + strlen(prefix) : NULL;
}

// Functions of aten with two names, which torch.export keeps apart.
// clang-format off
static const struct {
    const char *name, *usual;
} aten_names[] = {
    {"absolute", "abs"}, {"arccos", "acos"}, {"arccosh", "acosh"}, {"arcsin", "asin"},
    {"arcsinh", "asinh"}, {"arctan", "atan"}, {"arctan2", "atan2"}, {"arctanh", "atanh"},
    {"clip", "clamp"}, {"divide", "div"}, {"fix", "trunc"}, {"ger", "outer"}, {"greater", "gt"},
    {"greater_equal", "ge"}, {"less", "lt"}, {"less_equal", "le"}, {"linalg_matmul", "matmul"},
    {"moveaxis", "movedim"}, {"multiply", "mul"}, {"native_channel_shuffle", "channel_shuffle"},
    {"negative", "neg"}, {"not_equal", "ne"}, {"row_stack", "vstack"}, {"sgn", "sign"},
    {"slice_copy", "slice"}, {"special_expit", "sigmoid"}, {"special_gammaln", "lgamma"},
    {"special_modified_bessel_i0", "i0"}, {"special_modified_bessel_i1", "special_i1"},
    {"special_psi", "digamma"}, {"subtract", "sub"}, {"trapz", "trapezoid"}, {"true_divide", "div"},
};
// clang-format on

static const char *usual_name(const char *chars, size_t length) {
    for (size_t i = 0; i < sizeof aten_names / sizeof *aten_names; i++)
        if (tare__is_word(chars, length, aten_names[i].name)) return aten_names[i].usual;
    return NULL;
}

// "torch.gt" for "torch.greater".
static bool find_usual_function(const char *function, op_name *out) {
    static const char prefix[] = "torch.";
    const size_t length = strlen(prefix);
    if (function == NULL || !tare__starts_with(function, prefix)) return false;
    const char *usual = usual_name(function + length, strlen(function) - length);
    return usual != NULL && snprintf(out->text, sizeof out->text, "torch.%s", usual) > 0;
}

bool tare__overload_usual_name(const char *function, op_name *out) {
    const char *name = tare__aten_name(function);
    if (name == NULL) return find_usual_function(function, out);
    const size_t mark = tare__is_in_place_overload(function) ? 1 : 0;
    size_t length = strcspn(name, ".");
    static const char special[] = "special_"; // of torch.special, which has most names twice
    const char *usual = usual_name(name, length - mark);
    if (usual == NULL && tare__starts_with(name, special)) {
        name += strlen(special);
        length -= strlen(special);
    } else if (usual == NULL && mark == 0) {
        return false;
    }
    const int written =
        usual != NULL
            ? snprintf(out->text, sizeof out->text, "torch.ops.aten.%s%s", usual, name + length)
            : snprintf(out->text, sizeof out->text, "torch.ops.aten.%.*s%s", (int)(length - mark),
                       name, name + length);
    return written > 0 && (size_t)written < sizeof out->text;
}
