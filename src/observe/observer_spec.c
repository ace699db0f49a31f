// SPDX-License-Identifier: Apache-2.0
// Specs: a class and its arguments, from setters or JSON, compared as torch's qconfig_equals does.
#include "observe/observer_spec.h"

#include <string.h>

#include "core/memory/alloc.h"

const char *tare__argument_kind_name(argument_kind kind) {
    static const char *const names[] = {"None",    "an int",    "a float",  "a bool",
                                        "a dtype", "a qscheme", "a string", "an observer"};
    return names[kind];
}

// --- creation and destruction ---

// Removes torch's packages: "torch.ao.quantization.observer.MinMaxObserver" becomes MinMaxObserver.
// Names of other packages stay qualified.
static const char *without_package(const char *name) {
    static const char *const packages[] = {"torch.ao.quantization.observer.",
                                           "torch.ao.quantization.fake_quantize.",
                                           "torch.ao.quantization."};
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (tare__starts_with(name, packages[i])) return name + strlen(packages[i]);
    return name;
}

tare_observer_spec *tare_observer_spec_create(const char *class_name) {
    tare_observer_spec *spec = tare__alloc_zeroed(1, sizeof *spec);
    if (spec == NULL) return NULL;
    atomic_init(&spec->refcount, 1);
    spec->class_name = tare__strdup(class_name != NULL ? without_package(class_name) : "");
    if (spec->class_name != NULL) return spec;
    tare__free(spec);
    return NULL;
}

tare_observer_spec *tare_observer_spec_retain(tare_observer_spec *spec) {
    if (spec != NULL) atomic_fetch_add_explicit(&spec->refcount, 1, memory_order_relaxed);
    return spec;
}

static void release_value(observer_argument *a) {
    if (a->kind == ARGUMENT_STRING) tare__free(a->as.string);
    if (a->kind == ARGUMENT_OBSERVER) tare_observer_spec_release(a->as.observer);
    a->kind = ARGUMENT_NONE;
}

void tare_observer_spec_release(tare_observer_spec *spec) {
    if (spec == NULL) return;
    if (atomic_fetch_sub_explicit(&spec->refcount, 1, memory_order_acq_rel) != 1) return;
    for (size_t i = 0; i < spec->count; i++) {
        release_value(&spec->arguments[i]);
        tare__free(spec->arguments[i].name);
    }
    tare__free(spec->arguments);
    tare__free(spec->class_name);
    tare_error_destroy(spec->first_error);
    tare__free(spec);
}

// --- setters ---

// Creates the error to fill in; false if an earlier error is recorded.
static bool begin_error(tare_observer_spec *spec) {
    if (spec->status != TARE_OK) return false;
    spec->first_error = tare_error_create();
    return true;
}

static void remember_out_of_memory(tare_observer_spec *spec) {
    if (begin_error(spec)) spec->status = tare__out_of_memory(spec->first_error);
}

static void remember_misuse(tare_observer_spec *spec, const char *name, const char *what) {
    if (begin_error(spec))
        spec->status = tare__fail(spec->first_error, TARE_INVALID_ARGUMENT, "%s: argument '%s' %s",
                                  spec->class_name, name, what);
}

static observer_argument *find_argument(const tare_observer_spec *spec, const char *name) {
    for (size_t i = 0; i < spec->count; i++)
        if (strcmp(spec->arguments[i].name, name) == 0) return &spec->arguments[i];
    return NULL;
}

const observer_argument *tare__observer_spec_find(const tare_observer_spec *spec,
                                                  const char *name) {
    return find_argument(spec, name);
}

static observer_argument *add_argument(tare_observer_spec *spec, const char *name) {
    if (!tare__grow((void **)&spec->arguments, &spec->capacity, spec->count,
                    sizeof *spec->arguments))
        return NULL;
    char *copy = tare__strdup(name);
    if (copy == NULL) return NULL;
    spec->arguments[spec->count] = (observer_argument){.name = copy};
    return &spec->arguments[spec->count++];
}

void tare__observer_spec_set(tare_observer_spec *spec, const char *name,
                             const observer_argument *v) {
    observer_argument copy = *v;
    if (v->kind == ARGUMENT_STRING && (copy.as.string = tare__strdup(v->as.string)) == NULL) {
        remember_out_of_memory(spec);
        return;
    }
    if (v->kind == ARGUMENT_OBSERVER) tare_observer_spec_retain(copy.as.observer);
    observer_argument *a = find_argument(spec, name);
    if (a == NULL) a = add_argument(spec, name);
    if (a == NULL) {
        release_value(&copy);
        remember_out_of_memory(spec);
        return;
    }
    release_value(a);
    copy.name = a->name;
    *a = copy;
}

tare_status tare__observer_spec_clone(const tare_observer_spec *spec, tare_observer_spec **out,
                                      tare_error *err) {
    TARE_TRY(tare__observer_spec_status(spec, err));
    tare_observer_spec *made = tare_observer_spec_create(spec->class_name);
    if (made == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < spec->count; i++)
        tare__observer_spec_set(made, spec->arguments[i].name, &spec->arguments[i]);
    const tare_status status = tare__observer_spec_status(made, err);
    if (status == TARE_OK)
        *out = made;
    else
        tare_observer_spec_release(made);
    return status;
}

static void set(tare_observer_spec *spec, const char *name, const observer_argument *v) {
    if (spec == NULL) return; // creation failed, which is reported when the spec is used
    if (name == NULL)
        remember_misuse(spec, "(null)", "must have a name");
    else
        tare__observer_spec_set(spec, name, v);
}

void tare_observer_spec_set_int(tare_observer_spec *spec, const char *name, int64_t v) {
    set(spec, name, &(observer_argument){.kind = ARGUMENT_INT, .as.integer = v});
}

void tare_observer_spec_set_double(tare_observer_spec *spec, const char *name, double v) {
    set(spec, name, &(observer_argument){.kind = ARGUMENT_DOUBLE, .as.real = v});
}

void tare_observer_spec_set_bool(tare_observer_spec *spec, const char *name, bool v) {
    set(spec, name, &(observer_argument){.kind = ARGUMENT_BOOL, .as.boolean = v});
}

void tare_observer_spec_set_dtype(tare_observer_spec *spec, const char *name, tare_dtype v) {
    if (*tare_dtype_name(v) != '\0')
        set(spec, name, &(observer_argument){.kind = ARGUMENT_DTYPE, .as.dtype = v});
    else if (spec != NULL)
        remember_misuse(spec, name != NULL ? name : "(null)", "is no dtype");
}

void tare_observer_spec_set_qscheme(tare_observer_spec *spec, const char *name, tare_qscheme v) {
    if (*tare_qscheme_name(v) != '\0')
        set(spec, name, &(observer_argument){.kind = ARGUMENT_QSCHEME, .as.qscheme = v});
    else if (spec != NULL)
        remember_misuse(spec, name != NULL ? name : "(null)", "is no qscheme");
}

void tare_observer_spec_set_observer(tare_observer_spec *spec, const char *name,
                                     tare_observer_spec *v) {
    if (v != NULL && v != spec)
        set(spec, name, &(observer_argument){.kind = ARGUMENT_OBSERVER, .as.observer = v});
    else if (spec != NULL)
        remember_misuse(spec, name != NULL ? name : "(null)", "must be another observer");
}

const char *tare__observer_spec_class(const tare_observer_spec *spec) {
    return spec->class_name;
}

tare_status tare__observer_spec_status(const tare_observer_spec *spec, tare_error *err) {
    if (spec->status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(err);
    if (spec->status != TARE_OK) tare__error_copy(err, spec->first_error);
    return spec->status;
}

// --- comparison ---

static bool as_number(const observer_argument *a, double *out) {
    switch (a->kind) {
    case ARGUMENT_INT:
        *out = (double)a->as.integer;
        return true;
    case ARGUMENT_DOUBLE:
        *out = a->as.real;
        return true;
    case ARGUMENT_BOOL:
        *out = a->as.boolean;
        return true;
    default:
        return false;
    }
}

// Compares like Python's ==: 1, 1.0 and True are equal.
static bool argument_equal(const observer_argument *a, const observer_argument *b) {
    double left = 0, right = 0;
    if (a->kind == ARGUMENT_INT && b->kind == ARGUMENT_INT) return a->as.integer == b->as.integer;
    if (as_number(a, &left) && as_number(b, &right)) return left == right;
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case ARGUMENT_DTYPE:
        return a->as.dtype == b->as.dtype;
    case ARGUMENT_QSCHEME:
        return a->as.qscheme == b->as.qscheme;
    case ARGUMENT_STRING:
        return strcmp(a->as.string, b->as.string) == 0;
    case ARGUMENT_OBSERVER:
        return tare__observer_spec_equal(a->as.observer, b->as.observer);
    default:
        return true;
    }
}

bool tare__observer_spec_equal(const tare_observer_spec *a, const tare_observer_spec *b) {
    if (a == b) return true;
    if (a == NULL || b == NULL || a->count != b->count) return false;
    if (strcmp(a->class_name, b->class_name) != 0) return false;
    for (size_t i = 0; i < a->count; i++) {
        const observer_argument *other = find_argument(b, a->arguments[i].name);
        if (other == NULL || !argument_equal(&a->arguments[i], other)) return false;
    }
    return true;
}

// --- text and JSON ---

void tare__argument_text(const observer_argument *a, text *out) {
    switch (a->kind) {
    case ARGUMENT_NONE:
        tare__text_append(out, "None");
        break;
    case ARGUMENT_INT:
        tare__text_printf(out, "%lld", (long long)a->as.integer);
        break;
    case ARGUMENT_DOUBLE:
        tare__text_double(out, a->as.real);
        break;
    case ARGUMENT_BOOL:
        tare__text_append(out, a->as.boolean ? "True" : "False");
        break;
    case ARGUMENT_DTYPE:
        tare__text_append(out, tare_dtype_name(a->as.dtype));
        break;
    case ARGUMENT_QSCHEME:
        tare__text_append(out, tare_qscheme_name(a->as.qscheme));
        break;
    case ARGUMENT_STRING:
        tare__text_quoted(out, a->as.string);
        break;
    case ARGUMENT_OBSERVER:
        tare__observer_spec_text(a->as.observer, out);
        break;
    }
}

void tare__observer_spec_text(const tare_observer_spec *spec, text *out) {
    tare__text_append(out, spec->class_name);
    tare__text_char(out, '(');
    for (size_t i = 0; i < spec->count; i++) {
        tare__text_printf(out, "%s%s=", i > 0 ? ", " : "", spec->arguments[i].name);
        tare__argument_text(&spec->arguments[i], out);
    }
    tare__text_char(out, ')');
}

// --- reading arguments in create ---

static const observer_argument *read_argument(const tare_observer_args *args, const char *name,
                                              argument_kind kind) {
    const observer_argument *a = find_argument(args->spec, name);
    if (a == NULL) return NULL;
    argument_use *use = &args->uses[a - args->spec->arguments];
    const bool is_wider = kind == ARGUMENT_DOUBLE && a->kind == ARGUMENT_INT;
    if (a->kind == kind || is_wider || a->kind == ARGUMENT_NONE)
        use->is_read = true;
    else
        use->wanted = kind;
    return use->is_read && a->kind != ARGUMENT_NONE && (a->kind == kind || is_wider) ? a : NULL;
}

bool tare_observer_args_int(const tare_observer_args *args, const char *name, int64_t *out) {
    const observer_argument *a = read_argument(args, name, ARGUMENT_INT);
    if (a != NULL) *out = a->as.integer;
    return a != NULL;
}

bool tare_observer_args_double(const tare_observer_args *args, const char *name, double *out) {
    const observer_argument *a = read_argument(args, name, ARGUMENT_DOUBLE);
    if (a != NULL) *out = a->kind == ARGUMENT_INT ? (double)a->as.integer : a->as.real;
    return a != NULL;
}

bool tare_observer_args_bool(const tare_observer_args *args, const char *name, bool *out) {
    const observer_argument *a = read_argument(args, name, ARGUMENT_BOOL);
    if (a != NULL) *out = a->as.boolean;
    return a != NULL;
}

bool tare_observer_args_dtype(const tare_observer_args *args, const char *name, tare_dtype *out) {
    const observer_argument *a = read_argument(args, name, ARGUMENT_DTYPE);
    if (a != NULL) *out = a->as.dtype;
    return a != NULL;
}

bool tare_observer_args_qscheme(const tare_observer_args *args, const char *name,
                                tare_qscheme *out) {
    const observer_argument *a = read_argument(args, name, ARGUMENT_QSCHEME);
    if (a != NULL) *out = a->as.qscheme;
    return a != NULL;
}
