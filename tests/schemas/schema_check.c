// SPDX-License-Identifier: Apache-2.0
// Checks JSON against a schema of docs/schemas, by the subset of JSON Schema (draft 7) that they
// use. A keyword that is not known is an error, so that no schema promises what nobody checks.
// usage: schema_check SCHEMA < DOCUMENT
//        schema_check --strangers SCHEMA DOCUMENT..    for every object of the documents whose keys
//        the
//            schema lists: a line with these keys, sorted, and a line with the document in which
//            that object has a key more, "~"; for lists of keys that no document uses: a line
//            "unused KEYS"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

// Where closed objects are met, when they are asked for. Three of each schema are enough.
enum { MOST_VISITS = 3 };
typedef struct visited {
    const json_t *schema;
    int times;
} visited;
typedef struct visitor {
    json_t *document;
    visited *seen;
    size_t count;
} visitor;

typedef struct checker {
    const json_t *root; // of the schema, for $ref
    const char *folder; // of other schemas
    visitor *visitor;   // NULL: none
    char path[512];
    char message[1024]; // of the first fault
} checker;

static bool fault(checker *c, const char *what) {
    if (c->message[0] == '\0')
        (void)snprintf(c->message, sizeof c->message, "$%s: %s", c->path, what);
    return false;
}

static bool is_of_type(const json_t *value, const char *type) {
    if (strcmp(type, "object") == 0) return json_is_object(value);
    if (strcmp(type, "array") == 0) return json_is_array(value);
    if (strcmp(type, "string") == 0) return json_is_string(value);
    if (strcmp(type, "integer") == 0) return json_is_integer(value);
    if (strcmp(type, "number") == 0) return json_is_number(value);
    if (strcmp(type, "boolean") == 0) return json_is_boolean(value);
    if (strcmp(type, "null") == 0) return json_is_null(value);
    (void)fprintf(stderr, "the schema has the unknown type '%s'\n", type);
    exit(2);
}

static bool check(checker *c, const json_t *schema, const json_t *value);

static bool check_below(checker *c, const json_t *schema, const json_t *value, const char *key) {
    const size_t length = strlen(c->path);
    (void)snprintf(c->path + length, sizeof c->path - length, ".%s", key);
    const bool is_good = check(c, schema, value);
    c->path[length] = '\0';
    return is_good;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_keys(const json_t *properties) {
    const char *names[128], *key = NULL;
    size_t count = 0;
    json_t *rule = NULL;
    json_object_foreach((json_t *)properties, key, rule) {
        if (strcmp(key, "$schema") == 0) continue; // for editors, on top of every document
        if (count < sizeof names / sizeof *names) names[count++] = key;
    }
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) (void)printf("%s%s", i > 0 ? " " : "", names[i]);
    (void)printf("\n");
}

static visited *find_visited(const visitor *v, const json_t *schema) {
    for (size_t i = 0; i < v->count; i++)
        if (v->seen[i].schema == schema) return &v->seen[i];
    return NULL;
}

static void visit(visitor *v, const json_t *schema, const json_t *value) {
    visited *known = find_visited(v, schema);
    if (known == NULL) {
        v->seen = realloc(v->seen, (v->count + 1) * sizeof(visited));
        if (v->seen == NULL) exit(2);
        known = &v->seen[v->count++];
        *known = (visited){.schema = schema};
    }
    if (known->times == MOST_VISITS) return;
    known->times++;
    print_keys(json_object_get(schema, "properties"));
    (void)json_object_set_new((json_t *)value, "~", json_integer(0));
    (void)json_dumpf(v->document, stdout, JSON_COMPACT);
    (void)printf("\n");
    (void)json_object_del((json_t *)value, "~");
}

static bool check_properties(checker *c, const json_t *schema, const json_t *value) {
    if (c->visitor != NULL && json_is_false(json_object_get(schema, "additionalProperties")))
        visit(c->visitor, schema, value);
    const json_t *known = json_object_get(schema, "properties");
    const json_t *more = json_object_get(schema, "additionalProperties");
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)value, key, item) {
        const json_t *rule = json_object_get(known, key);
        char what[128];
        (void)snprintf(what, sizeof what, "the key '%.60s' is not in the schema", key);
        if (rule == NULL && json_is_false(more)) return fault(c, what);
        if (rule == NULL && json_is_object(more)) rule = more;
        if (rule != NULL && !check_below(c, rule, item, key)) return false;
    }
    return true;
}

static bool check_required(checker *c, const json_t *required, const json_t *value) {
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *key = json_string_value(json_array_get(required, i));
        char what[128];
        (void)snprintf(what, sizeof what, "the key '%.60s' is missing", key);
        if (json_object_get(value, key) == NULL) return fault(c, what);
    }
    return true;
}

// One rule for all items, or one for each.
static bool check_items(checker *c, const json_t *rule, const json_t *value) {
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *own = json_is_array(rule) ? json_array_get(rule, i) : rule;
        char index[24];
        (void)snprintf(index, sizeof index, "%zu", i);
        if (own != NULL && !check_below(c, own, json_array_get(value, i), index)) return false;
    }
    return true;
}

static bool is_among(const json_t *values, const json_t *value) {
    for (size_t i = 0; i < json_array_size(values); i++)
        if (json_equal(json_array_get(values, i), value)) return true;
    return false;
}

static bool fits_any(const json_t *rules, const json_t *value, checker *c) {
    checker inner = {.root = c->root};
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const json_t *rule = json_array_get(rules, i);
        inner = (checker){.root = c->root, .folder = c->folder};
        memcpy(inner.path, c->path, sizeof inner.path);
        if (check(&inner, rule, value)) return c->visitor == NULL || check(c, rule, value);
    }
    return fault(c, inner.message[0] != '\0' ? inner.message : "fits none of anyOf");
}

static size_t length_of(const json_t *value) {
    return json_is_string(value) ? json_string_length(value) : json_array_size(value);
}

// "FILE.json", beside this schema; kept until the end.
static bool fits_file(checker *c, const char *name, const json_t *value) {
    static struct {
        char path[512];
        json_t *schema;
    } known[8];
    const json_t *own = c->root;
    char path[512];
    size_t i = 0;
    (void)snprintf(path, sizeof path, "%s/%s", c->folder, name);
    while (i < 7 && known[i].schema != NULL && strcmp(known[i].path, path) != 0) i++;
    if (known[i].schema == NULL) {
        known[i].schema = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
        memcpy(known[i].path, path, sizeof path);
    }
    c->root = known[i].schema;
    const bool fits = c->root != NULL && check(c, c->root, value);
    c->root = own;
    return fits || fault(c, "does not fit the schema of another file");
}

// "#/definitions/NAME", "#", or another file.
static bool fits_reference(checker *c, const char *reference, const json_t *value) {
    static const char prefix[] = "#/definitions/";
    const json_t *rule = NULL;
    if (reference[0] != '#') return fits_file(c, reference, value);
    if (strcmp(reference, "#") == 0) return check(c, c->root, value);
    if (strncmp(reference, prefix, sizeof prefix - 1) == 0)
        rule =
            json_object_get(json_object_get(c->root, "definitions"), reference + sizeof prefix - 1);
    if (rule != NULL) return check(c, rule, value);
    (void)fprintf(stderr, "the schema has no '%s'\n", reference);
    exit(2);
}

// One type, or one of a list.
static bool is_of_types(const json_t *value, const json_t *types) {
    if (json_is_string(types)) return is_of_type(value, json_string_value(types));
    for (size_t i = 0; i < json_array_size(types); i++)
        if (is_of_type(value, json_string_value(json_array_get(types, i)))) return true;
    return false;
}

/// One keyword of a schema. Keywords that do not concern a value of this type hold.
static bool check_keyword(checker *c, const json_t *schema, const char *key, const json_t *rule,
                          const json_t *value) {
    if (strcmp(key, "$schema") == 0 || strcmp(key, "title") == 0 ||
        strcmp(key, "description") == 0 || strcmp(key, "definitions") == 0)
        return true;
    if (strcmp(key, "$ref") == 0) return fits_reference(c, json_string_value(rule), value);
    if (strcmp(key, "type") == 0) return is_of_types(value, rule) || fault(c, "another type");
    // It reads `properties` too; where that stands, both are looked at once.
    if (strcmp(key, "additionalProperties") == 0 && json_object_get(schema, "properties") != NULL)
        return true;
    if (strcmp(key, "properties") == 0 || strcmp(key, "additionalProperties") == 0)
        return !json_is_object(value) || check_properties(c, schema, value);
    if (strcmp(key, "required") == 0)
        return !json_is_object(value) || check_required(c, rule, value);
    if (strcmp(key, "items") == 0) return !json_is_array(value) || check_items(c, rule, value);
    if (strcmp(key, "enum") == 0) return is_among(rule, value) || fault(c, "not in the enum");
    if (strcmp(key, "const") == 0) return json_equal(rule, value) || fault(c, "not the constant");
    if (strcmp(key, "anyOf") == 0) return fits_any(rule, value, c);
    if (strcmp(key, "minimum") == 0)
        return !json_is_number(value) || json_number_value(value) >= json_number_value(rule) ||
               fault(c, "too small");
    if (strcmp(key, "maximum") == 0)
        return !json_is_number(value) || json_number_value(value) <= json_number_value(rule) ||
               fault(c, "too large");
    if (strcmp(key, "minItems") == 0 || strcmp(key, "minLength") == 0)
        return length_of(value) >= (size_t)json_integer_value(rule) || fault(c, "too short");
    if (strcmp(key, "maxItems") == 0 || strcmp(key, "maxLength") == 0)
        return length_of(value) <= (size_t)json_integer_value(rule) || fault(c, "too long");
    (void)fprintf(stderr, "the schema has the unknown keyword '%s'\n", key);
    exit(2);
}

static bool check(checker *c, const json_t *schema, const json_t *value) {
    const char *key = NULL;
    json_t *rule = NULL;
    json_object_foreach((json_t *)schema, key, rule) {
        if (!check_keyword(c, schema, key, rule, value)) return false;
    }
    return true;
}

static void print_unused(const visitor *v, const json_t *schema) {
    const char *key = NULL;
    json_t *item = NULL;
    const json_t *properties = json_object_get(schema, "properties");
    const bool is_closed = json_is_false(json_object_get(schema, "additionalProperties"));
    if (is_closed && properties != NULL && find_visited(v, schema) == NULL) {
        (void)printf("unused ");
        print_keys(properties);
    }
    for (size_t i = 0; i < json_array_size(schema); i++) print_unused(v, json_array_get(schema, i));
    if (!json_is_object(schema)) return;
    json_object_foreach((json_t *)schema, key, item) {
        print_unused(v, item);
    }
}

static void find_folder(const char *path, char out[512]) {
    const char *slash = strrchr(path, '/');
    (void)snprintf(out, 512, "%.*s", slash != NULL ? (int)(slash - path) : 1,
                   slash != NULL ? path : ".");
}

static int print_strangers(int argc, char **argv) {
    json_t *schema = argc > 2 ? json_load_file(argv[2], JSON_REJECT_DUPLICATES, NULL) : NULL;
    visitor v = {0};
    char folder[512];
    if (schema == NULL) return 2;
    find_folder(argv[2], folder);
    for (int i = 3; i < argc; i++) {
        v.document = json_load_file(argv[i], JSON_REJECT_DUPLICATES, NULL);
        checker c = {.root = schema, .folder = folder, .visitor = &v};
        if (v.document == NULL || !check(&c, schema, v.document)) {
            (void)fprintf(stderr, "%s: %s\n", argv[i], c.message);
            return 1;
        }
        json_decref(v.document);
    }
    print_unused(&v, schema);
    free(v.seen);
    json_decref(schema);
    return 0;
}

int main(int argc, char **argv) {
    json_error_t error;
    if (argc > 1 && strcmp(argv[1], "--strangers") == 0) return print_strangers(argc, argv);
    if (argc != 2) return 2;
    char folder[512];
    find_folder(argv[1], folder);
    json_t *schema = json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(schema)) {
        (void)fprintf(stderr, "%s: %s\n", argv[1], error.text);
        return 2;
    }
    json_t *document = json_loadf(stdin, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    checker c = {.root = schema, .folder = folder};
    int status = 0;
    if (document == NULL) {
        (void)fprintf(stderr, "the document is no JSON: line %d: %s\n", error.line, error.text);
        status = 1;
    } else if (!check(&c, schema, document)) {
        (void)fprintf(stderr, "%s\n", c.message);
        status = 1;
    }
    json_decref(document);
    json_decref(schema);
    return status;
}
