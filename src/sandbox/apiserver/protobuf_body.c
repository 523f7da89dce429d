#include "sandbox/apiserver/protobuf_body.h"

#include <ctype.h>
#include <math.h>

#include "base/base64.h"
#include "base/map.h"
#include "base/timestamp.h"
#include "base/utf8.h"
#include "format/gofloat.h"
#include "format/protobuf.h"
#include "sandbox/apiserver/builtin_types_table.h"

/* A field of a message, as the table describes it. */
struct message_field {
    struct str name;
    uint32_t outer;  /* number of the embedded message whose fields stand in ours; 0 = none */
    uint32_t number; /* 0 = not in protobuf */
    bool keep_zero;  /* 0, "" and false are values and not the absence of one */
    struct str type; /* "s", "[@core.v1.Container]", "{q}", … */
};

struct message_type {
    uint32_t n;
    struct message_field *fields;
};

struct protobuf_body {
    struct arena *a;
    struct message_type **types; /* one a row of builtin_types; NULL until it is needed */
    struct tree **maps;          /* maps, as arrays of their entries until all have been read */
    uint32_t maps_n;
    uint32_t maps_cap;
    uint32_t depth;
    struct err *err;
};

/* ── the table ─────────────────────────────────────────────────────────────────────────────── */

/* "name!#2.7*:type": what builtin_types_table.h says. */
static struct message_field field_parse(struct str text)
{
    struct message_field field = { 0 };
    struct str head;
    struct str number;
    struct str more;
    (void)str_cut(text, STR(":"), &head, &field.type);       /* every field has one */
    (void)str_cut(field.type, STR("+"), &field.type, &more); /* how to merge is not for us */
    (void)str_cut(field.type, STR("~"), &field.type, &more); /* nor is the default */
    bool numbered = str_cut(head, STR("#"), &head, &number);
    field.keep_zero = str_cut_suffix(head, STR("!"), &field.name);
    field.keep_zero = str_cut_suffix(number, STR("*"), &number) || field.keep_zero;
    struct str outer;
    struct str inner;
    bool embedded = str_cut(number, STR("."), &outer, &inner);
    bool read = !numbered || (str_to_u32(embedded ? inner : outer, &field.number) &&
                              (!embedded || str_to_u32(outer, &field.outer)));
    ASSERT(read);
    return field;
}

static const struct message_type *message_type_find(struct protobuf_body *b, struct str name)
{
    uint32_t row = 0;
    while (row < builtin_types_n && !str_eq(str_from(builtin_types[row].name), name)) {
        row++;
    }
    ASSERT(row < builtin_types_n); /* the table is closed: it names nothing that it has not */
    if (b->types[row] != NULL) {
        return b->types[row];
    }
    struct message_type *type = ARENA_NEW(b->a, struct message_type);
    uint32_t cap = 0;
    struct str rest = str_from(builtin_types[row].fields);
    struct str text;
    while (rest.n > 0 && str_split_next(&rest, ' ', &text)) {
        ARENA_GROW(b->a, type->fields, type->n, cap);
        type->fields[type->n++] = field_parse(text);
    }
    b->types[row] = type;
    return type;
}

/* ── values ────────────────────────────────────────────────────────────────────────────────── */

static int body_wrong_wire(struct protobuf_body *b, const struct message_field *field,
                           enum protobuf_wire wire)
{
    /* Go's name of the field. */
    struct str name = str_eq(field->name, STR("metadata")) ? STR("ObjectMeta") : field->name;
    return err_set(b->err, ERR_INVALID, "proto: wrong wireType = %u for field %c" STR_FMT,
                   (unsigned)wire, toupper((unsigned char)name.p[0]),
                   STR_ARG(str_sub(name, 1, name.n - 1)));
}

/* Walks the fields of a small message whose fields are known by heart. */
static int body_small_message(struct protobuf_body *b, struct str bytes, uint64_t numbers[4],
                              struct str texts[4])
{
    struct protobuf_field part;
    int r;
    while ((r = protobuf_next(&bytes, &part, b->err)) > 0) {
        if (part.number < 4 && part.wire == PROTOBUF_VARINT) {
            numbers[part.number] = part.value;
        } else if (part.number < 4 && part.wire == PROTOBUF_BYTES) {
            texts[part.number] = part.bytes;
        }
    }
    return r;
}

static int body_text(struct protobuf_body *b, const struct message_field *field, struct str bytes,
                     struct tree **ret)
{
    if (utf8_find_invalid(bytes) != SIZE_MAX) {
        return err_set(b->err, ERR_INVALID, STR_FMT ": the text is no valid UTF-8",
                       STR_ARG(field->name));
    }
    *ret = tree_str(b->a, bytes);
    return 0;
}

/* {1: seconds, 2: nanoseconds}; an empty one is Go's zero time, which JSON leaves out. */
static int body_time(struct protobuf_body *b, struct str bytes, bool micro, struct tree **ret)
{
    uint64_t numbers[4] = { 0 };
    struct str texts[4] = { { 0 } };
    int r = body_small_message(b, bytes, numbers, texts);
    if (r < 0 || bytes.n == 0) {
        return r;
    }
    int64_t seconds = (int64_t)numbers[1];
    int64_t year_10000 = 253402300800;
    if (seconds < timestamp_zero.sec || seconds >= year_10000 || numbers[2] >= 1000000000) {
        return err_set(b->err, ERR_INVALID, "a time is outside of the years 1 to 9999");
    }
    char text[TIMESTAMP_TEXT_MAX];
    usec_t wall = SECONDS(seconds);
    *ret = tree_str(b->a, micro ? timestamp_print_micro(wall + (usec_t)(numbers[2] / 1000), text)
                                : timestamp_print_seconds(wall, text));
    return 0;
}

/* {1: text} */
static int body_quantity(struct protobuf_body *b, const struct message_field *field,
                         struct str bytes, struct tree **ret)
{
    uint64_t numbers[4] = { 0 };
    struct str texts[4] = { { 0 } };
    int r = body_small_message(b, bytes, numbers, texts);
    return r < 0 ? r : body_text(b, field, texts[1].n > 0 ? texts[1] : STR("0"), ret);
}

/* {1: which, 2: number, 3: text} */
static int body_int_or_string(struct protobuf_body *b, const struct message_field *field,
                              struct str bytes, struct tree **ret)
{
    uint64_t numbers[4] = { 0 };
    struct str texts[4] = { { 0 } };
    int r = body_small_message(b, bytes, numbers, texts);
    if (r < 0 || numbers[1] != 0) {
        return r < 0 ? r : body_text(b, field, texts[3], ret);
    }
    *ret = tree_i64(b->a, (int32_t)numbers[2]);
    return 0;
}

/* {1: JSON} */
static int body_raw_json(struct protobuf_body *b, const struct message_field *field,
                         struct str bytes, struct tree **ret)
{
    uint64_t numbers[4] = { 0 };
    struct str texts[4] = { { 0 } };
    int r = body_small_message(b, bytes, numbers, texts);
    if (r == 0 && texts[1].n > 0) {
        r = tree_parse(texts[1], b->a, ret, b->err);
    }
    return r < 0 ? err_wrap(b->err, STR_FMT, STR_ARG(field->name)) : 0;
}

static int body_number(struct protobuf_body *b, const struct message_field *field, uint64_t bits,
                       struct tree **ret)
{
    double number;
    memcpy(&number, &bits, sizeof(number));
    if (!isfinite(number)) {
        return err_set(b->err, ERR_INVALID, STR_FMT ": the number is not finite",
                       STR_ARG(field->name));
    }
    bool whole = fabs(number) < 1e15 && trunc(number) == number;
    char text[GOFLOAT_TEXT_MAX];
    *ret = tree_i64(b->a, whole ? (int64_t)number : 0);
    if (!whole) {
        (*ret)->text = arena_str(b->a, gofloat_print(number, text));
    }
    return 0;
}

static int body_message(struct protobuf_body *b, struct str type, struct str bytes, uint32_t outer,
                        struct tree *into);

static int body_schema(struct protobuf_body *b, struct str bytes, struct tree **ret)
{
    *ret = tree_obj(b->a);
    return body_message(b, STR("apiextensions.v1.JSONSchemaProps"), bytes, 0, *ret);
}

/* The three places of a CRD's schema that hold one thing or another: a schema or a list of schemas
 * ('A': {1: schema, 2: schemas}), a schema or a boolean ('B': {1: boolean, 2: schema}), a schema or
 * a list of texts ('S': {1: schema, 2: texts}). */
static int body_schema_choice(struct protobuf_body *b, const struct message_field *field,
                              char letter, struct str bytes, struct tree **ret)
{
    struct protobuf_field part;
    struct tree *list = tree_arr(b->a);
    struct tree *item = NULL;
    int r;
    while ((r = protobuf_next(&bytes, &part, b->err)) > 0) {
        bool schema = part.number == (letter == 'B' ? 2 : 1) && part.wire == PROTOBUF_BYTES;
        if (schema) {
            r = body_schema(b, part.bytes, ret);
        } else if (letter == 'B' && part.number == 1 && part.wire == PROTOBUF_VARINT) {
            *ret = *ret != NULL && (*ret)->kind == JOBJ ? *ret : tree_bool(b->a, part.value != 0);
        } else if (part.number == 2 && part.wire == PROTOBUF_BYTES) {
            r = letter == 'A' ? body_schema(b, part.bytes, &item)
                              : body_text(b, field, part.bytes, &item);
            if (r >= 0) {
                tree_add(list, item);
            }
        }
        if (r < 0) {
            return r;
        }
    }
    *ret = *ret == NULL && letter != 'B' ? list : *ret;
    return r;
}

static int body_wrapped_list(struct protobuf_body *b, const struct message_field *field,
                             struct str bytes, struct tree **ret);

/* A value that stands in a field of its own. `*ret` is what the field had before, or NULL. */
static int body_value(struct protobuf_body *b, const struct message_field *field,
                      const struct protobuf_field *part, struct tree **ret)
{
    char letter = field->type.p[0];
    enum protobuf_wire want = letter == 'n'                                     ? PROTOBUF_FIXED64
                              : letter == 'w' || letter == 'i' || letter == 'b' ? PROTOBUF_VARINT
                                                                                : PROTOBUF_BYTES;
    if (part->wire != want) {
        return body_wrong_wire(b, field, part->wire);
    }
    struct tree *before = *ret;
    *ret = NULL;
    switch (letter) {
    case 's':
        return body_text(b, field, part->bytes, ret);
    case 'y':
        *ret = tree_str(b->a, base64_encode(b->a, part->bytes));
        return 0;
    case 'w':
        *ret = tree_i64(b->a, (int32_t)part->value);
        return 0;
    case 'i':
        *ret = tree_i64(b->a, (int64_t)part->value);
        return 0;
    case 'b':
        *ret = tree_bool(b->a, part->value != 0);
        return 0;
    case 'n':
        return body_number(b, field, part->value, ret);
    case 't':
    case 'u':
        return body_time(b, part->bytes, letter == 'u', ret);
    case 'q':
        return body_quantity(b, field, part->bytes, ret);
    case 'x':
        return body_int_or_string(b, field, part->bytes, ret);
    case 'a':
        return body_raw_json(b, field, part->bytes, ret);
    case 'A':
    case 'B':
    case 'S':
        return body_schema_choice(b, field, letter, part->bytes, ret);
    case '[':
        return body_wrapped_list(b, field, part->bytes, ret);
    default: {
        ASSERT(letter == '@');
        *ret = before != NULL ? before : tree_obj(b->a); /* a second one adds to the first */
        struct str type = str_sub(field->type, 1, field->type.n - 1);
        return body_message(b, type, part->bytes, 0, *ret);
    }
    }
}

/* ── lists and maps ────────────────────────────────────────────────────────────────────────── */

/* The type inside of "[T]…" or "{T}…". */
static struct str type_inside(struct str type)
{
    char end = type.p[0] == '[' ? ']' : '}';
    size_t at = str_rfind_char(type, end);
    return str_sub(type, 1, at - 1);
}

static int body_list_add(struct protobuf_body *b, const struct message_field *field,
                         const struct protobuf_field *part, struct tree *list)
{
    struct message_field item = *field;
    item.type = type_inside(field->type);
    bool numbers = item.type.p[0] == 'w' || item.type.p[0] == 'i';
    if (!numbers || part->wire != PROTOBUF_BYTES) {
        struct tree *value = NULL;
        int r = body_value(b, &item, part, &value);
        if (r == 0) {
            tree_add(list, value != NULL ? value : tree_null(b->a));
        }
        return r;
    }
    struct str packed = part->bytes;
    while (packed.n > 0) {
        uint64_t number;
        int r = protobuf_varint(&packed, &number, b->err);
        if (r < 0) {
            return r;
        }
        tree_add(list, tree_i64(b->a, item.type.p[0] == 'w' ? (int32_t)number : (int64_t)number));
    }
    return 0;
}

/* {1: items}: a list that is the value of a map. */
static int body_wrapped_list(struct protobuf_body *b, const struct message_field *field,
                             struct str bytes, struct tree **ret)
{
    struct protobuf_field part;
    int r;
    *ret = tree_arr(b->a);
    while ((r = protobuf_next(&bytes, &part, b->err)) > 0) {
        r = part.number == 1 ? body_list_add(b, field, &part, *ret) : 0;
        if (r < 0) {
            return r;
        }
    }
    return r;
}

static struct tree *body_zero_value(struct protobuf_body *b, char letter)
{
    switch (letter) {
    case '@':
        return tree_obj(b->a);
    case '[':
        return tree_arr(b->a);
    case 'q':
        return tree_str(b->a, STR("0"));
    case 's':
    case 'y':
        return tree_str(b->a, STR(""));
    default:
        return tree_null(b->a);
    }
}

/* {1: key, 2: value}, added behind the others: body_unite_keys looks for keys that came before. */
static int body_map_add(struct protobuf_body *b, const struct message_field *field,
                        const struct protobuf_field *part, struct tree *map)
{
    struct message_field item = *field;
    struct str bytes = part->bytes;
    struct str key = STR("");
    struct tree *value = NULL;
    struct protobuf_field entry;
    int r;
    if (part->wire != PROTOBUF_BYTES) {
        return body_wrong_wire(b, field, part->wire);
    }
    item.type = type_inside(field->type);
    while ((r = protobuf_next(&bytes, &entry, b->err)) > 0) {
        if (entry.number == 1 && entry.wire == PROTOBUF_BYTES) {
            key = entry.bytes;
        } else if (entry.number == 2) {
            r = body_value(b, &item, &entry, &value);
        }
        if (r < 0) {
            return r;
        }
    }
    struct tree *name;
    r = r < 0 ? r : body_text(b, field, key, &name);
    if (r < 0) {
        return r;
    }
    value = value != NULL ? value : body_zero_value(b, item.type.p[0]);
    value->key = name->text;
    tree_add(map, value);
    return 0;
}

/* Makes objects of the maps. Of two entries with one key the later one counts; looking for each
 * among those before it would take a stranger's large map minutes. */
static void body_unite_keys(struct tree *map)
{
    CLEANUP(map_done)
    struct map index = { 0 };
    struct tree *entry = map->first;
    struct tree *last = NULL;
    map->n = 0;
    while (entry != NULL) {
        struct tree *next = entry->next;
        struct tree *before = map_find(&index, entry->key);
        if (before != NULL) {
            struct tree *after = before->next;
            *before = *entry;
            before->next = after;
        } else {
            (void)map_put(&index, entry->key, entry);
            *(last == NULL ? &map->first : &last->next) = entry;
            entry->next = NULL;
            last = entry;
            map->n++;
        }
        entry = next;
    }
    map->last = last;
    map->kind = JOBJ;
}

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

static bool body_is_zero(const struct tree *value)
{
    switch (tree_kind(value)) {
    case JSTR:
        return value->text.n == 0;
    case JNUM:
        return str_eq(value->text, STR("0"));
    case JBOOL:
        return !value->truth;
    case JNULL:
        return true;
    case JARR:
    case JOBJ:
        break;
    }
    return false;
}

static int body_field(struct protobuf_body *b, const struct message_field *field,
                      const struct protobuf_field *part, struct tree *into)
{
    struct tree *value = tree_get(into, field->name);
    char letter = field->type.p[0];
    if (letter == '[' || letter == '{') {
        if (value == NULL) {
            value = tree_arr(b->a);
            tree_set(b->a, into, field->name, value);
            if (letter == '{') {
                ARENA_GROW(b->a, b->maps, b->maps_n, b->maps_cap);
                b->maps[b->maps_n++] = value;
            }
        }
        return letter == '[' ? body_list_add(b, field, part, value)
                             : body_map_add(b, field, part, value);
    }
    struct tree *before = value;
    int r = body_value(b, field, part, &value);
    if (r < 0 || value == before) {
        return r;
    }
    /* An int-or-string is never left out: its 0 is a number that somebody chose. */
    if (value == NULL || (body_is_zero(value) && !field->keep_zero && letter != 'x')) {
        (void)tree_del(into, field->name); /* of two the last one counts */
    } else {
        tree_set(b->a, into, field->name, value);
    }
    return 0;
}

/* Where a part of a message goes: to a field, or to the fields of an embedded message. */
static int body_part(struct protobuf_body *b, struct str name, const struct protobuf_field *part,
                     uint32_t outer, struct tree *into)
{
    const struct message_type *type = message_type_find(b, name);
    for (uint32_t i = 0; i < type->n; i++) {
        const struct message_field *field = &type->fields[i];
        if (field->number == part->number && field->outer == outer) {
            return body_field(b, field, part, into);
        }
        if (outer == 0 && field->outer == part->number && field->outer != 0) {
            return part->wire == PROTOBUF_BYTES
                       ? body_message(b, name, part->bytes, part->number, into)
                       : body_wrong_wire(b, field, part->wire);
        }
    }
    return 0;
}

static int body_message(struct protobuf_body *b, struct str name, struct str bytes, uint32_t outer,
                        struct tree *into)
{
    struct protobuf_field part;
    int r;
    if (b->depth >= PROTOBUF_BODY_DEPTH_MAX) {
        return err_set(b->err, ERR_LIMIT, "messages nest deeper than %u levels",
                       PROTOBUF_BODY_DEPTH_MAX);
    }
    b->depth++;
    while ((r = protobuf_next(&bytes, &part, b->err)) > 0) {
        r = body_part(b, name, &part, outer, into);
        if (r < 0) {
            return r;
        }
    }
    b->depth--;
    return r;
}

/* ── the envelope ──────────────────────────────────────────────────────────────────────────── */

/* {1: {1: apiVersion, 2: kind}, 2: the message}; its encodings are never used. */
static int envelope_read(struct protobuf_body *b, struct str body, struct protobuf_kind *kind,
                         struct str *ret_message)
{
    uint64_t numbers[4] = { 0 };
    struct str texts[4] = { { 0 } };
    struct str meta[4] = { { 0 } };
    int r = body_small_message(b, body, numbers, texts);
    if (r == 0) {
        r = body_small_message(b, texts[1], numbers, meta);
    }
    for (int i = 1; i <= 2 && r == 0; i++) {
        if (utf8_find_invalid(meta[i]) != SIZE_MAX) {
            r = err_set(b->err, ERR_INVALID, "apiVersion or kind is no valid UTF-8");
        }
    }
    if (r < 0) {
        *kind = (struct protobuf_kind){ 0 };
        return r;
    }
    if (meta[1].n > 0 && meta[2].n > 0) {
        *kind = (struct protobuf_kind){ .api_version = meta[1], .kind = meta[2] };
    }
    *ret_message = texts[2];
    return 0;
}

/* The type of the message; empty when there is no table of it. */
static struct str protobuf_kind_type(const struct protobuf_kind *kind)
{
    struct str group;
    struct str version;
    if (!str_cut(kind->api_version, STR("/"), &group, &version)) {
        version = group;
        group = STR("");
    }
    if (str_eq(kind->kind, STR("DeleteOptions"))) {
        return STR("meta.v1.DeleteOptions"); /* every group has this one */
    }
    for (uint32_t i = 0; i < builtin_kind_types_n && str_eq(version, STR("v1")); i++) {
        const struct builtin_kind_type *row = &builtin_kind_types[i];
        if (str_eq(group, str_from(row->group)) && str_eq(kind->kind, str_from(row->kind))) {
            return str_from(row->type);
        }
    }
    return STR("");
}

int protobuf_body_read(struct str body, struct arena *a, struct protobuf_kind *kind,
                       struct tree **ret, struct err *err)
{
    struct str rest;
    struct str message;
    bool magic = str_cut_prefix(body, (struct str){ .p = "k8s\0", .n = 4 }, &rest);
    if (!magic || rest.n == 0) {
        *kind = (struct protobuf_kind){ 0 };
        return err_set(err, ERR_INVALID, "%s",
                       body.n == 0 ? "empty data"
                       : magic     ? "empty body"
                                   : "provided data does not appear to be a protobuf message, "
                                     "expected prefix [107 56 115 0]");
    }
    struct protobuf_body b = { .a = a,
                               .types = ARENA_ARRAY(a, struct message_type *, builtin_types_n),
                               .err = err };
    int r = envelope_read(&b, rest, kind, &message);
    if (r < 0) {
        return r;
    }
    struct tree *object = tree_obj(a);
    tree_set(a, object, STR("kind"), tree_str(a, kind->kind));
    tree_set(a, object, STR("apiVersion"), tree_str(a, kind->api_version));
    struct str type = protobuf_kind_type(kind);
    if (type.n > 0) {
        r = body_message(&b, type, message, 0, object);
    }
    for (uint32_t i = 0; i < b.maps_n && r == 0; i++) {
        body_unite_keys(b.maps[i]);
    }
    if (r == 0) {
        *ret = object;
    }
    return r;
}
