// SPDX-License-Identifier: Apache-2.0
// The text in a module's parentheses as torch prints it (extra_repr). A class lists its fields in
// `kind`.
#ifndef OPS_TEXT_DESCRIBE_H
#define OPS_TEXT_DESCRIBE_H

#include "ir/module.h"

typedef enum field_form {
    FIELD_END = 0,
    FIELD_PLAIN,      // the constructor's value alone: "3"
    FIELD_NAMED,      // "eps=1e-05"
    FIELD_FROM,       // named, with the value of the key `usual`; absent: "False"
    FIELD_UNLESS,     // named and without quotes, unless it (or each of its items) reads as `usual`
    FIELD_HAS_TENSOR, // "bias=True": is there a tensor of that name?
    FIELD_NO_TENSOR,  // "bias=False", where there is none
    FIELD_TENSOR,     // "scale=0.5": the value of a one-element tensor
    FIELD_WEIGHT_DTYPE,   // "dtype=torch.qint8"
    FIELD_WEIGHT_QSCHEME, // "qscheme=torch.per_tensor_affine", where the weight has one
} field_form;

typedef struct field {
    field_form form;
    const char *key;
    const char *usual; // what an absent value reads as
} field;

/// The `describe` function of classes whose `kind` is an array of fields, terminated by FIELD_END.
tare_status tare__describe_fields(const module *m, text *out, tare_error *err);

#endif
