// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions, those in three dimensions, with reflecting padding, without a batch, and
// weights with zero points: every kernel row gives the bits of the plain sum and tare__requantize.
#include "support/layer_case.h"
#include "support/test.h"

typedef struct form {
    int dims;
    bool is_transposed, reflects, has_no_batch, has_zero_points, adds;
    int64_t batch, ins, outs, groups;
    int64_t in[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], pad[SPATIAL],
        output_padding[SPATIAL];
} form;

static conv_geometry geometry_of(const form *f) {
    conv_geometry g = {.dims = f->dims,
                       .is_transposed = f->is_transposed,
                       .reflects = f->reflects,
                       .groups = f->groups,
                       .in_channels = f->ins,
                       .out_channels = f->outs};
    for (int d = 0; d < SPATIAL; d++) {
        const bool is_given = d >= SPATIAL - f->dims;
        g.kernel[d] = is_given ? f->kernel[d] : 1;
        g.stride[d] = is_given ? f->stride[d] : 1;
        g.dilation[d] = is_given ? f->dilation[d] : 1;
        g.pad_before[d] = g.pad_after[d] = is_given ? f->pad[d] : 0;
        g.output_padding[d] = is_given ? f->output_padding[d] : 0;
    }
    return g;
}

// The shape of a tensor of images; returns its rank.
static int shape_of(const form *f, int64_t channels, const int64_t *sizes, int64_t *shape) {
    int ndim = 0;
    if (!f->has_no_batch) shape[ndim++] = f->batch;
    shape[ndim++] = channels;
    for (int d = SPATIAL - f->dims; d < SPATIAL; d++) shape[ndim++] = sizes[d];
    return ndim;
}

// --- the plain sum ---

typedef struct sums {
    const layer_case *c;
    const conv_geometry *g;
    int64_t in[SPATIAL], out[SPATIAL];
    int64_t *sum; // [N][O][..]
} sums;

static int64_t mirror(int64_t at, int64_t size) {
    return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
}

// Where kernel element k and position `at` meet along a dimension, in what is summed up: for a
// transposed convolution, of the input the output; else, of the output the input; -1: nowhere.
static int64_t other_of(const sums *s, int d, int64_t at, int64_t k) {
    const conv_geometry *g = s->g;
    const int64_t size = g->is_transposed ? s->out[d] : s->in[d];
    int64_t other = at * g->stride[d] - g->pad_before[d] + k * g->dilation[d];
    if (g->reflects) other = mirror(other, size);
    return other >= 0 && other < size ? other : -1;
}

static void add_product(const sums *s, int64_t n, int64_t o, int64_t i, int64_t in, int64_t k,
                        int64_t out) {
    const conv_geometry *g = s->g;
    const layer_case *c = s->c;
    const int64_t ins = g->in_channels / g->groups, outs = g->out_channels / g->groups;
    const int64_t kernel = g->kernel[0] * g->kernel[1] * g->kernel[2];
    const int64_t plane = s->in[0] * s->in[1] * s->in[2];
    const int64_t of_group = o / outs * ins + i; // the input's channel
    const int64_t w = (g->is_transposed ? of_group * outs + o % outs : o * ins + i) * kernel + k;
    const qparams *q = c->weight->q;
    const int64_t x = tare__load_quantized(c->x, (n * g->in_channels + of_group) * plane + in) -
                      (int64_t)c->x->q->zero_point[0];
    s->sum[(n * g->out_channels + o) * s->out[0] * s->out[1] * s->out[2] + out] +=
        x * (tare__load_quantized(c->weight, w) - (int64_t)q->zero_point[q->count == 1 ? 0 : o]);
}

// All channels of position p and of the element of the kernel.
static void add_channels(const sums *s, const int64_t *p, const int64_t *k) {
    const conv_geometry *g = s->g;
    int64_t from = 0, to = 0, element = 0;
    for (int d = 0; d < SPATIAL; d++) {
        const int64_t other = other_of(s, d, p[d], k[d]);
        if (other < 0) return;
        from = from * s->in[d] + (g->is_transposed ? p[d] : other);
        to = to * s->out[d] + (g->is_transposed ? other : p[d]);
        element = element * g->kernel[d] + k[d];
    }
    const int64_t outs = s->out[0] * s->out[1] * s->out[2];
    const int64_t batch = s->c->y->count / outs / g->out_channels;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t o = 0; o < g->out_channels; o++)
            for (int64_t i = 0; i < g->in_channels / g->groups; i++)
                add_product(s, n, o, i, from, element, to);
}

static void add_up(const sums *s) {
    const conv_geometry *g = s->g;
    const int64_t *size = g->is_transposed ? s->in : s->out;
    for (int64_t p = 0; p < size[0] * size[1] * size[2]; p++)
        for (int64_t k = 0; k < g->kernel[0] * g->kernel[1] * g->kernel[2]; k++) {
            const int64_t at[] = {p / size[2] / size[1], p / size[2] % size[1], p % size[2]};
            const int64_t element[] = {k / g->kernel[2] / g->kernel[1],
                                       k / g->kernel[2] % g->kernel[1], k % g->kernel[2]};
            add_channels(s, at, element);
        }
}

// --- checking ---

static void check_levels(layer_case *c, const sums *s) {
    const int64_t pixels = s->out[0] * s->out[1] * s->out[2];
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        qlayer *layer = NULL;
        CHECK_OK(tare__qlayer_create(&c->layer, c->x, c->y, (isa_level)isa, &layer, NULL));
        assert_non_null(layer);
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            run_layer_case(c, layer, threads, NULL);
            for (int64_t i = 0; i < c->y->count; i++)
                check_layer_integer(c, i / pixels % s->g->out_channels, s->sum[i], i,
                                    tare__qlayer_form(layer).kernel);
        }
        tare__qlayer_destroy(layer);
    }
}

static void begin_form(layer_case *c, uint64_t seed, requant_rule rule, const form *f, sums *s) {
    int64_t in[5], w[5], out[5];
    begin_layer_case(c, seed, rule, f->outs);
    c->has_zero_points = f->has_zero_points;
    c->layer.conv = geometry_of(f);
    c->layer.adds = f->adds && !c->layer.gives_floats;
    c->layer.is_plain = !c->layer.adds;
    *s = (sums){.c = c, .g = &c->layer.conv};
    for (int d = 0; d < SPATIAL; d++) s->in[d] = d < SPATIAL - f->dims ? 1 : f->in[d];
    assert_true(tare__conv_output_size(s->g, s->in, s->out));
    const int ndim = shape_of(f, f->ins, s->in, in);
    (void)shape_of(f, f->outs, s->out, out);
    w[0] = f->is_transposed ? f->ins : f->outs;
    w[1] = (f->is_transposed ? f->outs : f->ins) / f->groups;
    for (int d = 0; d < f->dims; d++) w[2 + d] = s->g->kernel[SPATIAL - f->dims + d];
    finish_layer_case(c, ndim, in, w, out);
    s->sum = calloc((size_t)c->y->count, sizeof *s->sum);
    assert_non_null(s->sum);
    add_up(s);
}

static bool leaves_output(const form *f) {
    const conv_geometry g = geometry_of(f);
    int64_t in[SPATIAL], out[SPATIAL];
    for (int d = 0; d < SPATIAL; d++) in[d] = d < SPATIAL - f->dims ? 1 : f->in[d];
    return tare__conv_output_size(&g, in, out);
}

static void check_form(uint64_t seed, const form *f) {
    layer_case c;
    sums s;
    if (!leaves_output(f)) return;
    form own = *f;
    const requant_rule rule = (requant_rule)(REQUANT_F + seed % 3);
    own.adds = seed % 2 == 0;
    begin_form(&c, seed, rule, &own, &s);
    check_levels(&c, &s);
    free(s.sum);
    end_layer_case(&c);
}

#define ALL(n)                                                                                     \
    { n, n, n }

static form plane_form(int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
    return (form){.dims = 2,
                  .batch = 2,
                  .ins = 6,
                  .outs = 4,
                  .groups = 1,
                  .in = {1, 4, 7},
                  .kernel = ALL(kernel),
                  .stride = ALL(stride),
                  .dilation = ALL(dilation),
                  .pad = ALL(pad),
                  .output_padding = ALL(0)};
}

// --- transposed convolutions ---

static void check_transposed(uint64_t *seed, form f) {
    f.is_transposed = true;
    for (int64_t more = 0; more <= 2; more++) { // output padding, in one dimension or two
        f.output_padding[1] = more == 2 ? 1 : 0;
        f.output_padding[2] = more >= 1 ? f.stride[2] - 1 : 0;
        check_form((*seed)++, &f);
    }
}

static void transposed_equals_the_plain_sum_for_every_geometry(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int64_t kernel = 1; kernel <= 5; kernel++)
        for (int64_t stride = 1; stride <= 4; stride++)
            for (int64_t dilation = 1; dilation <= 3; dilation++)
                for (int64_t pad = 0; pad <= 2; pad++)
                    check_transposed(&seed, plane_form(kernel, stride, dilation, pad));
}

static void transposed_equals_the_plain_sum_for_every_group(void **state) {
    (void)state;
    uint64_t seed = 2000;
    for (int64_t groups = 1; groups <= 12; groups++)
        for (int64_t of_group = 1; of_group <= 3; of_group++) {
            form f = plane_form(3, 2, 1, 1);
            f.ins = 12;
            f.outs = groups * of_group;
            f.groups = groups;
            if (f.ins % groups == 0) check_transposed(&seed, f);
        }
}

static void transposed_equals_the_plain_sum_for_every_remainder(void **state) {
    (void)state;
    uint64_t seed = 3000;
    for (int64_t width = 1; width <= 26; width++) {
        form f = plane_form(2, 2, 1, 0);
        f.in[2] = width;
        f.outs = 5 * width;
        f.ins = 1 + width % 9;
        check_transposed(&seed, f);
    }
}

static void transposed_equals_the_plain_sum_in_one_and_three_dimensions(void **state) {
    (void)state;
    uint64_t seed = 4000;
    for (int64_t kernel = 1; kernel <= 4; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int dims = 1; dims <= 3; dims += 2) {
                form f = plane_form(kernel, stride, 1, kernel / 2);
                f.dims = dims;
                f.in[0] = 3;
                f.in[1] = 2;
                check_transposed(&seed, f);
                f.groups = f.outs = f.ins; // depthwise
                check_transposed(&seed, f);
            }
}

// More subconvolutions than threads share one by one.
static void transposed_equals_the_plain_sum_for_many_subconvolutions(void **state) {
    (void)state;
    uint64_t seed = 5000;
    for (int64_t stride = 5; stride <= 8; stride++)
        check_transposed(&seed, plane_form(2 * stride, stride, 1, stride / 2));
}

// --- padding, dimensions, batches ---

static void reflecting_equals_the_plain_sum(void **state) {
    (void)state;
    uint64_t seed = 6000;
    for (int64_t kernel = 1; kernel <= 5; kernel++)
        for (int64_t stride = 1; stride <= 2; stride++)
            for (int64_t pad = 0; pad <= 3; pad++)
                for (int64_t ins = 3; ins <= 8; ins++) {
                    form f = plane_form(kernel, stride, ins == 8 ? 2 : 1, pad);
                    f.reflects = true;
                    f.ins = ins;
                    f.groups = ins == 7 ? 7 : 1;
                    f.outs = ins == 7 ? 7 : 5;
                    f.dims = ins == 6 ? 1 : 2;
                    check_form(seed++, &f);
                }
}

static void solid_equals_the_plain_sum_for_every_geometry(void **state) {
    (void)state;
    uint64_t seed = 7000;
    for (int64_t kernel = 1; kernel <= 4; kernel++)
        for (int64_t stride = 1; stride <= 2; stride++)
            for (int64_t dilation = 1; dilation <= 2; dilation++)
                for (int64_t pad = 0; pad <= 2; pad++)
                    for (int64_t ins = 3; ins <= 5; ins++) {
                        form f = plane_form(kernel, stride, dilation, pad);
                        f.dims = 3;
                        f.in[0] = 5;
                        f.kernel[0] = 1 + kernel % 3;
                        f.pad[0] = pad / 2;
                        f.ins = ins;
                        f.reflects = seed % 4 == 0;
                        f.groups = ins == 5 ? 5 : 1;
                        f.outs = ins == 5 && seed % 2 == 0 ? 10 : 5;
                        check_form(seed++, &f);
                    }
}

// Channels are so many that taps are whole windows, and pixels so many that a kernel is given them
// in several runs.
static void windows_of_few_channels_equal_the_plain_sum(void **state) {
    (void)state;
    uint64_t seed = 7500;
    for (int64_t kernel = 3; kernel <= 7; kernel += 2)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t pad = 0; pad <= kernel / 2; pad++)
                for (int64_t ins = 1; ins <= 3; ins++) {
                    form f = plane_form(kernel, stride, 1, pad);
                    f.dims = seed % 3 == 0 ? 3 : 2;
                    f.in[0] = 3;
                    f.in[1] = 9 + kernel;
                    f.in[2] = 19;
                    f.kernel[0] = 1;
                    f.pad[0] = 1;
                    f.reflects = seed % 5 == 0;
                    f.batch = 3;
                    f.ins = ins;
                    f.outs = seed % 2 == 0 ? 64 : 70;
                    check_form(seed++, &f);
                }
}

static void forms_without_a_batch_equal_the_plain_sum(void **state) {
    (void)state;
    for (uint64_t seed = 8000; seed < 8060; seed++) {
        form f = plane_form(1 + (int64_t)(seed % 3), 1 + (int64_t)(seed % 2), 1, 1);
        f.dims = 1 + (int)(seed % 3);
        f.in[0] = 3;
        f.has_no_batch = true;
        f.is_transposed = seed % 5 == 0;
        f.groups = seed % 4 == 0 ? 2 : 1;
        check_form(seed, &f);
    }
}

// --- weights with zero points ---

static void zero_points_of_weights_equal_the_plain_sum(void **state) {
    (void)state;
    uint64_t seed = 9000;
    for (int64_t kernel = 1; kernel <= 4; kernel++)
        for (int64_t stride = 1; stride <= 2; stride++)
            for (int64_t pad = 0; pad <= 1; pad++)
                for (int64_t groups = 1; groups <= 6; groups++)
                    for (int dims = 1; dims <= 3; dims++) {
                        form f = plane_form(kernel, stride, 1, pad);
                        f.dims = dims;
                        f.in[0] = 4;
                        f.has_zero_points = true;
                        f.is_transposed = seed % 4 == 0;
                        f.reflects = !f.is_transposed && seed % 3 == 0;
                        f.groups = groups;
                        f.outs = groups == 6 ? 6 : 12;
                        f.ins = groups == 1 ? 3 : 6;
                        if (f.ins % groups == 0 && f.outs % groups == 0) check_form(seed++, &f);
                    }
}

// All that weights and zero points may be: differences that take one, two and three addends.
static void extreme_zero_points_equal_the_plain_sum(void **state) {
    (void)state;
    for (int64_t zero_point = -128; zero_point <= 255; zero_point += 1) {
        layer_case c;
        begin_layer_case(&c, 1, REQUANT_F, 4);
        finish_layer_case(&c, 2, (int64_t[]){3, 64}, (int64_t[]){4, 64}, (int64_t[]){3, 4});
        const double scale = 0.01, zero = (double)zero_point;
        qparams *q = tare__qparams_create(TARE_PER_TENSOR_AFFINE, TARE_QINT8, 0, 1, &scale, &zero);
        tare_tensor *weight = NULL;
        CHECK_OK(tare__tensor_quantized(2, (int64_t[]){4, 64}, q, &weight, NULL));
        tare__qparams_release(q);
        for (int64_t i = 0; i < 256; i++) ((int8_t *)weight->data)[i] = (int8_t)(i * 37);
        c.layer.weight = weight;
        requant *r = NULL;
        CHECK_OK(tare__quantized_layer_requant(&c.layer, c.x->q, c.y->q, &r, NULL));
        tare__requant_destroy(c.r);
        c.r = r;
        for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
            qlayer *layer = NULL;
            CHECK_OK(tare__qlayer_create(&c.layer, c.x, c.y, (isa_level)isa, &layer, NULL));
            assert_non_null(layer);
            run_layer_case(&c, layer, 2, NULL);
            for (int64_t i = 0; i < 12; i++) {
                int64_t sum = 0;
                for (int64_t k = 0; k < 64; k++)
                    sum += (tare__load_quantized(c.x, i / 4 * 64 + k) -
                            (int64_t)c.x->q->zero_point[0]) *
                           (tare__load_quantized(weight, i % 4 * 64 + k) - zero_point);
                check_layer_integer(&c, i % 4, sum, i, tare__qlayer_form(layer).kernel);
            }
            tare__qlayer_destroy(layer);
        }
        tare_tensor_release(weight);
        end_layer_case(&c);
    }
}

// --- what is refused, and memory ---

static void absurd_strides_are_left_to_the_reference(void **state) {
    (void)state;
    layer_case c;
    sums s;
    qlayer *layer = NULL;
    form f = plane_form(1, 100, 1, 0);
    f.is_transposed = true;
    f.in[1] = 2;
    f.in[2] = 2;
    begin_form(&c, 1, REQUANT_F, &f, &s);
    CHECK_OK(tare__qlayer_create(&c.layer, c.x, c.y, ISA_SCALAR, &layer, NULL));
    assert_null(layer);
    assert_non_null(strstr(tare__qlayer_refusal(&c.layer, c.x), "stride"));
    free(s.sum);
    end_layer_case(&c);
}

// The image with its padding has 2^24 pixels in each dimension: 2^72 do not fit a size.
static void absurd_padding_is_left_to_the_reference(void **state) {
    (void)state;
    layer_case c;
    sums s;
    qlayer *layer = NULL;
    form f = plane_form(2, (1 << 24) - 2, 1, 1 << 23);
    f.dims = 3;
    f.batch = 1;
    f.ins = 3;
    for (int d = 0; d < SPATIAL; d++) {
        f.in[d] = 1;
        f.kernel[d] = 2;
        f.stride[d] = f.stride[2];
        f.pad[d] = f.pad[2];
    }
    begin_form(&c, 2, REQUANT_F, &f, &s);
    CHECK_OK(tare__qlayer_create(&c.layer, c.x, c.y, ISA_SCALAR, &layer, NULL));
    assert_null(layer);
    assert_non_null(strstr(tare__qlayer_refusal(&c.layer, c.x), "stride"));
    free(s.sum);
    end_layer_case(&c);
}

// Subconvolutions of more taps than depthwise kernels take are products, which could add; others
// are not.
static void unlike_parts_do_not_add(void **state) {
    (void)state;
    layer_case c;
    sums s;
    qlayer *layer = NULL;
    form f = plane_form(129, 2, 1, 64);
    f.is_transposed = true;
    f.ins = f.outs = f.groups = 2;
    f.in[1] = f.in[2] = 2;
    begin_form(&c, 3, REQUANT_F, &f, &s);
    CHECK_OK(tare__qlayer_create(&c.layer, c.x, c.y, tare__isa_detect(), &layer, NULL));
    assert_non_null(layer);
    assert_false(tare__qlayer_adds(layer));
    tare__qlayer_destroy(layer);
    free(s.sum);
    end_layer_case(&c);
}

static void forms_survive_every_failed_allocation(void **state) {
    (void)state;
    for (int groups = 1; groups <= 4; groups += 3) {
        form f = plane_form(3, 2, 1, 1);
        layer_case c;
        sums s;
        qlayer *layer = NULL;
        tare_status status;
        f.is_transposed = f.has_zero_points = true;
        f.ins = 4;
        f.groups = groups;
        begin_form(&c, 7, REQUANT_O, &f, &s);
        EVERY_ALLOCATION_FAILS(
            status,
            {
                status = tare__qlayer_create(&c.layer, c.x, c.y, tare__isa_detect(), &layer, NULL);
                tare__qlayer_destroy(layer);
                layer = NULL;
            },
            (void)0)
        free(s.sum);
        end_layer_case(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposed_equals_the_plain_sum_for_every_geometry),
        cmocka_unit_test(transposed_equals_the_plain_sum_for_every_group),
        cmocka_unit_test(transposed_equals_the_plain_sum_for_every_remainder),
        cmocka_unit_test(transposed_equals_the_plain_sum_in_one_and_three_dimensions),
        cmocka_unit_test(transposed_equals_the_plain_sum_for_many_subconvolutions),
        cmocka_unit_test(reflecting_equals_the_plain_sum),
        cmocka_unit_test(solid_equals_the_plain_sum_for_every_geometry),
        cmocka_unit_test(windows_of_few_channels_equal_the_plain_sum),
        cmocka_unit_test(forms_without_a_batch_equal_the_plain_sum),
        cmocka_unit_test(zero_points_of_weights_equal_the_plain_sum),
        cmocka_unit_test(extreme_zero_points_equal_the_plain_sum),
        cmocka_unit_test(absurd_strides_are_left_to_the_reference),
        cmocka_unit_test(absurd_padding_is_left_to_the_reference),
        cmocka_unit_test(unlike_parts_do_not_add),
        cmocka_unit_test(forms_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, start_layer_pools, end_layer_pools);
}
