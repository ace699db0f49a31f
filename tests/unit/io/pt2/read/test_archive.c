// SPDX-License-Identifier: Apache-2.0
// Archives and programs that lie: each is refused by one error that says where, what and what to
// do.
#include "support/models.h"
#include "support/pt2_bytes.h"
#include "support/test.h"

#include <zlib.h>

#include "io/pt2/pt2.h"

static void programs_that_contradict_themselves_are_refused(void **state) {
    (void)state;
    static const char *const changes[][3] = {
        {"\"major\": 8", "\"major\": 9", "schema version 9"},
        {"\"schema_version\"", "\"no_version\"", "$.schema_version"},
        {"\"graph_module\"", "\"graph\"", "$.graph_module"},
        {"{\"as_tensor\": {\"name\": \"mul\"}}, \"kind\"",
         "{\"as_tensor\": {\"name\": \"none\"}}, \"kind\"", "no earlier node gives"},
        {"\"parameter_name\": \"a.w\"", "\"parameter_name\": \"a.v\"", "no data of 'a.v'"},
        {"\"parameter_name\": \"a.w\"", "\"parameter_name\": \"a.tied\"", "occurs twice"},
        {"{\"user_input\"", "{\"token\"", "'token' are not supported"},
        {"{\"user_output\"", "{\"loss_output\"", "'loss_output' are not supported"},
        {"\"buffer_name\": \"b\"}}, {\"user_output\"", "\"buffer_name\": \"c\"}}, {\"user_output\"",
         "no input of the program"},
        {"torch.ops.aten.split.Tensor", "torch.ops.higher_order.hints",
         "'torch.ops.higher_order.hints' are not supported"},
        {"{\"as_int\": 2}, \"kind\"", "{\"as_graph\": 2}, \"kind\"", "expected an object"},
        {"{\"as_int\": 2}, \"kind\"", "{\"as_int\": 2, \"as_none\": 1}, \"kind\"", "one key"},
        {"{\"as_int\": 2}, \"kind\"", "{\"as_scalar_type\": 99}, \"kind\"", "code 99"},
        {"\"name\": \"view\", \"target\"", "\"name\": \"mul\", \"target\"",
         "cannot be named 'mul'"},
        {"L__self__a,a,torch", "L__self__a;torch", "too few fields"},
        {"[\\\\\\\"x\\\\\\\"]", "[]", "do not make 1 names"},
        {"\"forward_arg_names\": [\"x\"]", "\"forward_arg_names\": [\"x y\"]", "is no name"},
        {"\"nodes\": [", "\"nodes\": [[", "models/model.json"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        pt2_check_changed(PT2_PROGRAM, changes[i][0], changes[i][1], changes[i][2]);
}

static void tables_that_do_not_fit_their_records_are_refused(void **state) {
    (void)state;
    static const char *const changes[][3] = {
        {"\"weight_0\"", "\"weight_9\"", "no member 'data/weights/weight_9'"},
        {"\"weight_0\"", "\"../../weight_0\"", "no member"},
        {"\"weight_0\"", "\"/etc/passwd\"", "no member"},
        {"\"use_pickle\": false", "\"use_pickle\": true", "Python pickle"},
        {"\"dtype\": 7", "\"dtype\": 31", "code 31"},
        {"\"dtype\": 7", "\"dtype\": -1", "code -1"},
        {"{\"as_int\": 2}, {\"as_int\": 2}], \"strides\"",
         "{\"as_int\": 3}, {\"as_int\": 2}], \"strides\"", "reaches beyond"},
        {"{\"as_int\": 2}, {\"as_int\": 2}], \"strides\"",
         "{\"as_int\": 4611686018427387904}, {\"as_int\": 4611686018427387904}], \"strides\"",
         "the product of the sizes overflows"},
        {"{\"as_int\": 2}, {\"as_int\": 2}], \"strides\"",
         "{\"as_int\": -2}, {\"as_int\": 2}], \"strides\"", "negative"},
        {"{\"as_int\": 2}, {\"as_int\": 2}], \"strides\"",
         "{\"as_expr\": {}}, {\"as_int\": 2}], \"strides\"", "numbers"},
        {"{\"as_int\": 1}, {\"as_int\": 2}]", "{\"as_int\": 9223372036854775807}, {\"as_int\": 2}]",
         "reaches beyond"},
        {"{\"as_int\": 1}, {\"as_int\": 2}]", "{\"as_int\": 1}]", "1 strides for 2"},
        {"\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_int\": 2}",
         "reaches beyond"},
        {"\"storage_offset\": {\"as_int\": 0}",
         "\"storage_offset\": {\"as_int\": 9223372036854775807}", "reaches beyond"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        pt2_check_changed(PT2_WEIGHTS, changes[i][0], changes[i][1], changes[i][2]);
    pt2_member members[PT2_MEMBERS];
    memcpy(members, pt2_plain, sizeof members);
    members[PT2_WEIGHT_0].size = 15;
    pt2_check_refused_members(
        members, PT2_MEMBERS,
        "size 15 is not a multiple of element size 4 for dtype torch.float32");
    // A dimension of stride 0 makes much out of little.
    pt2_check_changed(
        PT2_WEIGHTS,
        "{\"as_int\": 2}, {\"as_int\": 2}], \"strides\": [{\"as_int\": 1}, {\"as_int\": 2}]",
        "{\"as_int\": 1000000000000}, {\"as_int\": 2}], \"strides\": [{\"as_int\": 0}, "
        "{\"as_int\": 2}]",
        "too many");
}

static void archives_that_lie_are_refused(void **state) {
    (void)state;
    static const struct {
        int which;
        const char *name, *words;
    } renamed[] = {
        {PT2_WEIGHT_1, "net/../weight_1", "leads out of the archive"},
        {PT2_WEIGHT_1, "/net/weight_1", "leads out of the archive"},
        {PT2_WEIGHT_1, "net/a\\b", "leads out of the archive"},
        {PT2_WEIGHT_1, "net/C:x", "leads out of the archive"},
        {PT2_WEIGHT_1, "net//x", "leads out of the archive"},
        {PT2_WEIGHT_1, "other/data/weights/weight_1", "outside of the archive's folder 'net'"},
        {PT2_WEIGHT_1, "net/data/weights/weight_0", "occurs twice"},
        {PT2_WEIGHT_1, "net/data/weights/weight_2", "no member 'data/weights/weight_1'"},
        {PT2_PROGRAM, "net/models/model.txt", "no member 'models/*.json'"},
        {PT2_WEIGHTS, "net/data/weights/model.pt", "Python pickle"},
    };
    pt2_member members[PT2_MEMBERS];
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        memcpy(members, pt2_plain, sizeof members);
        members[renamed[i].which].name = renamed[i].name;
        pt2_check_refused_members(members, PT2_MEMBERS, renamed[i].words);
    }
    memcpy(members, pt2_plain, sizeof members);
    members[PT2_FORMAT] = (pt2_member)PT2_TEXT("net/archive_format", "pt3");
    pt2_check_refused_members(members, PT2_MEMBERS, "format is 'pt3'");
    members[PT2_FORMAT] = (pt2_member)PT2_TEXT("net/archive_version", "1");
    pt2_check_refused_members(members, PT2_MEMBERS, "version 1");
    members[PT2_FORMAT] = (pt2_member)PT2_TEXT("net/byteorder", "big");
    pt2_check_refused_members(members, PT2_MEMBERS, "byte order 'big'");
}

// Whatever is left of a file, it is an error and never a crash.
static void truncated_archives_are_refused(void **state) {
    (void)state;
    zip_memory bytes = pt2_pack(pt2_plain, PT2_MEMBERS);
    for (size_t size = 0; size < bytes.size; size++) {
        unsigned char *copy = malloc(size + 1); // exactly as large: reads past the end are seen
        module *root = NULL;
        assert_non_null(copy);
        memcpy(copy, bytes.data, size);
        const zip_memory cut = {.data = copy, .size = size};
        if (pt2_read_bytes(&cut, &root, NULL) == TARE_OK)
            fail_msg("%zu of %zu bytes were read", size, bytes.size);
        if (size > 100 && !tare__pt2_is_archive(copy, size))
            fail_msg("%zu of %zu bytes are not recognized", size, bytes.size);
        free(copy);
    }
    tare__free(bytes.data);
}

static void a_damaged_record_does_not_match_its_checksum(void **state) {
    (void)state;
    zip_memory bytes = pt2_pack(pt2_plain, PT2_MEMBERS);
    const pt2_member *plain = &pt2_plain[PT2_WEIGHT_0];
    module *root = NULL;
    for (size_t i = 0; i + plain->size <= bytes.size; i++)
        if (memcmp(bytes.data + i, plain->bytes, plain->size) == 0) bytes.data[i] ^= 1;
    CHECK_REFUSED(pt2_read_bytes(&bytes, &root, job_error()), TARE_MALFORMED_FILE, "checksum");
    tare__free(bytes.data);
}

// Changes the checksum of a member where a header of this kind names it.
static void change_checksum(zip_memory *bytes, const char *kind, size_t checksum_at, size_t name_at,
                            const char *name) {
    for (size_t i = 0; i + name_at + strlen(name) <= bytes->size; i++)
        if (memcmp(bytes->data + i, kind, 4) == 0 &&
            memcmp(bytes->data + i + name_at, name, strlen(name)) == 0)
            bytes->data[i + checksum_at] ^= 1;
}

static void an_inflated_record_is_held_against_its_checksum(void **state) {
    (void)state;
    pt2_member members[PT2_MEMBERS];
    memcpy(members, pt2_plain, sizeof members);
    members[PT2_WEIGHT_0].method = Z_DEFLATED;
    zip_memory bytes = pt2_pack(members, PT2_MEMBERS);
    module *root = NULL;
    CHECK_DONE(pt2_read_bytes(&bytes, &root, job_error()));
    tare__module_release(root);
    root = NULL;
    change_checksum(&bytes, "PK\3\4", 14, 30, members[PT2_WEIGHT_0].name);
    change_checksum(&bytes, "PK\1\2", 16, 46, members[PT2_WEIGHT_0].name);
    CHECK_REFUSED(pt2_read_bytes(&bytes, &root, job_error()), TARE_MALFORMED_FILE, "checksum");
    tare__free(bytes.data);
}

// --- archives by hand, whose directory says what we like ---

typedef struct lie {
    const char *words;
    uint64_t size, packed, offset; // of one member, in the 64-bit extra field; 0: the truth
    uint64_t entry_count, directory_size, directory_offset; // in the 64-bit end; 0: the truth
    uint16_t extra_length;                                  // that the field claims; 0: the truth
    bool has_big_end;
} lie;

typedef struct builder {
    unsigned char bytes[16384];
    size_t size;
} builder;

static void put(builder *b, uint64_t number, size_t width) {
    assert_true(b->size + width <= sizeof b->bytes);
    for (size_t i = 0; i < width; i++, number >>= 8)
        b->bytes[b->size++] = (unsigned char)(number & 0xFF);
}

static void put_chars(builder *b, const void *chars, size_t size) {
    assert_true(b->size + size <= sizeof b->bytes);
    memcpy(b->bytes + b->size, chars, size);
    b->size += size;
}

static void put_head(builder *b, const pt2_member *p, bool is_big) {
    put(b, 45, 2);
    put(b, 0, 2 + 2 + 2 + 2); // flags, method, time and date
    put(b, crc32_z(0, p->bytes, p->size), 4);
    put(b, is_big ? UINT32_MAX : p->size, 4);
    put(b, is_big ? UINT32_MAX : p->size, 4);
    put(b, strlen(p->name), 2);
}

static void put_entry(builder *b, const pt2_member *p, uint64_t offset, const lie *l) {
    const bool is_big = l != NULL && (l->size | l->packed | l->offset | l->extra_length) != 0;
    put_chars(b, "PK\1\2", 4);
    put(b, 45, 2);
    put_head(b, p, is_big);
    put(b, is_big ? 28 : 0, 2);
    put(b, 0, 2 + 2 + 2);
    put(b, 0, 4);
    put(b, is_big ? UINT32_MAX : offset, 4);
    put_chars(b, p->name, strlen(p->name));
    if (!is_big) return;
    put(b, 1, 2);
    put(b, l->extra_length != 0 ? l->extra_length : 24, 2);
    put(b, l->size != 0 ? l->size : p->size, 8);
    put(b, l->packed != 0 ? l->packed : p->size, 8);
    put(b, l->offset != 0 ? l->offset : offset, 8);
}

static void put_end(builder *b, uint64_t begin, size_t count, const lie *l) {
    const uint64_t end = b->size;
    const uint64_t entries = l->entry_count != 0 ? l->entry_count : count;
    const uint64_t size = l->directory_size != 0 ? l->directory_size : end - begin;
    const uint64_t offset = l->directory_offset != 0 ? l->directory_offset : begin;
    if (l->has_big_end) {
        put_chars(b, "PK\6\6", 4);
        put(b, 44, 8);
        put(b, 45, 2 + 2);
        put(b, 0, 4 + 4);
        put(b, entries, 8);
        put(b, entries, 8);
        put(b, size, 8);
        put(b, offset, 8);
        put_chars(b, "PK\6\7", 4);
        put(b, 0, 4);
        put(b, end, 8);
        put(b, 1, 4);
    }
    put_chars(b, "PK\5\6", 4);
    put(b, 0, 4);
    put(b, l->has_big_end ? UINT16_MAX : entries, 2);
    put(b, l->has_big_end ? UINT16_MAX : entries, 2);
    put(b, l->has_big_end ? UINT32_MAX : size, 4);
    put(b, l->has_big_end ? UINT32_MAX : offset, 4);
    put(b, 0, 2);
}

// The plain program, everything stored; the lie is about its first weights.
static void build(builder *b, const lie *l) {
    uint64_t offsets[PT2_MEMBERS];
    b->size = 0;
    for (size_t i = 0; i < PT2_MEMBERS; i++) {
        offsets[i] = b->size;
        put_chars(b, "PK\3\4", 4);
        put_head(b, &pt2_plain[i], false);
        put(b, 0, 2);
        put_chars(b, pt2_plain[i].name, strlen(pt2_plain[i].name));
        put_chars(b, pt2_plain[i].bytes, pt2_plain[i].size);
    }
    const uint64_t begin = b->size;
    for (size_t i = 0; i < PT2_MEMBERS; i++)
        put_entry(b, &pt2_plain[i], offsets[i], i == PT2_WEIGHT_0 ? l : NULL);
    put_end(b, begin, PT2_MEMBERS, l);
}

static void sizes_of_64_bits_may_be_true(void **state) {
    (void)state;
    static const lie truths[] = {{0}, {.extra_length = 24}, {.has_big_end = true}};
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
        builder b;
        module *root = NULL;
        build(&b, &truths[i]);
        const zip_memory bytes = {.data = b.bytes, .size = b.size};
        CHECK_DONE(pt2_read_bytes(&bytes, &root, job_error()));
        tare__module_release(root);
    }
}

static void sizes_of_64_bits_may_be_lies(void **state) {
    (void)state;
    static const lie lies[] = {
        {.size = UINT64_C(1) << 63, .words = "is stored in another size than its own"},
        {.packed = UINT64_C(1) << 63, .words = "is said to take 9223372036854775808 bytes"},
        {.packed = UINT64_MAX, .words = "is said to take 18446744073709551615 bytes"},
        {.size = 1, .packed = 15, .words = "is stored in another size than its own"},
        {.size = 1 << 20, .packed = 1 << 20, .words = "bytes, and there are"},
        {.offset = UINT64_C(1) << 63, .words = "does not stand where the directory says"},
        {.offset = UINT64_MAX - 1, .words = "does not stand where the directory says"},
        {.offset = 1, .words = "does not stand where the directory says"},
        {.extra_length = 0xFFF0, .words = "no field that holds them"},
        {.has_big_end = true, .entry_count = UINT64_MAX, .words = "directory ends after 5 members"},
        {.has_big_end = true, .entry_count = 6, .words = "directory ends after 5 members"},
        {.has_big_end = true, .entry_count = 3, .words = "no member 'data/weights/weight_0'"},
        {.has_big_end = true, .directory_offset = UINT64_MAX, .words = "no directory at its end"},
        {.has_big_end = true, .directory_offset = UINT64_C(1) << 40, .words = ""},
        {.has_big_end = true, .directory_size = UINT64_MAX, .words = ""},
        {.entry_count = 3, .words = "no member 'data/weights/weight_0'"},
        {.directory_offset = 1, .words = ""},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        builder b;
        build(&b, &lies[i]);
        // Exactly as large: reads past the end are seen.
        unsigned char *copy = malloc(b.size);
        assert_non_null(copy);
        memcpy(copy, b.bytes, b.size);
        const zip_memory bytes = {.data = copy, .size = b.size};
        pt2_check_refused(&bytes, lies[i].words);
        free(copy);
    }
}

static void deep_json_is_refused(void **state) {
    (void)state;
    static const int changed[] = {PT2_PROGRAM, PT2_WEIGHTS};
    for (size_t i = 0; i < 2; i++) {
        pt2_member members[PT2_MEMBERS];
        text deep = {0};
        memcpy(members, pt2_plain, sizeof members);
        for (int k = 0; k < 100000; k++) tare__text_append(&deep, "{\"a\": [");
        members[changed[i]].bytes = tare__text_chars(&deep);
        members[changed[i]].size = deep.length;
        pt2_check_refused_members(members, PT2_MEMBERS, "expected at most 64 levels of nesting");
        tare__text_release(&deep);
    }
    // What stands in a string is JSON too.
    text tree = {0};
    tare__text_append(&tree, "\"in_spec\": \"");
    for (int k = 0; k < 1000; k++) tare__text_char(&tree, '[');
    pt2_check_changed(PT2_PROGRAM, "\"in_spec\": \"[1", tare__text_chars(&tree),
                      "expected at most 64 levels of nesting");
    tare__text_release(&tree);
}

// A deflated member that is said to hold much more than deflate can pack, or that does.
static void bombs_are_refused(void **state) {
    (void)state;
    pt2_member members[PT2_MEMBERS];
    memcpy(members, pt2_plain, sizeof members);
    zip_memory bytes = pt2_pack(members, PT2_MEMBERS);
    const char *name = "net/data/weights/weight_1";
    const size_t length = strlen(name);
    for (size_t i = 46; i + length <= bytes.size; i++)
        if (memcmp(bytes.data + i, name, length) == 0 &&
            memcmp(bytes.data + i - 46, "PK\1\2", 4) == 0)
            memset(bytes.data + i - 46 + 24, 0x7F, 4); // the size when unpacked
    pt2_check_refused(&bytes, "claims to hold more than deflate can pack");
    tare__free(bytes.data);
}

static tare_status read_within(const zip_memory *bytes, uint64_t limit) {
    module *root = NULL;
    storage *store = tare__storage_adopt(bytes->data, bytes->size, NULL, NULL);
    const tare_status status =
        tare__pt2_read(store, bytes->data, bytes->size, &tare__context_or_builtin(NULL)->classes,
                       limit, &root, job_error());
    tare__storage_release(store);
    tare__module_release(root);
    return status;
}

// 4 floats are deflated, and 4 are put in another order.
static void tensors_are_held_to_the_limit(void **state) {
    (void)state;
    zip_memory bytes = pt2_pack(pt2_plain, PT2_MEMBERS);
    CHECK_DONE(read_within(&bytes, 32));
    CHECK_REFUSED(read_within(&bytes, 31), TARE_LIMIT_EXCEEDED, "would take 16 bytes");
    CHECK_REFUSED(read_within(&bytes, 31), TARE_LIMIT_EXCEEDED, "--max-memory");
    CHECK_REFUSED(read_within(&bytes, 15), TARE_LIMIT_EXCEEDED, "member 'data/weights/weight_1'");
    tare__free(bytes.data);
}

// A record that no tensor needs counts as well: the directory tells, before anything is read.
static void archives_are_held_to_the_limit_before_anything_is_read(void **state) {
    (void)state;
    pt2_member members[PT2_MEMBERS + 1];
    void *zeros = calloc(1, 1 << 20);
    memcpy(members, pt2_plain, sizeof pt2_plain);
    members[PT2_PROGRAM].bytes = "no program";
    members[PT2_PROGRAM].size = 10;
    members[PT2_MEMBERS] = (pt2_member){"net/data/weights/weight_9", zeros, 1 << 20, Z_DEFLATED};
    zip_memory bytes = pt2_pack(members, PT2_MEMBERS + 1);
    CHECK_REFUSED(read_within(&bytes, 1 << 20), TARE_LIMIT_EXCEEDED,
                  "weight_9' would take 1.0 MiB");
    tare__free(bytes.data);
    free(zeros);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_that_contradict_themselves_are_refused),
        cmocka_unit_test(tables_that_do_not_fit_their_records_are_refused),
        cmocka_unit_test(archives_that_lie_are_refused),
        cmocka_unit_test(truncated_archives_are_refused),
        cmocka_unit_test(a_damaged_record_does_not_match_its_checksum),
        cmocka_unit_test(an_inflated_record_is_held_against_its_checksum),
        cmocka_unit_test(sizes_of_64_bits_may_be_true),
        cmocka_unit_test(sizes_of_64_bits_may_be_lies),
        cmocka_unit_test(deep_json_is_refused),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(tensors_are_held_to_the_limit),
        cmocka_unit_test(archives_are_held_to_the_limit_before_anything_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
