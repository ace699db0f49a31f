// SPDX-License-Identifier: Apache-2.0
// Thousands of pointers are found under their numbers, also after an allocation failed.
#include "support/test.h"

#include "core/memory/pointer_index.h"

enum { MANY = 5000 };

static void every_key_is_found(void **state) {
    (void)state;
    static char objects[MANY];
    arena memory = {0};
    pointer_index index = {0};
    assert_int_equal(tare__pointer_index_get(&index, objects, 7), 7);
    for (size_t i = 0; i < MANY; i += 2)
        assert_true(tare__pointer_index_set(&index, &memory, &objects[i], i));
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(tare__pointer_index_get(&index, &objects[i], SIZE_MAX),
                         i % 2 == 0 ? i : SIZE_MAX);
    assert_true(tare__pointer_index_set(&index, &memory, &objects[4], 99));
    assert_int_equal(tare__pointer_index_get(&index, &objects[4], SIZE_MAX), 99);
    assert_int_equal(index.count, MANY / 2);
    tare__arena_release(&memory);
}

static void lost_memory_keeps_what_was_there(void **state) {
    (void)state;
    static char objects[4096];
    arena memory = {0};
    pointer_index index = {0};
    size_t count = 0;
    assert_true(tare__pointer_index_set(&index, &memory, &objects[count++], 0));
    faults_order((fault_order){.kinds = FAULT_MEMORY, .at = 1, .stays = true});
    while (count < sizeof objects &&
           tare__pointer_index_set(&index, &memory, &objects[count], count))
        count++;
    faults_end();
    assert_in_range(count, 1, sizeof objects - 1);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(tare__pointer_index_get(&index, &objects[i], SIZE_MAX), i);
    tare__arena_release(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_found),
        cmocka_unit_test(lost_memory_keeps_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
