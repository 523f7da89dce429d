#include "operation/payload_source.h"

#include "base/hex.h"
#include "calendar/ics.h"
#include "format/digest.h"
#include "operation/revision.h"

#define CALENDAR_BEGIN STR("BEGIN:VCALENDAR")

bool payload_source_has_key(const struct payload_source *s, struct str key)
{
    for (uint32_t i = 0; i < s->key_n; i++) {
        if (str_eq(s->keys[i], key)) {
            return true;
        }
    }
    return false;
}

const struct payload_calendar *payload_source_calendar(const struct payload_source *s,
                                                       struct str key)
{
    for (uint32_t i = 0; i < s->calendar_n; i++) {
        if (str_eq(s->calendars[i].key, key)) {
            return &s->calendars[i];
        }
    }
    return NULL;
}

/* Members in any order have one hash. */
static int source_hash(const struct jval *object, struct arena *out, struct str *ret,
                       struct err *err)
{
    static const char *const parts[] = { "data", "binaryData" };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(buf_done)
    struct buf hex = { 0 };
    unsigned char hash[SHA256_BYTES];
    for (uint32_t i = 0; i < ARRAY_LEN(parts); i++) {
        int r = revision_canonical(jval_get(object, str_from(parts[i])), &text, err);
        if (r < 0) {
            return r;
        }
        buf_add_char(&text, '\n');
    }
    sha256(buf_str(&text), hash);
    hex_add(&hex, hash, sizeof(hash), /* upper= */ false);
    *ret = arena_str(out, buf_str(&hex));
    return 0;
}

static uint32_t source_keys(const struct jval *part, struct str *keys, uint32_t n,
                            struct arena *out)
{
    JVAL_EACH (part, item) {
        if (n < PAYLOAD_SOURCE_KEYS_MAX) {
            keys[n++] = arena_str(out, jval_key(item));
        }
    }
    return n;
}

static int source_read(const struct jval *object, struct arena *out, struct payload_source **ret,
                       struct err *err)
{
    struct payload_source *s = ARENA_NEW(out, struct payload_source);
    const struct jval *data = jval_get(object, STR("data"));
    const struct jval *binary = jval_get(object, STR("binaryData"));
    uint32_t count =
        (jval_kind(data) == JOBJ ? data->n : 0) + (jval_kind(binary) == JOBJ ? binary->n : 0);
    struct str *keys = ARENA_ARRAY(out, struct str, MIN(count, PAYLOAD_SOURCE_KEYS_MAX) + 1u);
    uint32_t n = source_keys(data, keys, 0, out);
    *s = (struct payload_source){ .keys = keys, .key_n = source_keys(binary, keys, n, out) };
    *ret = s;
    return source_hash(object, out, &s->hash, err);
}

static int secret_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                          void **ret, struct err *err)
{
    struct payload_source *s = NULL;
    int r = source_read(object, out, &s, err);
    *ret = s;
    return r;
}

static int config_map_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                              void **ret, struct err *err)
{
    struct payload_source *s = NULL;
    int r = source_read(object, out, &s, err);
    const struct jval *data = jval_get(object, STR("data"));
    struct payload_calendar *calendars =
        ARENA_ARRAY(out, struct payload_calendar, (jval_kind(data) == JOBJ ? data->n : 0) + 1u);
    JVAL_EACH (data, item) {
        struct str text = jval_str(item);
        if (r == 0 && str_starts(text, CALENDAR_BEGIN) && text.n <= ICS_BYTES_MAX) {
            calendars[s->calendar_n++] =
                (struct payload_calendar){ .key = arena_str(out, jval_key(item)),
                                           .text = arena_str(out, text) };
        }
    }
    s->calendars = calendars;
    *ret = s;
    return r;
}

static bool source_same(const void *a, const void *b)
{
    const struct payload_source *x = a;
    const struct payload_source *y = b;
    return str_eq(x->hash, y->hash);
}

const struct store_kind payload_config_map_kind = {
    .name = "config map",
    .namespaced = true,
    .project = config_map_project,
    .same = source_same,
};

const struct store_kind payload_secret_kind = {
    .name = "secret",
    .namespaced = true,
    .project = secret_project,
    .same = source_same,
};
