// SPDX-License-Identifier: Apache-2.0
// Every row of product kernels, tile by tile: what the layers of gemm/test_qlayer.c do not reach,
// such as tiles without sums of weights, every rows by channels, and weights on both sides of what
// 16 bits hold.
#include "support/test.h"

#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/kernels/saturation.h"
#include "support/emulated.h"

enum {
    MOST_TAPS = 7,        // as many as rows that take turns have places, and one more
    MOST_QUANTIZED = 156, // more than two steps of AMX
    FEW_INTEGERS = 24,
    MOST_WORDS = MOST_TAPS * (MOST_QUANTIZED + 3) / 4,
    MOST_GAP = 20,   // words that are left out behind a row of taps
    MOST_TILES = 14, // with which kernels that like many do something else
    MOST_ROWS = MOST_TILES * PRODUCT_ROWS,
    OTHER_STRIDE = PRODUCT_BLOCK + 5,
};

static uint32_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

typedef enum weight_kind { ANY_WEIGHTS, FITTING_WEIGHTS, SEVEN_BITS, WEIGHT_KINDS } weight_kind;

// Pairs of fitting weights are as large as they may be.
static int8_t weight_of(uint64_t *state, weight_kind kind, size_t code, int8_t before) {
    if (kind == SEVEN_BITS) return (int8_t)(next(state) % 2 ? 64 : -64);
    if (kind == FITTING_WEIGHTS && code % 2 != 0) {
        const int most = before > 0 ? 128 - before : -128 - before;
        return (int8_t)(most > 127 ? 127 : most);
    }
    const uint32_t pick = next(state) % 4;
    return (int8_t)(pick == 0 ? -128 : pick == 1 ? 127 : (int)(next(state) % 256) - 128);
}

typedef struct tile_case {
    product_tile tile;
    weight_kind kind;
    uint8_t x[MOST_ROWS][MOST_TAPS][MOST_QUANTIZED], padding[MOST_QUANTIZED];
    size_t places[MOST_ROWS]; // of the rows in x
    const uint8_t *addresses[MOST_TAPS * MOST_ROWS];
    size_t offsets[MOST_TAPS];
    int8_t w[PRODUCT_BLOCK][MOST_TAPS][MOST_QUANTIZED];
    uint32_t words[(MOST_WORDS + MOST_TAPS * MOST_GAP) * PRODUCT_BLOCK];
    int32_t start[PRODUCT_BLOCK], sums[PRODUCT_BLOCK];
    bool never_saturates[PRODUCT_VECTORS * MOST_WORDS];
    uint8_t other[MOST_ROWS * OTHER_STRIDE], quantized[MOST_ROWS * PRODUCT_BLOCK + 1];
    float real[MOST_ROWS * PRODUCT_BLOCK + 1];
    product_addend addend;
    requant *r;
} tile_case;

// Of some taps, the first or the last rows lie in the padding, as at the edges of an image: their
// addresses differ from the others'.
static void pad(tile_case *c, uint64_t *state) {
    const product_tile *t = &c->tile;
    for (size_t k = 0; k < t->tap_size; k++) c->padding[k] = (uint8_t)next(state);
    for (size_t tap = 0; tap < t->taps; tap++) {
        if (next(state) % 2) continue;
        const size_t rows = 1 + next(state) % 3, first = next(state) % 2 ? 0 : t->rows - 1;
        for (size_t r = 0; r < t->rows; r++) {
            if (r > first ? r - first >= rows : first - r >= rows) continue;
            memcpy(c->x[c->places[r]][tap], c->padding, t->tap_size);
            c->addresses[tap * t->rows + r] = c->padding;
        }
    }
}

// Rows follow each other, or there are gaps of some rows behind as many rows each, as between the
// rows of an image with its padding; or the last comes first.
static void place_rows(tile_case *c, uint64_t *state) {
    const size_t rows = c->tile.rows, length = 1 + next(state) % 20, kind = next(state) % 4;
    const size_t gaps = (rows - 1) / length;
    size_t gap = 1 + next(state) % 5;
    if (gap * gaps > MOST_ROWS - rows) gap = 0;
    for (size_t r = 0; r < rows; r++) {
        c->places[r] = kind == 0 ? rows - 1 - r : r;
        if (kind == 1) c->places[r] += r / length * gap;
    }
}

static void fill_quantized(tile_case *c, uint64_t *state) {
    product_tile *t = &c->tile;
    place_rows(c, state);
    memset(c->x, 0x5A, sizeof c->x);
    for (size_t r = 0; r < t->rows; r++)
        for (size_t tap = 0; tap < t->taps; tap++) {
            for (size_t k = 0; k < t->tap_size; k++) {
                const uint32_t pick = next(state) % 4;
                c->x[c->places[r]][tap][k] = (uint8_t)(pick < 2 ? 0xFF ^ t->flip : next(state));
            }
            c->addresses[tap * t->rows + r] = c->x[c->places[r]][tap];
        }
    t->x = c->addresses;
    if (next(state) % 2) {
        pad(c, state);
        return;
    }
    // The same once more: of each row the first tap, and where others lie.
    for (size_t r = 0; r < t->rows; r++) c->addresses[r] = c->x[c->places[r]][0];
    for (size_t tap = 0; tap < t->taps; tap++) c->offsets[tap] = tap * sizeof c->x[0][0];
    t->offsets = c->offsets;
}

// Where the words of each tap begin: all zeros. What lies between them would be seen in every sum.
static void place_taps(tile_case *c, size_t words, size_t at[MOST_TAPS]) {
    memset(c->words, 0x55, sizeof c->words);
    for (size_t tap = 0, next = 0; tap < c->tile.taps; tap++, next += words) {
        next += tare__product_gap(&c->tile, tap);
        memset(c->words + next, 0, words * sizeof *c->words);
        at[tap] = next;
    }
}

static void fill_weights(tile_case *c, uint64_t *state) {
    product_tile *t = &c->tile;
    const size_t words = (t->tap_size + 3) / 4, lanes = tare__product_vectors(t->channels) * 16;
    size_t at[MOST_TAPS];
    place_taps(c, words * lanes, at);
    for (size_t n = 0; n < t->channels; n++) {
        c->sums[n] = 0;
        for (size_t tap = 0; tap < t->taps; tap++)
            for (size_t k = 0; k < t->tap_size; k++) {
                const int8_t w = weight_of(state, c->kind, k, k > 0 ? c->w[n][tap][k - 1] : 0);
                c->w[n][tap][k] = w;
                c->sums[n] += w;
                c->words[at[tap] + k / 4 * lanes + n] |= (uint32_t)(uint8_t)w << k % 4 * 8;
            }
    }
    t->w = c->words;
    tare__product_prove_unsaturated(c->words, t->channels, t->taps * words, c->never_saturates);
}

static const float zeros[PRODUCT_BLOCK];

static void fill_epilogue(tile_case *c, uint64_t *state) {
    double scale[PRODUCT_BLOCK];
    float bias[PRODUCT_BLOCK];
    product_tile *t = &c->tile;
    for (size_t n = 0; n < t->channels; n++) {
        scale[n] = 1e-4 * (1 + next(state) % 100);
        bias[n] = (float)(next(state) % 200) - 100;
        c->start[n] = (int32_t)next(state) % 100000 - 50000;
    }
    // Zero points of 0 and bounds that are all a byte's need fewer instructions.
    const int32_t least = next(state) % 4 == 0 ? -128 : 0;
    const int32_t zero_value = next(state) % 2 ? -least : (int32_t)(next(state) % 256);
    const requant_spec spec = {.rule = (requant_rule)(REQUANT_F + next(state) % 3),
                               .channel_count = (int64_t)t->channels,
                               .input_scale = 0.01,
                               .weight_scale = scale,
                               .weight_scale_count = (int64_t)t->channels,
                               .bias = bias,
                               .output_scale = 0.1 * (1 + next(state) % 50),
                               .output_zero_point = least + zero_value,
                               .quant_min = least,
                               .quant_max = least + 255,
                               .relu = next(state) % 4 == 0};
    CHECK_OK(tare__requant_create(&spec, &c->r, NULL));
    // In rule Q the bias is in the start of the sum.
    t->epilogue = (tile_epilogue){.requant = c->r,
                                  .start = c->start,
                                  .multiplier = c->r->multiplier,
                                  .bias = spec.rule == REQUANT_Q ? zeros : c->r->bias,
                                  .weight_sums = next(state) % 2 ? c->sums : NULL,
                                  .is_small = next(state) % 4 != 0}; // no float is large here
    for (size_t i = 0; i < sizeof c->other; i++) c->other[i] = (uint8_t)next(state);
    const addend_kind kind = next(state) % 2 ? ADDEND_OF_VALUES : ADDEND_OF_QUANTIZED;
    c->addend = (product_addend){
        .kind = kind,
        .add = tare__native_add(
            (quantized_range){0.1F, least + 3}, (quantized_range){0.07F, least + 100},
            (quantized_range){0.15F, next(state) % 2 ? 0 : least + 7}, least, least + 255, false),
        .scale = 0.3F,
        .zero_point = next(state) % 2 ? 0 : 77,
        // Of native addition all quantized values are.
        .is_signed = kind == ADDEND_OF_VALUES ? next(state) % 2 != 0 : least < 0,
        .quantized = c->other,
        .stride = OTHER_STRIDE,
    };
}

// Of a tap; whole words are frequent, and so are few of them, which kernels do in another way.
static size_t quantized_of(uint64_t *state) {
    const size_t tap_size = 1 + next(state) % (next(state) % 2 ? MOST_QUANTIZED : FEW_INTEGERS);
    return next(state) % 2 && tap_size > 4 ? tap_size / 4 * 4 : tap_size;
}

static void leave_out(product_tile *t, uint64_t *state) {
    t->row_taps = t->taps > 0 ? 1 + next(state) % t->taps : 0;
    t->gap = next(state) % MOST_GAP * tare__product_vectors(t->channels) * PRODUCT_LANES;
}

static void begin(const product_kernel *k, tile_case *c, uint64_t seed, size_t rows,
                  size_t channels) {
    uint64_t state = seed * 2654435761u + 17;
    memset(&c->tile, 0, sizeof c->tile);
    c->tile = (product_tile){.rows = rows,
                             .taps = next(&state) % (MOST_TAPS + 1), // 0: all lie in the padding
                             .tap_size = quantized_of(&state),
                             .flip = next(&state) % 2 && k->takes_signed ? PRODUCT_SIGN_BIT : 0,
                             .channels = channels,
                             .y_stride = PRODUCT_BLOCK};
    c->kind = (weight_kind)(next(&state) % WEIGHT_KINDS);
    if (!k->asks_saturation && next(&state) % 2) leave_out(&c->tile, &state);
    fill_quantized(c, &state);
    fill_weights(c, &state);
    fill_epilogue(c, &state);
    c->tile.never_saturates = next(&state) % 4 ? c->never_saturates : NULL;
    c->tile.ahead = next(&state) % 2 ? sizeof c->w : 0; // what is fetched early changes nothing
    c->tile.pass = next(&state) % 3;
    // Values are rule O's; the others' biases are no floats of a layer.
    const uint32_t end = next(&state) % (c->r->rule == REQUANT_O ? 4 : 2);
    c->tile.addend = end == 1 ? &c->addend : NULL;
    c->tile.real = end > 1 ? c->real : NULL;
    c->tile.fuses = end == 3;
    c->tile.y = c->quantized;
}

static int32_t sum_of(const tile_case *c, size_t row, size_t channel) {
    int64_t sum = c->start[channel];
    for (size_t tap = 0; tap < c->tile.taps; tap++)
        for (size_t k = 0; k < c->tile.tap_size; k++)
            sum += (c->x[c->places[row]][tap][k] ^ c->tile.flip) * c->w[channel][tap][k];
    return tare__wrap_int32(sum);
}

// Rule Q's own bias is part of the start here, and so is not added again.
static int32_t quantized_value_of(const tile_case *c, size_t row, size_t channel, int32_t sum) {
    const int64_t n = (int64_t)channel;
    const uint8_t byte = c->other[row * OTHER_STRIDE + channel];
    const int32_t other = c->addend.is_signed ? (int8_t)byte : byte;
    const int32_t less = c->r->rule == REQUANT_Q ? c->r->bias_int[channel] : 0;
    const int32_t acc = tare__wrap_int32((int64_t)sum - less);
    const int32_t code = tare__requantize(c->r, n, acc);
    if (c->tile.addend == NULL) return code;
    if (c->addend.kind == ADDEND_OF_QUANTIZED)
        return tare__native_add_quantized(&c->addend.add, code, other);
    return tare__requantize_sum(c->r, n, acc, (float)(other - c->addend.zero_point),
                                tare__addend_factor(c->r, c->addend.scale));
}

static float value_of(const tile_case *c, size_t channel, int32_t sum) {
    const float multiplier = c->tile.epilogue.multiplier[channel];
    const float bias = c->tile.epilogue.bias[channel];
    if (c->tile.fuses) return fmaf((float)sum, multiplier, bias);
    const float product = (float)sum * multiplier;
    return product + bias;
}

static void check_tile(const tile_case *c, const char *kernel) {
    for (size_t r = 0; r < c->tile.rows; r++)
        for (size_t n = 0; n < PRODUCT_BLOCK; n++) {
            const size_t at = r * PRODUCT_BLOCK + n;
            const bool is_given = n < c->tile.channels;
            const int32_t sum = is_given ? sum_of(c, r, n) : 0;
            if (c->tile.real != NULL) {
                const float wanted = is_given ? value_of(c, n, sum) : -1;
                if (memcmp(&wanted, &c->real[at], sizeof wanted) != 0)
                    fail_msg("%s: %zu, %zu: expected %g, found %g", kernel, r, n, (double)wanted,
                             (double)c->real[at]);
                continue;
            }
            const uint8_t wanted = is_given ? (uint8_t)quantized_value_of(c, r, n, sum) : 0xA5;
            if (wanted != c->quantized[at])
                fail_msg("%s: %zu, %zu of %zu: expected %d, found %d", kernel, r, n,
                         c->tile.channels, wanted, c->quantized[at]);
        }
}

// --- memory that ends with the last pixel ---

static struct {
    uint8_t *memory;
    size_t size; // then comes a page that nobody may read
} guarded;

static int make_guarded(void **state) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int zero = open("/dev/zero", O_RDWR);
    (void)state;
    if (zero < 0) return -1;
    guarded.size = (sizeof((tile_case *)NULL)->x + page - 1) / page * page;
    guarded.memory = mmap(NULL, guarded.size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
    (void)close(zero);
    if (guarded.memory == MAP_FAILED) return -1;
    return mprotect(guarded.memory + guarded.size, page, PROT_NONE);
}

static int remove_guarded(void **state) {
    (void)state;
    return munmap(guarded.memory, guarded.size + (size_t)sysconf(_SC_PAGESIZE));
}

// The rows move so that the last quantized value is the last byte of a page.
static void move_to_end(tile_case *c) {
    const product_tile *t = &c->tile;
    const size_t count = t->offsets != NULL ? t->rows : t->taps * t->rows;
    const size_t last_tap = t->offsets != NULL && t->taps > 0 ? t->offsets[t->taps - 1] : 0;
    const uint8_t *const x = c->x[0][0];
    size_t end = 0;
    for (size_t i = 0; i < count; i++) {
        if (c->addresses[i] == c->padding) continue;
        const size_t behind = (size_t)(c->addresses[i] - x) + last_tap + t->tap_size;
        if (behind > end) end = behind;
    }
    uint8_t *to = guarded.memory + guarded.size - end;
    memcpy(to, x, end);
    for (size_t i = 0; i < count; i++)
        if (c->addresses[i] != c->padding) c->addresses[i] = to + (c->addresses[i] - x);
}

static void run_tile(const product_kernel *k, tile_case *c) {
    memset(c->quantized, 0xA5, sizeof c->quantized);
    for (size_t i = 0; i < sizeof c->real / sizeof *c->real; i++) c->real[i] = -1;
    k->run(&c->tile);
}

static void check_rows(const product_kernel *k, tile_case *c, uint64_t seed, size_t rows,
                       size_t channels) {
    begin(k, c, seed, rows, channels);
    move_to_end(c);
    run_tile(k, c);
    check_tile(c, k->name);
    tare__requant_destroy(c->r);
}

static void every_row_equals_the_plain_sum(void **state) {
    static tile_case c;
    product_kernel kernels[MOST_PRODUCTS_UNDER_TEST];
    const size_t count = products_under_test(kernels);
    (void)state;
    for (const product_kernel *k = kernels; k < kernels + count; k++) {
        uint64_t seed = 1;
        for (size_t channels = 1; channels <= PRODUCT_BLOCK; channels++) {
            const size_t tile = k->rows[tare__product_vectors(channels) - 1];
            for (size_t rows = 1; rows <= tile; rows++) check_rows(k, &c, seed++, rows, channels);
        }
    }
}

static void check_many_tiles(const product_kernel *k, tile_case *c) {
    uint64_t seed = 1;
    for (size_t channels = 1; channels <= 64; channels += channels % PRODUCT_LANES == 0 ? 7 : 3) {
        const size_t tile = k->rows[tare__product_vectors(channels) - 1];
        for (size_t i = 0; i < 24; i++) // every end and depth
            check_rows(k, c, seed++, (MOST_TILES - 2 + i % 2) * tile + i % tile, channels);
    }
    for (size_t vectors = 1; vectors <= PRODUCT_VECTORS; vectors++)
        for (size_t i = 0; i < 60; i++)
            check_rows(k, c, seed++, (MOST_TILES - 1) * k->rows[vectors - 1] + i % 2,
                       vectors * PRODUCT_LANES);
}

static void every_row_of_many_tiles_equals_the_plain_sum(void **state) {
    static tile_case c;
    product_kernel kernels[MOST_PRODUCTS_UNDER_TEST];
    const size_t count = products_under_test(kernels);
    (void)state;
    for (const product_kernel *k = kernels; k < kernels + count; k++)
        if (k->tiles > 1) check_many_tiles(k, &c);
}

// --- pairs of products ---

static bool fits_16_bits(int a, int b) {
    const int quantized[2] = {0, 255};
    for (int i = 0; i < 4; i++) {
        const int sum = quantized[i % 2] * a + quantized[i / 2] * b;
        if (sum < INT16_MIN || sum > INT16_MAX) return false;
    }
    return true;
}

static void a_pair_fits_where_no_integers_exceed_16_bits(void **state) {
    (void)state;
    for (int a = -128; a <= 127; a++)
        for (int b = -128; b <= 127; b++)
            assert_int_equal(tare__product_pair_fits((int8_t)a, (int8_t)b), fits_16_bits(a, b));
}

// One pair of large weights, anywhere, is of its chunk alone.
static void one_large_pair_is_found_in_its_chunk(void **state) {
    enum { DEPTH = 3 * PRODUCT_CHUNK - 2, CHANNELS = 40, LANES = 48 };
    (void)state;
    for (size_t d = 0; d < DEPTH; d++)
        for (size_t n = 0; n < CHANNELS; n += 13) {
            static uint32_t w[DEPTH * LANES];
            bool fit[3 * 3];
            memset(w, 0, sizeof w);
            w[d * LANES + n] = d % 2 ? UINT32_C(0x4141) : UINT32_C(0xBFBF0000); // 65, -65
            tare__product_prove_unsaturated(w, CHANNELS, DEPTH, fit);
            for (size_t i = 0; i < 9; i++)
                assert_int_equal(fit[i], i != n / PRODUCT_LANES * 3 + d / PRODUCT_CHUNK);
        }
}

// Told that pairs fit where they do not, a kernel that asks gives something else: it does use what
// it is told, and the tests above would see a wrong proof.
static void a_false_proof_would_show(void **state) {
    static tile_case c;
    product_kernel kernels[MOST_PRODUCTS_UNDER_TEST];
    const size_t count = products_under_test(kernels);
    (void)state;
    for (const product_kernel *k = kernels; k < kernels + count; k++) {
        if (k->asks_saturation) {
            begin(k, &c, 1, 1, 16);
            c.tile.taps = 1;
            c.addresses[0] = c.x[0][0];
            c.tile.offsets = NULL;
            c.tile.tap_size = 4;
            c.tile.flip = 0;
            c.tile.addend = NULL;
            c.tile.real = c.real;
            c.tile.fuses = false;
            c.tile.epilogue.bias = zeros;
            c.tile.never_saturates = c.never_saturates;
            memset(c.x, 0xFF, sizeof c.x);
            memset(c.w, 127, sizeof c.w);
            memset(c.words, 127, sizeof c.words);
            c.never_saturates[0] = false;
            run_tile(k, &c);
            check_tile(&c, k->name);
            const float right = c.real[0];
            c.never_saturates[0] = true;
            run_tile(k, &c);
            assert_true(c.real[0] < right);
            tare__requant_destroy(c.r);
        }
    }
}

// Tiles are left to products that are worth preparing them for; names say who multiplies.
static void small_products_do_not_wait_for_tiles(void **state) {
    (void)state;
    for (int isa = 0; isa <= (int)ISA_AMXINT8; isa++) {
        const product_kernel *k = tare__product_choose((isa_level)isa);
        const product_kernel *small = tare__product_choose_for((isa_level)isa, 32, 32, 16);
        assert_ptr_equal(tare__product_choose_for((isa_level)isa, 128, 384, 128), k);
        const bool has_tiles = strstr(k->name, "amxint8") != NULL;
        assert_true((small == k) == !has_tiles);
        assert_null(strstr(small->name, "amxint8"));
        assert_string_equal(tare__product_name(k, 100, 1, 8, 0), small->name);
        assert_string_equal(tare__product_name(k, 100, 1, 64, 0), k->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_equals_the_plain_sum),
        cmocka_unit_test(every_row_of_many_tiles_equals_the_plain_sum),
        cmocka_unit_test(a_pair_fits_where_no_integers_exceed_16_bits),
        cmocka_unit_test(one_large_pair_is_found_in_its_chunk),
        cmocka_unit_test(a_false_proof_would_show),
        cmocka_unit_test(small_products_do_not_wait_for_tiles),
    };
    return cmocka_run_group_tests(tests, make_guarded, remove_guarded);
}
