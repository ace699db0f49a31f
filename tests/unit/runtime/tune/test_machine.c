// SPDX-License-Identifier: Apache-2.0
// The machine's peak: kernels of every level do what they count, and the measure is one of this
// machine.
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "runtime/kernels/peak.h"
#include "support/models.h"
#include "support/temp.h"
#include "tare/file.h"
#include "tare/machine.h"

// Sums of whole numbers are exact in any order, so every level must find the same.
static void every_level_reads_all_words(void **state) {
    enum { WORDS = 4 * PEAK_READ_WORDS };
    uint64_t *data = tare__alloc_aligned(WORDS * sizeof *data, 64), sum = 0;
    (void)state;
    assert_non_null(data);
    for (size_t i = 0; i < WORDS; i++) sum += data[i] = i * i + 1;
    for (int level = 0; level <= (int)tare__isa_detect(); level++) {
        const peak_kernels *k = tare__peak_choose((isa_level)level);
        assert_true(k->needs.level <= (isa_level)level);
        assert_true(k->read(data, WORDS) == sum);
        assert_true(k->read(data, PEAK_READ_WORDS) < sum);
    }
    tare__free_aligned(data);
}

// x becomes 3 x / 4 + 1 in every round, and 4 in the end: all of the sums, of which one or all are
// given back.
static void every_level_multiplies_in_every_round(void **state) {
    (void)state;
    for (int level = 0; level <= (int)tare__isa_detect(); level++) {
        const peak_kernels *k = tare__peak_choose((isa_level)level);
        const float last = k->multiply_floats(1000);
        assert_true(last > 0 && (int)(last + 0.01F) % 4 == 0);
        assert_true(k->multiply_floats(1) != last);
        assert_int_not_equal(k->multiply_integers(1), k->multiply_integers(2));
        assert_true(k->integers > 0 && k->floats > 0);
    }
}

static void a_measure_is_of_this_world(void **state) {
    tare_machine_peak peak;
    (void)state;
    CHECK_OK(tare_machine_measure(1, &peak, NULL));
    assert_int_equal(peak.struct_size, sizeof peak);
    const double found[] = {peak.int8_gops, peak.float_gflops, peak.l2_gbs,
                            peak.l3_gbs,    peak.memory_gbs,   peak.int8_vector_gops};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        assert_true(found[i] > 0.01 && found[i] < 1e6);
}

static void wrong_thread_counts_are_refused(void **state) {
    tare_machine_peak peak;
    (void)state;
    assert_int_equal(tare_machine_measure(-1, &peak, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_machine_measure(1 << 20, &peak, NULL), TARE_INVALID_ARGUMENT);
}

static void a_measure_survives_every_failed_allocation(void **state) {
    tare_machine_peak peak;
    tare_status status;
    (void)state;
    EVERY_ALLOCATION_FAILS(status, status = tare_machine_measure(2, &peak, NULL), (void)0)
}

// --- the file ---

static void peaks_come_back_from_a_file(void **state) {
    const tare_machine_peak peak = {.int8_gops = 472.875,
                                    .float_gflops = 118.2,
                                    .l2_gbs = 113.5,
                                    .l3_gbs = 96.4,
                                    .memory_gbs = 1e-3};
    tare_machine_peak found;
    const char *path = temp_path("machine.json");
    (void)state;
    CHECK_OK(tare_machine_write(&peak, path, NULL));
    CHECK_OK(tare_machine_read(path, &found, NULL));
    assert_int_equal(found.struct_size, sizeof found);
    assert_true(found.int8_gops == peak.int8_gops && found.float_gflops == peak.float_gflops);
    assert_true(found.l2_gbs == peak.l2_gbs && found.l3_gbs == peak.l3_gbs);
    assert_true(found.memory_gbs == peak.memory_gbs);
}

static void other_files_are_refused(void **state) {
    static const char *const texts[][2] = {
        {"[]", "expected an object"},
        {"{\"format\": \"tare-tune-1\"}", "expected 'tare-machine-1'"},
        {"{\"format\": \"tare-machine-1\", \"int8_gops\": 1}", "float_gflops"},
        {"{\"format\": \"tare-machine-1\", \"int8_gops\": 0}", "expected a number from 0.001"},
        {"{\"format\": \"tare-machine-1\", \"int8_gops\": {\"float\": \"nan\"}}",
         "expected a number from 0.001"},
        {"{\"format\": \"tare-machine-1\", \"int8_gops\": 1e-300}", "found 1e-300"},
        {"{\"format\": \"tare-machine-1\", \"int8_gops\": \"much\"}", "int8_gops"},
        {"{\"format\": \"tare-machine-1\", \"int4_gops\": 1}", "int4_gops"},
    };
    tare_machine_peak found = {.int8_gops = 7};
    const char *path = temp_path("machine.json");
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK_OK(tare_file_write(path, texts[i][0], strlen(texts[i][0]), NULL));
        CHECK_REFUSED(tare_machine_read(path, &found, job_error()), TARE_MALFORMED_FILE,
                      texts[i][1]);
    }
    assert_true(found.int8_gops == 7);
    assert_int_equal(tare_machine_read(path, NULL, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_machine_write(NULL, path, NULL), TARE_INVALID_ARGUMENT);
}

static void a_file_of_peaks_survives_every_failed_allocation(void **state) {
    tare_machine_peak peak;
    tare_status status;
    (void)state;
    EVERY_ALLOCATION_FAILS(
        status, status = tare_machine_read("tests/data/machine.json", &peak, NULL), (void)0)
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_reads_all_words),
        cmocka_unit_test(every_level_multiplies_in_every_round),
        cmocka_unit_test(a_measure_is_of_this_world),
        cmocka_unit_test(wrong_thread_counts_are_refused),
        cmocka_unit_test(a_measure_survives_every_failed_allocation),
        cmocka_unit_test(peaks_come_back_from_a_file),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(a_file_of_peaks_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
