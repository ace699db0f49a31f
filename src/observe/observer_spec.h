// SPDX-License-Identifier: Apache-2.0
// The contents of a spec: a class name and arguments of several types.
#ifndef OBSERVE_OBSERVER_SPEC_H
#define OBSERVE_OBSERVER_SPEC_H

#include <stdatomic.h>

#include "observe/observer.h"

typedef enum argument_kind {
    ARGUMENT_NONE = 0, // Python's None: the class treats it as not given
    ARGUMENT_INT,
    ARGUMENT_DOUBLE,
    ARGUMENT_BOOL,
    ARGUMENT_DTYPE,
    ARGUMENT_QSCHEME,
    ARGUMENT_STRING,
    ARGUMENT_OBSERVER,
} argument_kind;
const char *tare__argument_kind_name(argument_kind kind); // "an int"

typedef struct observer_argument {
    char *name;
    argument_kind kind;
    union {
        int64_t integer;
        double real;
        bool boolean;
        tare_dtype dtype;
        tare_qscheme qscheme;
        char *string;
        tare_observer_spec *observer;
    } as;
} observer_argument;

struct tare_observer_spec {
    atomic_size_t refcount;
    char *class_name;
    observer_argument *arguments; // in the order in which they were set
    size_t count, capacity;
    tare_status status;      // of the first setter that failed
    tare_error *first_error; // its message; NULL if out of memory
};

/// Sets an argument as the public setters do. The value's string is copied, its observer retained.
void tare__observer_spec_set(tare_observer_spec *spec, const char *name,
                             const observer_argument *v);
/// The argument with this name, lent; NULL if it was not given.
const observer_argument *tare__observer_spec_find(const tare_observer_spec *spec, const char *name);
/// A copy that can be changed.
tare_status tare__observer_spec_clone(const tare_observer_spec *spec, tare_observer_spec **out,
                                      tare_error *err);
void tare__argument_text(const observer_argument *a, text *out); // as Python prints it

/// The arguments passed to a class's create. Each has a flag that it was read: arguments that are
/// not read are refused.
typedef struct argument_use {
    bool is_read;
    argument_kind wanted; // type that the last reader with another type expected
} argument_use;
struct tare_observer_args {
    const tare_observer_spec *spec;
    argument_use *uses; // [spec->count]
};

#endif
