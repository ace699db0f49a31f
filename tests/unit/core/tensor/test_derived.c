// SPDX-License-Identifier: Apache-2.0
// What is made of a storage's bytes is made once for all who hold it, and gone after the last.
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/memory/alloc.h"
#include "core/tensor/derived.h"

static _Atomic int made, alive;

typedef struct sum_of_bytes {
    derived_item base;
    int sum;
} sum_of_bytes;

static void destroy(derived_item *thing) {
    atomic_fetch_sub(&alive, 1);
    tare__free(thing);
}

static _Thread_local derived_offer offer_seen;

static tare_status make(void *user, derived_offer offer, derived_item **out, tare_error *err) {
    offer_seen = offer;
    sum_of_bytes *s = tare__alloc_zeroed(1, sizeof *s);
    if (s == NULL) return tare__out_of_memory(err);
    const unsigned char *bytes = user;
    for (int i = 0; i < 4; i++) s->sum += bytes[i];
    s->base.destroy = destroy;
    atomic_fetch_add(&made, 1);
    atomic_fetch_add(&alive, 1);
    *out = &s->base;
    return TARE_OK;
}

static tare_status refuse(void *user, derived_offer offer, derived_item **out, tare_error *err) {
    (void)user, (void)offer, (void)out;
    return tare__fail(err, TARE_UNSUPPORTED, "no");
}

static storage *bytes_1_to_4(void) {
    storage *s = tare__storage_create(1 << 20);
    assert_non_null(s);
    for (int i = 0; i < 4; i++)
        ((unsigned char *)(uintptr_t)tare__storage_data(s))[i] = (unsigned char)(i + 1);
    return s;
}

static derived_item *get(storage *s, uint64_t form) {
    const derived_key key = {.data = tare__storage_data(s), .numbers = {form}};
    derived_item *thing = NULL;
    CHECK_OK(tare__derive(s, &key, make, (void *)(uintptr_t)tare__storage_data(s), &thing, NULL));
    assert_int_equal(((sum_of_bytes *)(void *)thing)->sum, 10);
    return thing;
}

static void test_shared_until_the_last_user(void **state) {
    (void)state;
    storage *s = bytes_1_to_4();
    atomic_store(&made, 0);
    derived_item *a = get(s, 1), *b = get(s, 1), *other = get(s, 2);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, other);
    assert_int_equal(atomic_load(&made), 2);
    tare__derived_release(a);
    assert_int_equal(atomic_load(&alive), 2);
    tare__storage_release(s); // the things keep it
    tare__derived_release(b);
    assert_int_equal(atomic_load(&alive), 1);
    tare__derived_release(other);
    tare__derived_release(NULL);
    assert_int_equal(atomic_load(&alive), 0);
}

static void test_failures_leave_nothing(void **state) {
    (void)state;
    storage *s = bytes_1_to_4();
    const derived_key key = {.data = tare__storage_data(s)};
    derived_item *thing = NULL;
    assert_int_equal(tare__derive(s, &key, refuse, NULL, &thing, NULL), TARE_UNSUPPORTED);
    assert_null(thing);
    thing = get(s, 0);
    tare__derived_release(thing);
    tare__storage_release(s);
    for (long n = 1; n <= 2; n++) {
        s = bytes_1_to_4();
        tare__alloc_fail_at(n);
        assert_int_equal(
            tare__derive(s, &key, make, (void *)(uintptr_t)tare__storage_data(s), &thing, NULL),
            TARE_OUT_OF_MEMORY);
        tare__alloc_fail_at(0);
        tare__storage_release(s);
    }
    assert_int_equal(atomic_load(&alive), 0);
}

static void test_offers(void **state) {
    (void)state;
    storage *s = bytes_1_to_4();
    const unsigned char *data = tare__storage_data(s);
    const derived_key key = {.data = data, .numbers = {7}};
    CHECK_OK(tare__derive_offer(s, &key, (derived_offer){data + 8, 4}, NULL));
    CHECK_OK(tare__derive_offer(s, &key, (derived_offer){data + 64, 16}, NULL));
    derived_item *thing = get(s, 7);
    assert_ptr_equal(offer_seen.data, data + 64);
    assert_int_equal(offer_seen.size, 16);
    tare__derived_release(thing);
    thing = get(s, 8);
    assert_null(offer_seen.data);
    tare__derived_release(thing);
    tare__storage_release(s);
}

// --- memory of things ---

typedef struct large_thing {
    derived_item base;
    derived_memory *memory;
    unsigned char *bytes;
    size_t size;
} large_thing;

static void destroy_large(derived_item *thing) {
    tare__derived_memory_release(((large_thing *)(void *)thing)->memory);
    tare__free(thing);
}

typedef struct large_request {
    storage *of;
    size_t size;
} large_request;

static tare_status make_large(void *user, derived_offer offer, derived_item **out,
                              tare_error *err) {
    const large_request *r = user;
    large_thing *t = tare__alloc_zeroed(1, sizeof *t);
    (void)offer;
    if (t == NULL) return tare__out_of_memory(err);
    t->base.destroy = destroy_large;
    t->bytes = tare__derived_alloc(r->of, r->size, &t->memory);
    t->size = r->size;
    if (t->bytes == NULL) {
        tare__free(t);
        return tare__out_of_memory(err);
    }
    memset(t->bytes, (int)(r->size % 251), r->size);
    *out = &t->base;
    return TARE_OK;
}

static void check_bytes(const large_thing *t) {
    assert_int_equal((uintptr_t)t->bytes % 64, 0);
    for (size_t i = 0; i < t->size; i += i + 1 < t->size ? t->size - 1 : 1)
        assert_int_equal(t->bytes[i], t->size % 251);
}

// Things of small and large storages, made and released in turns: none runs into another.
static void check_memory(size_t storage_size) {
    enum { THINGS = 12 };
    static const size_t sizes[THINGS] = {1,       64,      100000,  3 << 20, 65,      9 << 20,
                                         2 << 20, 7 << 20, 5 << 20, 1 << 20, 4 << 20, 63};
    storage *s = tare__storage_create(storage_size);
    large_thing *things[THINGS] = {NULL};
    assert_non_null(s);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < THINGS; i++) {
            large_request r = {s, sizes[i]};
            const derived_key key = {.data = tare__storage_data(s), .numbers = {i}};
            derived_item *thing = NULL;
            if (things[i] != NULL) continue;
            CHECK_OK(tare__derive(s, &key, make_large, &r, &thing, NULL));
            things[i] = (large_thing *)(void *)thing;
        }
        for (size_t i = 0; i < THINGS; i++) check_bytes(things[i]);
        for (size_t i = 0; i < THINGS; i++) {
            if (round < 2 && i % 2 == (size_t)round) continue;
            tare__derived_release(&things[i]->base);
            things[i] = NULL;
        }
    }
    tare__storage_release(s);
}

static void test_memory(void **state) {
    (void)state;
    check_memory(100);
    check_memory((size_t)16 << 20);
}

enum { THREADS = 4, ROUNDS = 2000 };

static void *use_often(void *user) {
    storage *s = user;
    const unsigned char *bytes = tare__storage_data(s);
    for (int i = 0; i < ROUNDS; i++) {
        const derived_key key = {.data = bytes, .numbers = {(uint64_t)i % 3}};
        derived_item *thing = NULL;
        if (tare__derive(s, &key, make, (void *)(uintptr_t)bytes, &thing, NULL) != TARE_OK)
            return user;
        if (((sum_of_bytes *)(void *)thing)->sum != 10) return user;
        tare__derived_release(thing);
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    storage *s = bytes_1_to_4();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_often, s), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    tare__storage_release(s);
    assert_int_equal(atomic_load(&alive), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_until_the_last_user),
        cmocka_unit_test(test_failures_leave_nothing),
        cmocka_unit_test(test_offers),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
