// SPDX-License-Identifier: Apache-2.0
// A map of thousands of keys keeps insertion order when keys are replaced or removed.
#include "support/test.h"

#include "core/memory/map.h"

enum { COUNT = 3000 };

static void fill(map *m) {
    char key[32];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "key%zu", i * 7919 % COUNT);
        assert_true(tare__map_set(m, key, tare__map_int(i + 1)));
    }
}

static void keys_are_found_in_order_of_insertion(void **state) {
    (void)state;
    map m = {0};
    assert_null(tare__map_get(&m, "key0"));
    fill(&m);
    assert_int_equal(m.count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        char key[32];
        snprintf(key, sizeof key, "key%zu", i * 7919 % COUNT);
        assert_string_equal(m.entries[i].key, key);
        assert_ptr_equal(tare__map_get(&m, key), tare__map_int(i + 1));
    }
    assert_false(tare__map_has(&m, "key"));
    tare__map_release(&m);
    assert_int_equal(m.count, 0);
}

static void a_second_value_keeps_the_place(void **state) {
    (void)state;
    map m = {0};
    tare__map_set(&m, "a", tare__map_int(1));
    tare__map_set(&m, "b", NULL);
    tare__map_set(&m, "a", tare__map_int(3));
    assert_int_equal(m.count, 2);
    assert_string_equal(m.entries[0].key, "a");
    assert_ptr_equal(m.entries[0].value, tare__map_int(3));
    assert_true(tare__map_has(&m, "b"));
    assert_null(tare__map_get(&m, "b"));
    tare__map_release(&m);
}

static void removing_keeps_the_order_of_the_others(void **state) {
    (void)state;
    map m = {0};
    fill(&m);
    char key[32];
    for (size_t i = 0; i < COUNT; i += 2) {
        snprintf(key, sizeof key, "key%zu", i * 7919 % COUNT);
        tare__map_remove(&m, key);
        tare__map_remove(&m, key); // absent: nothing happens
    }
    assert_int_equal(m.count, COUNT / 2);
    for (size_t i = 0; i < m.count; i++)
        assert_ptr_equal(m.entries[i].value, tare__map_int(2 * i + 2));
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "key%zu", i * 7919 % COUNT);
        assert_int_equal(tare__map_has(&m, key), i % 2 == 1);
    }
    tare__map_release(&m);
}

static void lost_memory_leaves_the_map_whole(void **state) {
    (void)state;
    for (long request = 1; request < 60; request++) {
        map m = {0};
        size_t set = 0;
        tare__alloc_fail_at(request);
        char key[16];
        for (size_t i = 0; i < 40; i++) {
            snprintf(key, sizeof key, "%zu", i);
            if (tare__map_set(&m, key, tare__map_int(i))) set++;
        }
        tare__alloc_fail_at(0);
        assert_int_equal(m.count, set);
        assert_true(set >= 39);
        for (size_t i = 0; i < m.count; i++) assert_true(tare__map_has(&m, m.entries[i].key));
        tare__map_release(&m);
    }
}

static bool is_odd(void *user, const map_entry *entry) {
    ++*(size_t *)user;
    return (size_t)entry->value % 2 == 1;
}

static void what_is_not_kept_goes_at_once(void **state) {
    (void)state;
    map m = {0};
    size_t asked = 0;
    tare__map_keep(&m, is_odd, &asked);
    fill(&m);
    tare__map_keep(&m, is_odd, &asked);
    assert_int_equal(asked, COUNT);
    assert_int_equal(m.count, COUNT / 2);
    for (size_t i = 0; i < COUNT; i++) {
        char key[32];
        snprintf(key, sizeof key, "key%zu", i * 7919 % COUNT);
        assert_int_equal(tare__map_has(&m, key), i % 2 == 0);
    }
    tare__map_release(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_found_in_order_of_insertion),
        cmocka_unit_test(a_second_value_keeps_the_place),
        cmocka_unit_test(removing_keeps_the_order_of_the_others),
        cmocka_unit_test(lost_memory_leaves_the_map_whole),
        cmocka_unit_test(what_is_not_kept_goes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
