// SPDX-License-Identifier: Apache-2.0
// Observer modules: created from specs, run like other modules, written to and read from model
// files.
#include "observe/observer.h"

#include <assert.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "core/tensor/map.h"
#include "observe/classes/builtin.h"
#include "observe/fake_quantize.h"
#include "observe/observer_spec.h"
#include "ops/call.h"

// A module's copy of a user's class, which allows the module to outlive the context.
typedef struct user_class {
    module_class row; // first member: freeing the row frees the block
    tare_observer_class class;
    atomic_size_t refcount;
} user_class;

// The state of an observer module.
typedef struct instance {
    const tare_observer_class *class;
    tare_observer_info info;
    void *state;
    user_class *own;   // NULL: a built-in class
    module *companion; // sees the same; NULL: none
} instance;

// --- classes ---

static const tare_observer_class *class_at(const observer_classes *classes, size_t index) {
    size_t builtin_count = 0;
    while (tare__builtin_observer_at(builtin_count) != NULL) builtin_count++;
    if (index < builtin_count) return tare__builtin_observer_at(index);
    const size_t user = index - builtin_count;
    return classes != NULL && user < classes->user_count ? classes->user[user] : NULL;
}

const tare_observer_class *tare__observer_class_find(const observer_classes *classes,
                                                     const char *name) {
    for (size_t i = 0;; i++) {
        const tare_observer_class *class = class_at(classes, i);
        if (class == NULL || strcmp(class->name, name) == 0) return class;
    }
}

const char *tare__observer_class_name_at(const void *classes, size_t index) {
    const tare_observer_class *class = class_at(classes, index);
    return class != NULL ? class->name : NULL;
}

bool tare__observer_class_is_equalizer(const tare_observer_class *class, bool *is_input) {
    *is_input = class == &tare__input_equalization_observer;
    return *is_input || class == &tare__weight_equalization_observer;
}

bool tare__observer_class_is_fake_quantize(const tare_observer_class *class) {
    return tare__builtin_is_fake_quantize(class);
}

// --- instances ---

static const char *argument_name_at(const void *class, size_t index) {
    const char *const *arguments = ((const tare_observer_class *)class)->arguments;
    return arguments != NULL ? arguments[index] : NULL;
}

tare_status tare__observer_class_check_argument(const tare_observer_class *class, const char *name,
                                                tare_error *err) {
    const char *known = NULL;
    for (size_t i = 0; (known = argument_name_at(class, i)) != NULL; i++)
        if (strcmp(known, name) == 0) return TARE_OK;
    const tare_status status =
        tare__fail(err, TARE_INVALID_ARGUMENT, "%s has no argument '%s'", class->name, name);
    if (tare_nearest_name(name, argument_name_at, class) != NULL)
        return tare__suggest(err, status, name, argument_name_at, class);
    text all = {0};
    for (size_t i = 0; (known = argument_name_at(class, i)) != NULL; i++)
        tare__text_printf(&all, "%s%s", i > 0 ? ", " : "its arguments are ", known);
    tare__hint(err, status, "%s", all.length > 0 ? tare__text_chars(&all) : "it takes none");
    tare__text_release(&all);
    return status;
}

static tare_status check_known(const tare_observer_class *class, const tare_observer_spec *spec,
                               tare_error *err) {
    for (size_t i = 0; i < spec->count; i++)
        TARE_TRY(tare__observer_class_check_argument(class, spec->arguments[i].name, err));
    return TARE_OK;
}

// Refuses arguments that the class did not read, so that no setting is silently ignored.
static tare_status check_read(const tare_observer_class *class, const tare_observer_args *args,
                              tare_error *err) {
    for (size_t i = 0; i < args->spec->count; i++) {
        const observer_argument *a = &args->spec->arguments[i];
        if (args->uses[i].is_read || a->kind == ARGUMENT_NONE) continue;
        const argument_kind wanted = args->uses[i].wanted;
        text found = {0};
        tare__argument_text(a, &found);
        const tare_status status =
            wanted != ARGUMENT_NONE
                ? tare__fail(err, TARE_INVALID_ARGUMENT, "%s: argument '%s' must be %s, found %s",
                             class->name, a->name, tare__argument_kind_name(wanted),
                             tare__text_chars(&found))
                : tare__fail(err, TARE_INVALID_ARGUMENT, "%s makes no use of argument '%s' = %s",
                             class->name, a->name, tare__text_chars(&found));
        tare__text_release(&found);
        return status;
    }
    return TARE_OK;
}

static tare_status create_state(const tare_observer_class *class, const tare_observer_args *args,
                                instance *out, tare_error *err) {
    instance made = {.class = class, .info = {.struct_size = sizeof made.info}};
    const tare_status status = class->create(class->user, args, &made.state, &made.info, err);
    if (status != TARE_OK) return tare__at(err, status, "%s", class->name);
    tare_status checked = check_read(class, args, err);
    if (checked == TARE_OK) {
        checked = tare__observer_info_check(&made.info, err);
        tare__at(err, checked, "%s", class->name);
    }
    if (checked != TARE_OK) {
        class->destroy(made.state);
        return checked;
    }
    *out = made;
    return TARE_OK;
}

// Creates the state, and fills class and info.
static tare_status make_instance(const tare_observer_class *class, const tare_observer_spec *spec,
                                 instance *out, tare_error *err) {
    TARE_TRY(tare__observer_spec_status(spec, err));
    TARE_TRY(check_known(class, spec, err));
    argument_use *uses = tare__alloc_zeroed(spec->count + 1, sizeof *uses);
    if (uses == NULL) return tare__out_of_memory(err);
    const tare_observer_args args = {spec, uses};
    const tare_status status = create_state(class, &args, out, err);
    tare__free(uses);
    return status;
}

static void release_user_class(user_class *own) {
    if (own == NULL) return;
    if (atomic_fetch_sub_explicit(&own->refcount, 1, memory_order_acq_rel) == 1) tare__free(own);
}

static void destroy_instance(void *state) {
    instance *i = state;
    if (i == NULL) return;
    i->class->destroy(i->state);
    release_user_class(i->own);
    tare__module_release(i->companion);
    tare__free(i);
}

static tare_status clone_instance(const void *state, void **out, tare_error *err) {
    const instance *i = state;
    instance *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *made = *i;
    made->companion = NULL;
    tare_status status = TARE_OK;
    if (i->companion != NULL) status = tare__module_clone(i->companion, &made->companion, err);
    if (status == TARE_OK) status = i->class->clone(i->state, &made->state, err);
    if (status != TARE_OK) {
        tare__module_release(made->companion);
        tare__free(made);
        return tare__at(err, status, "%s", i->class->name);
    }
    if (i->own != NULL) atomic_fetch_add_explicit(&i->own->refcount, 1, memory_order_relaxed);
    *out = made;
    return TARE_OK;
}

// --- functions of the module class ---

static tare_status describe(const module *m, text *out, tare_error *err) {
    const instance *i = m->state;
    if (i == NULL || i->class->describe == NULL) return TARE_OK;
    TARE_TRY(i->class->describe(i->state, tare__text_append_writer, out, err));
    return tare__text_status(out, err);
}

static tare_status name_state(const module *m, text *out, tare_error *err) {
    map tensors = {0};
    if (m->state == NULL) return TARE_OK;
    const tare_status status = tare__observer_state_io.save(m, &tensors, err);
    for (size_t i = 0; i < tensors.count; i++)
        tare__text_printf(out, "%s%s", i > 0 ? "|" : "", tensors.entries[i].key);
    tare__tensor_map_release(&tensors);
    return status == TARE_OK ? tare__text_status(out, err) : status;
}

// An observer returns its input, so the result is the same tensor.
static tare_status shape(op_call *call) {
    if (call->arg_count != 1 || call->args[0].kind != VALUE_TENSOR)
        return tare__call_fail(call, "an observer takes one tensor");
    call->result =
        (value){.kind = VALUE_TENSOR, .as.tensor = tare_tensor_retain(call->args[0].as.tensor)};
    return TARE_OK;
}

static tare_status forward(op_call *call) {
    module *own = tare__call_own(call, call->module);
    if (own == NULL) return TARE_OK;
    const tare_status status = tare__observer_update(own, call->args[0].as.tensor, call->err);
    return status == TARE_OK ? TARE_OK
                             : tare__at(call->err, status, "node '%s'",
                                        call->node_name != NULL ? call->node_name : "");
}

static const module_class rows[] = {
#define ROW(descriptor, package, class_name, are_items)                                            \
    {.name = package class_name,                                                                   \
     .print_name = class_name,                                                                     \
     .role = ROLE_OBSERVER,                                                                        \
     .describes_items = are_items,                                                                 \
     .describe = describe,                                                                         \
     .shape = shape,                                                                               \
     .forward = forward,                                                                           \
     .clone_state = clone_instance,                                                                \
     .destroy_state = destroy_instance,                                                            \
     .name_state = name_state,                                                                     \
     .kind = &descriptor},
#define FAKE_QUANTIZER(descriptor, class_name)                                                     \
    {.name = "torch.ao.quantization." class_name,                                                  \
     .print_name = class_name,                                                                     \
     .role = ROLE_OBSERVER,                                                                        \
     .describe = tare__fake_quantize_describe,                                                     \
     .shape = tare__fake_quantize_shape,                                                           \
     .forward = tare__fake_quantize_forward,                                                       \
     .check = tare__fake_quantize_module_check,                                                    \
     .kind = &descriptor},
#define OBSERVER(descriptor, class_name)                                                           \
    ROW(descriptor, "torch.ao.quantization.", class_name, false)
#define EQUALIZER(descriptor, class_name)                                                          \
    ROW(descriptor, "torch.ao.quantization.", class_name, true)
#define OWN_OBSERVER(descriptor, class_name) ROW(descriptor, "", class_name, false)
#include "observe/classes/builtin.def"
#undef FAKE_QUANTIZER
#undef OBSERVER
};
const class_table tare__observer_class_table = {rows, sizeof rows / sizeof *rows};

void tare__observer_module_class(const tare_observer_class *class, module_class *out) {
    *out = (module_class){.name = class->name,
                          .print_name = class->name,
                          .role = ROLE_OBSERVER,
                          .describe = describe,
                          .shape = shape,
                          .forward = forward,
                          .clone_state = clone_instance,
                          .destroy_state = destroy_instance,
                          .name_state = name_state,
                          .kind = class};
}

static const module_class *builtin_row(const tare_observer_class *class) {
    for (size_t i = 0; i < tare__observer_class_table.count; i++)
        if (rows[i].kind == class) return &rows[i];
    return NULL;
}

static user_class *copy_user_class(const tare_observer_class *class) {
    user_class *own = tare__alloc_zeroed(1, sizeof *own);
    if (own == NULL) return NULL;
    atomic_init(&own->refcount, 1);
    own->class = *class;
    tare__observer_module_class(&own->class, &own->row);
    return own;
}

tare_status tare__observer_class_copy(const tare_observer_class *user,
                                      const tare_observer_class **class, module_class **row,
                                      tare_error *err) {
    tare_observer_class known = {0};
    if (user != NULL) tare__struct_copy(&known, sizeof known, user);
    known.struct_size = sizeof known;
    if (known.name == NULL || known.create == NULL || known.destroy == NULL || known.clone == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "an observer class needs a name, create, destroy and clone");
    user_class *made = copy_user_class(&known);
    if (made == NULL) return tare__out_of_memory(err);
    *class = &made->class;
    *row = &made->row;
    return TARE_OK;
}

static value config_value(const observer_argument *a) {
    switch (a->kind) {
    case ARGUMENT_INT:
        return tare__int(a->as.integer);
    case ARGUMENT_DOUBLE:
        return tare__float(a->as.real);
    case ARGUMENT_BOOL:
        return tare__bool(a->as.boolean);
    case ARGUMENT_DTYPE:
        return tare__dtype_value(a->as.dtype);
    case ARGUMENT_QSCHEME:
        return (value){.kind = VALUE_QSCHEME, .as.qscheme = a->as.qscheme};
    case ARGUMENT_STRING:
        return tare__string(a->as.string);
    default:
        return tare__none(); // no class reads an observer, so check_read refused it
    }
}

static tare_status make_module(const module_class *row, const tare_observer_spec *spec,
                               module **out, tare_error *err) {
    module *m = NULL;
    TARE_TRY(tare__module_create(row, &m, err));
    for (size_t i = 0; i < spec->count; i++) {
        const value v = config_value(&spec->arguments[i]);
        const tare_status status = tare__module_set_config(m, spec->arguments[i].name, &v, err);
        if (status == TARE_OK) continue;
        tare__module_release(m);
        return status;
    }
    *out = m;
    return TARE_OK;
}

// Moves the contents of `made` to the module.
static tare_status attach(module *m, const instance *made, tare_error *err) {
    instance *kept = tare__alloc_zeroed(1, sizeof *kept);
    if (kept == NULL) return tare__out_of_memory(err);
    *kept = *made;
    destroy_instance(m->state);
    m->state = kept;
    return TARE_OK;
}

static tare_status find_class(const observer_classes *classes, const tare_observer_spec *spec,
                              const tare_observer_class **out, tare_error *err) {
    TARE_TRY(tare__observer_spec_status(spec, err));
    *out = tare__observer_class_find(classes, spec->class_name);
    if (*out != NULL) return TARE_OK;
    const tare_status status =
        tare__fail(err, TARE_NOT_FOUND, "there is no observer class '%s'", spec->class_name);
    return tare__suggest(err, status, spec->class_name, tare__observer_class_name_at, classes);
}

static tare_status instantiate(const tare_observer_class *class, const tare_observer_spec *spec,
                               user_class *own, module **out, tare_error *err) {
    instance made = {0};
    module *m = NULL;
    const module_class *row = own != NULL ? &own->row : builtin_row(class);
    TARE_TRY(make_instance(own != NULL ? &own->class : class, spec, &made, err));
    made.own = own;
    tare_status status = make_module(row, spec, &m, err);
    if (status == TARE_OK) status = attach(m, &made, err);
    if (status != TARE_OK) {
        made.class->destroy(made.state);
        tare__module_release(m);
        return status;
    }
    *out = m;
    return TARE_OK;
}

tare_status tare__observer_spec_instantiate(const observer_classes *classes,
                                            const tare_observer_spec *spec, module **out,
                                            tare_error *err) {
    const tare_observer_class *class = NULL;
    user_class *own = NULL;
    TARE_TRY(find_class(classes, spec, &class, err));
    if (tare__fake_quantize_kind(class) != NULL) {
        TARE_TRY(check_known(class, spec, err));
        return tare__fake_quantize_create(classes, builtin_row(class), spec, out, err);
    }
    if (builtin_row(class) == NULL && (own = copy_user_class(class)) == NULL)
        return tare__out_of_memory(err);
    const tare_status status = instantiate(class, spec, own, out, err);
    if (status != TARE_OK) release_user_class(own);
    return status;
}

tare_status tare__observer_spec_info(const observer_classes *classes,
                                     const tare_observer_spec *spec, tare_observer_info *out,
                                     tare_error *err) {
    const tare_observer_class *class = NULL;
    instance made = {0};
    TARE_TRY(find_class(classes, spec, &class, err));
    if (tare__fake_quantize_kind(class) != NULL) {
        TARE_TRY(check_known(class, spec, err));
        return tare__fake_quantize_info(classes, class, spec, out, err);
    }
    TARE_TRY(make_instance(class, spec, &made, err));
    class->destroy(made.state);
    *out = made.info;
    return TARE_OK;
}

// --- statistics and parameters ---

static instance *instance_of(const module *m) {
    assert(m->class->role == ROLE_OBSERVER && m->state != NULL);
    return m->state;
}

// The observer that collects statistics: the one inside a fake quantizer, or the module itself.
static const module *watching(const module *m) {
    return tare__fake_quantize_kind_of(m) != NULL ? tare__fake_quantize_observer(m) : m;
}

const tare_observer_info *tare__observer_info(const module *m) {
    return &instance_of(watching(m))->info;
}

const tare_observer_class *tare__observer_class_of(const module *m) {
    return m->class->kind;
}

void *tare__observer_state(const module *m) {
    return instance_of(m)->state;
}

tare_status tare__observer_update(module *m, const tare_tensor *x, tare_error *err) {
    if (tare__fake_quantize_kind_of(m) != NULL) return tare__fake_quantize_update(m, x, err);
    const instance *i = instance_of(m);
    if (i->companion != NULL) TARE_TRY(tare__observer_update(i->companion, x, err));
    if (i->class->update == NULL) return TARE_OK;
    const tare_status status = i->class->update(i->state, x, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", i->class->name);
}

tare_status tare__observer_update_by(module *m, const tare_tensor *x, const float_scan *scan,
                                     tare_error *err) {
    const scan_update update = tare__builtin_scan_update(m->class->kind);
    if (update == NULL) return tare__observer_update(m, x, err);
    const instance *i = instance_of(m);
    if (i->companion != NULL) TARE_TRY(tare__observer_update_by(i->companion, x, scan, err));
    const tare_status status = update(i->state, x, scan, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", i->class->name);
}

tare_status tare__take_qparams(void *sink, int64_t count, const double *scale,
                               const double *zero_point, tare_error *err) {
    qparams_wish *wish = sink;
    const tare_observer_info *info = wish->info;
    if (count < 1 || scale == NULL || zero_point == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "proposed no parameters");
    const tare_qscheme scheme =
        info->qscheme != TARE_QSCHEME_UNSET ? info->qscheme : TARE_PER_TENSOR_AFFINE;
    qparams *made =
        tare__qparams_create(scheme, info->dtype, info->channel_axis, count, scale, zero_point);
    if (made == NULL) return tare__out_of_memory(err);
    if (info->has_range) {
        made->quant_min = info->quant_min;
        made->quant_max = info->quant_max;
    }
    tare__qparams_release(wish->made);
    wish->made = made;
    return TARE_OK;
}

tare_status tare__observer_qparams(const module *m, const qparams **out, bool *is_calibrated,
                                   tare_error *err) {
    if (tare__fake_quantize_kind_of(m) != NULL)
        return tare__fake_quantize_qparams(m, out, is_calibrated, err);
    const instance *i = instance_of(m);
    if (i->class->qparams == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "calculate_qparams should not be called for %s", i->class->name);
    qparams_wish wish = {.info = &i->info};
    bool calibrated = true;
    tare_status status = i->class->qparams(i->state, tare__take_qparams, &wish, &calibrated, err);
    if (status == TARE_OK && wish.made == NULL)
        status = tare__fail(err, TARE_INVALID_ARGUMENT, "proposed no parameters");
    if (status != TARE_OK) {
        tare__qparams_release(wish.made);
        return tare__at(err, status, "%s", i->class->name);
    }
    *out = wish.made;
    *is_calibrated = calibrated;
    return TARE_OK;
}

static const tare_observer_class *plain_class(const module *m) {
    return tare__fake_quantize_kind_of(m) == NULL ? instance_of(m)->class : NULL;
}

bool tare__observer_watches(const module *m) {
    const tare_observer_class *class = plain_class(m);
    return class == NULL || class->update != NULL;
}

bool tare__observer_ignores_order(const module *m) {
    const tare_observer_class *class = plain_class(m);
    return class != NULL && class->ignores_order;
}

bool tare__observer_is_idempotent(const module *m) {
    const tare_observer_class *class = plain_class(m);
    return class != NULL && class->is_idempotent;
}

bool tare__observer_is_mergeable(const module *m) {
    const tare_observer_class *class = instance_of(m)->class;
    return class->update == NULL || class->merge != NULL;
}

const module *tare__observer_companion(const module *m) {
    return tare__fake_quantize_kind_of(m) == NULL ? instance_of(m)->companion : NULL;
}

void tare__observer_take_companion(module *m, module *companion) {
    instance *i = instance_of(m);
    tare__module_release(i->companion);
    i->companion = companion;
}

void tare__observer_swap(module *a, module *b) {
    instance *i = instance_of(a), *other = instance_of(b);
    void *state = i->state;
    module *companion = i->companion;
    i->state = other->state;
    i->companion = other->companion;
    other->state = state;
    other->companion = companion;
}

tare_status tare__observer_merge(module *into, const module *from, tare_error *err) {
    const instance *i = instance_of(watching(into)), *other = instance_of(watching(from));
    if (strcmp(i->class->name, other->class->name) != 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s cannot take over the statistics of %s",
                          i->class->name, other->class->name);
    if (i->class->update == NULL) return TARE_OK;
    if (i->class->merge == NULL)
        return tare__fail(err, TARE_UNSUPPORTED,
                          "the statistics of two %ss cannot be merged exactly", i->class->name);
    if (i->companion != NULL && other->companion != NULL)
        TARE_TRY(tare__observer_merge(i->companion, other->companion, err));
    const tare_status status = i->class->merge(i->state, other->state, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", i->class->name);
}

// --- files ---

// Copies the tensor, which the class lends only for the call.
static tare_status put_tensor(void *io, const char *name, const tare_tensor *t, tare_error *err) {
    tare_tensor *copy = NULL;
    TARE_TRY(tare__tensor_copy(t, &copy, err));
    if (!tare__map_has(io, name) && tare__map_set(io, name, copy)) return TARE_OK;
    tare_tensor_release(copy);
    return tare__map_has(io, name)
               ? tare__fail(err, TARE_INVALID_ARGUMENT, "saved '%s' twice", name)
               : tare__out_of_memory(err);
}

static const tare_tensor *get_tensor(void *io, const char *name) {
    return tare__map_get(io, name);
}

static tare_status save_state(const module *m, map *tensors, tare_error *err) {
    if (m->class->role != ROLE_OBSERVER)
        return tare__fail(err, TARE_UNSUPPORTED, "only observers have a state to write");
    if (tare__fake_quantize_kind_of(m) != NULL) return TARE_OK; // their tensors are of the module
    const instance *i = instance_of(m);
    if (i->class->save == NULL) return TARE_OK;
    const tare_status status = i->class->save(i->state, put_tensor, tensors, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", i->class->name);
}

static observer_argument config_argument(const value *v) {
    switch (v->kind) {
    case VALUE_BOOL:
        return (observer_argument){.kind = ARGUMENT_BOOL, .as.boolean = v->as.boolean};
    case VALUE_INT:
        return (observer_argument){.kind = ARGUMENT_INT, .as.integer = v->as.integer};
    case VALUE_FLOAT:
        return (observer_argument){.kind = ARGUMENT_DOUBLE, .as.real = v->as.real};
    case VALUE_DTYPE:
        return (observer_argument){.kind = ARGUMENT_DTYPE, .as.dtype = v->as.dtype};
    case VALUE_QSCHEME:
        return (observer_argument){.kind = ARGUMENT_QSCHEME, .as.qscheme = v->as.qscheme};
    case VALUE_STRING: // lent: setting copies it
        return (observer_argument){.kind = ARGUMENT_STRING, .as.string = (char *)v->as.text};
    default:
        return (observer_argument){.kind = ARGUMENT_NONE};
    }
}

tare_status tare__observer_spec_of(const module *m, tare_observer_spec **out, tare_error *err) {
    const tare_observer_class *class = m->class->kind;
    tare_observer_spec *spec = tare_observer_spec_create(class->name);
    if (spec == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < m->config_count; i++) {
        const value *v = &m->config[i].value;
        const observer_argument a = config_argument(v);
        if (a.kind == ARGUMENT_NONE && v->kind != VALUE_NONE) {
            tare_observer_spec_release(spec);
            return tare__fail(err, TARE_MALFORMED_FILE, "%s: argument '%s' is of no usable type",
                              class->name, m->config[i].name);
        }
        tare__observer_spec_set(spec, m->config[i].name, &a);
    }
    *out = spec;
    return TARE_OK;
}

// Without tensors in the file the observer is as created, with no data.
static tare_status restore(instance *i, const map *tensors, tare_error *err) {
    if (tensors->count == 0) return TARE_OK;
    if (i->class->load == NULL)
        return tare__fail(err, TARE_MALFORMED_FILE, "%s has no state", i->class->name);
    const tare_status status = i->class->load(i->state, get_tensor, (void *)tensors, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", i->class->name);
}

tare_status tare__observer_load(module *m, const map *tensors, tare_error *err) {
    return restore(instance_of(m), tensors, err);
}

static tare_status load_state(module *m, const map *tensors, tare_error *err) {
    if (m->class->role != ROLE_OBSERVER || m->class->kind == NULL)
        return tare__fail(err, TARE_MALFORMED_FILE, "class '%s' has no state", m->class->name);
    tare_observer_spec *spec = NULL;
    instance made = {0};
    TARE_TRY(tare__observer_spec_of(m, &spec, err));
    tare_status status = make_instance(m->class->kind, spec, &made, err);
    tare_observer_spec_release(spec);
    TARE_TRY(status);
    status = restore(&made, tensors, err);
    if (status == TARE_OK) status = attach(m, &made, err);
    if (status != TARE_OK) made.class->destroy(made.state);
    return status;
}

const model_state_io tare__observer_state_io = {.save = save_state, .load = load_state};
