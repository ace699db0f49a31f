// SPDX-License-Identifier: Apache-2.0
// The checksum of known bytes is what xxhsum prints for them.
#include "support/test.h"

#include "core/hash/checksum.h"

// As xxhsum -H3 prints them (xxHash 0.8.1).
static void values_are_those_of_xxh3(void **state) {
    (void)state;
    assert_true(tare__checksum(NULL, 0, 0) == UINT64_C(0x2d06800538d394c2));
    assert_true(tare__checksum("a", 1, 0) == UINT64_C(0xe6c632b61e964e1f));
    assert_true(tare__checksum("abc", 3, 0) == UINT64_C(0x78af5f94892f3950));
}

static void a_seed_gives_another_value(void **state) {
    (void)state;
    assert_true(tare__checksum("abc", 3, 1) != tare__checksum("abc", 3, 0));
    assert_true(tare__checksum(NULL, 0, 1) != tare__checksum(NULL, 0, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_xxh3),
        cmocka_unit_test(a_seed_gives_another_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
