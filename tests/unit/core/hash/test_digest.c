// SPDX-License-Identifier: Apache-2.0
// Digests of fixed bytes against stored numbers, and their change with every bit.
#include "support/test.h"

#include "core/hash/digest.h"

// Files hold these numbers: they are the same on every machine and for ever.
static void digests_stay_what_they_were(void **state) {
    (void)state;
    static const char words[] = "the same on every machine";
    assert_int_equal(tare__digest(0, NULL, 0), 0xe13b7d242897d5e3U);
    assert_int_equal(tare__digest(0, words, sizeof words - 1), 0xf1914a4463e18233U);
    assert_int_equal(tare__digest(7, words, 8), 0x0359078788ca0951U);
}

static void every_bit_counts(void **state) {
    (void)state;
    unsigned char bytes[19] = {0};
    for (size_t size = 1; size <= sizeof bytes; size++) {
        const uint64_t before = tare__digest(0, bytes, size);
        assert_int_not_equal(before, tare__digest(0, bytes, size - 1));
        assert_int_not_equal(before, tare__digest(1, bytes, size));
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1U << (bit % 8));
            assert_int_not_equal(before, tare__digest(0, bytes, size));
            bytes[bit / 8] ^= (unsigned char)(1U << (bit % 8));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_stay_what_they_were),
        cmocka_unit_test(every_bit_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
