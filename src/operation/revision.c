#include "operation/revision.h"

#include <stdlib.h>

#include "base/hex.h"
#include "format/digest.h"
#include "format/json_writer.h"

struct member {
    struct str key;
    const struct jval *value;
    uint32_t place;
};

/* UTF-8 sorts as UTF-16 does, but for what UTF-16 writes as surrogates: those come before U+E000.
 */
static int key_cmp(struct str a, struct str b)
{
    size_t n = MIN(a.n, b.n);
    for (size_t i = 0; i < n; i++) {
        unsigned char x = (unsigned char)a.p[i];
        unsigned char y = (unsigned char)b.p[i];
        if (x != y) {
            bool swapped =
                (x >= 0xf0 && (y == 0xee || y == 0xef)) || (y >= 0xf0 && (x == 0xee || x == 0xef));
            return (x < y) != swapped ? -1 : 1;
        }
    }
    return a.n == b.n ? 0 : a.n < b.n ? -1 : 1;
}

static int member_cmp(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;
    int cmp = key_cmp(x->key, y->key);
    return cmp != 0 ? cmp : x->place < y->place ? -1 : 1;
}

static void canonical_text(struct str s, struct buf *out)
{
    static const char *const shorts[] = {
        ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r",
    };
    buf_add_char(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\') {
            buf_add_char(out, '\\');
            buf_add_char(out, (char)c);
        } else if (c >= 0x20) {
            buf_add_char(out, (char)c);
        } else if (c < ARRAY_LEN(shorts) && shorts[c] != NULL) {
            buf_add(out, str_from(shorts[c]));
        } else {
            buf_printf(out, "\\u%04x", c);
        }
    }
    buf_add_char(out, '"');
}

static int canonical_number(const struct jval *v, struct buf *out, struct err *err)
{
    int64_t whole = 0;
    double f = 0;
    if (jval_i64(v, &whole)) {
        buf_printf(out, "%lld", (long long)whole);
        return 0;
    }
    if (!jval_f64(v, &f)) {
        return err_set(err, ERR_INVALID, "found the number %.*s, want one that a double can hold",
                       (int)v->n, v->p);
    }
    struct json_writer w = json_writer_on(out);
    return jw_f64(&w, f, err);
}

static int canonical_object(const struct jval *v, struct buf *out, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct member *members = ARENA_ARRAY(&tmp, struct member, v->n + 1u);
    uint32_t n = 0;
    bool first = true;
    int r = 0;
    JVAL_EACH (v, item) {
        members[n] = (struct member){ .key = jval_key(item), .value = item, .place = n };
        n++;
    }
    qsort(members, n, sizeof(*members), member_cmp);
    buf_add_char(out, '{');
    for (uint32_t i = 0; i < n && r == 0; i++) {
        if (i + 1 < n && str_eq(members[i].key, members[i + 1].key)) {
            continue; /* the last one counts */
        }
        buf_add(out, first ? STR_NONE : STR(","));
        first = false;
        canonical_text(members[i].key, out);
        buf_add_char(out, ':');
        r = revision_canonical(members[i].value, out, err);
    }
    buf_add_char(out, '}');
    return r;
}

int revision_canonical(const struct jval *v, struct buf *out, struct err *err)
{
    int r = 0;
    switch (jval_kind(v)) {
    case JBOOL:
        buf_add(out, jval_bool(v, false) ? STR("true") : STR("false"));
        return 0;
    case JNUM:
        return canonical_number(v, out, err);
    case JSTR:
        canonical_text(jval_str(v), out);
        return 0;
    case JARR:
        buf_add_char(out, '[');
        for (const struct jval *item = jval_first(v); item != NULL && r == 0;) {
            r = revision_canonical(item, out, err);
            item = jval_next(v, item);
            buf_add(out, item != NULL ? STR(",") : STR_NONE);
        }
        buf_add_char(out, ']');
        return r;
    case JOBJ:
        return canonical_object(v, out, err);
    case JNULL:
    default:
        buf_add(out, STR("null"));
        return 0;
    }
}

static void preflight_write(struct json_writer *w, const struct operation_preflight *p)
{
    jw_key(w, STR("preflight"));
    jw_obj(w);
    jw_pair(w, "script", p->script);
    jw_pair(w, "image", p->image);
    jw_key(w, STR("command"));
    jw_strs(w, p->command.items, p->command.n);
    jw_obj_end(w);
}

/* Everything that counts, as one object; rerunOn Nonce asks for the nonce alone. */
static void input_write(const struct revision_input *in, struct buf *out)
{
    const struct node_operation *o = in->operation;
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair_i64(&w, "type", o->type);
    jw_pair(&w, "nonce", o->nonce);
    if (!o->rerun_on_nonce) {
        jw_pair_i64(&w, "reboot", o->reboot.policy);
        jw_pair(&w, "version", in->version);
        if (o->preflight.given) {
            preflight_write(&w, &o->preflight);
        }
        jw_key(&w, STR("references"));
        jw_strs(&w, in->references, o->track_references ? in->reference_n : 0);
        if (in->payload_json.n > 0) {
            jw_key(&w, STR("payload"));
            jw_raw(&w, in->payload_json);
        }
    }
    jw_obj_end(&w);
}

int revision_of(const struct revision_input *in, struct arena *out, struct str *ret,
                struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(buf_done)
    struct buf canonical = { 0 };
    CLEANUP(buf_done)
    struct buf hex = { 0 };
    const struct jval *v = NULL;
    unsigned char hash[SHA256_BYTES];
    input_write(in, &text);
    int r = json_parse(buf_str(&text), 0, &tmp, &v, err);
    if (r == 0) {
        r = revision_canonical(v, &canonical, err);
    }
    if (r < 0) {
        return err_wrap(err, "revision of operation '" STR_FMT "'", STR_ARG(in->operation->name));
    }
    sha256(buf_str(&canonical), hash);
    hex_add(&hex, hash, sizeof(hash), /* upper= */ false);
    *ret = arena_str(out, buf_str(&hex));
    return 0;
}
