#include "sandbox/apiserver/continue_token.h"

#include "format/json_tree.h"

static const char continue_token_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static struct str continue_token_encode(struct str s, struct arena *out)
{
    char *text = arena_alloc(out, (s.n + 2) / 3 * 4 + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i += 3) {
        uint32_t bits = 0;
        size_t left = MIN(s.n - i, (size_t)3);
        for (size_t j = 0; j < 3; j++) {
            bits = bits << 8 | (j < left ? (unsigned char)s.p[i + j] : 0u);
        }
        for (size_t j = 0; j <= left; j++) {
            text[n++] = continue_token_letters[bits >> (18 - 6 * j) & 63];
        }
    }
    return (struct str){ .p = text, .n = n };
}

static bool continue_token_decode(struct str s, struct arena *out, struct str *ret)
{
    while (s.n > 0 && s.p[s.n - 1] == '=') {
        s.n--;
    }
    char *text = arena_alloc(out, s.n + 1);
    size_t n = 0;
    uint32_t bits = 0;
    uint32_t have = 0;
    for (size_t i = 0; i < s.n; i++) {
        const char *at = s.p[i] == '\0' ? NULL : strchr(continue_token_letters, s.p[i]);
        if (at == NULL) {
            return false;
        }
        bits = bits << 6 | (uint32_t)(at - continue_token_letters);
        have += 6;
        if (have >= 8) {
            have -= 8;
            text[n++] = (char)(bits >> have & 255);
        }
    }
    *ret = (struct str){ .p = text, .n = n };
    return true;
}

struct str continue_token_print(const struct continue_token *page, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(&text);
    jw_obj(&w);
    jw_pair(&w, "v", STR("meta.k8s.io/v1"));
    jw_pair_i64(&w, "rv", page->rv);
    jw_pair(&w, "start", page->start);
    jw_obj_end(&w);
    return continue_token_encode(buf_str(&text), out);
}

int continue_token_parse(struct str token, struct arena *out, struct continue_token *ret,
                         struct err *err)
{
    struct str text;
    if (!continue_token_decode(token, out, &text)) {
        return err_set(err, ERR_INVALID,
                       "continue key is not valid: illegal base64 data at input byte 0");
    }
    const struct jval *root;
    if (json_parse(text, JSON_GO, out, &root, err) < 0) {
        char first = text.n > 0 ? text.p[0] : ' ';
        return err_set(err, ERR_INVALID,
                       "continue key is not valid: invalid character '%c' looking for beginning "
                       "of value",
                       first >= ' ' && first < 0x7f ? first : '?');
    }
    int64_t rv;
    struct str start = jval_str(jval_get(root, STR("start")));
    if (!str_eq(jval_str(jval_get(root, STR("v"))), STR("meta.k8s.io/v1")) ||
        !jval_i64(jval_get(root, STR("rv")), &rv) || start.n == 0 || rv == 0 || rv < -1) {
        return err_set(err, ERR_INVALID,
                       "continue key is not valid: server does not recognize this encoded "
                       "version, or the version is not set (400)");
    }
    *ret = (struct continue_token){ .rv = rv, .start = start };
    return 0;
}
