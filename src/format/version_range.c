#include "format/version_range.h"

/* Reads numbers with dots from the beginning; answers how many bytes they are. */
static size_t version_read(struct str text, struct version *ret)
{
    size_t i = 0;
    *ret = (struct version){ 0 };
    while (ret->n < VERSION_PARTS_MAX) {
        size_t start = i;
        while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9') {
            i++;
        }
        if (!str_to_u32(str_sub(text, start, i - start), &ret->parts[ret->n])) {
            return start > 0 ? start - 1 : 0; /* the dot was none of a version */
        }
        ret->n++;
        if (i >= text.n || text.p[i] != '.') {
            break;
        }
        i++;
    }
    return i;
}

bool version_parse(struct str text, struct version *ret)
{
    struct str rest;
    (void)str_cut_prefix(text, STR("v"), &rest); /* with or without */
    return version_read(rest, ret) > 0;
}

int version_cmp(const struct version *a, const struct version *b)
{
    for (uint32_t i = 0; i < VERSION_PARTS_MAX; i++) {
        uint32_t x = i < a->n ? a->parts[i] : 0;
        uint32_t y = i < b->n ? b->parts[i] : 0;
        if (x != y) {
            return x < y ? -1 : 1;
        }
    }
    return 0;
}

static enum version_op version_op_read(struct str *text)
{
    static const struct {
        struct str sign;
        enum version_op op;
    } ops[] = {
        { STR_INIT(">="), VERSION_GE }, { STR_INIT("<="), VERSION_LE },
        { STR_INIT(">"), VERSION_GT },  { STR_INIT("<"), VERSION_LT },
        { STR_INIT("="), VERSION_EQ },
    };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (str_cut_prefix(*text, ops[i].sign, text)) {
            return ops[i].op;
        }
    }
    return VERSION_EQ;
}

int version_range_parse(struct str text, struct version_range *ret, struct err *err)
{
    struct version_range r = { 0 };
    struct str rest = text;
    struct str piece;
    while (str_split_next(&rest, ',', &piece)) {
        if (r.n == VERSION_CONDITIONS_MAX) {
            return err_set(err, ERR_INVALID, "at most %u conditions", VERSION_CONDITIONS_MAX);
        }
        struct version_condition *c = &r.conditions[r.n++];
        piece = str_trim(piece);
        c->op = version_op_read(&piece);
        size_t n = version_read(piece, &c->version);
        if (n == 0 || n != piece.n) {
            return err_set(err, ERR_INVALID, "a range of versions such as >=5.10,<7");
        }
    }
    *ret = r;
    return 0;
}

bool version_range_has(const struct version_range *r, struct str text)
{
    struct version v;
    if (r->n == 0) {
        return true;
    }
    if (!version_parse(text, &v)) {
        return false;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        int cmp = version_cmp(&v, &r->conditions[i].version);
        enum version_op op = r->conditions[i].op;
        bool holds = op == VERSION_EQ   ? cmp == 0
                     : op == VERSION_GE ? cmp >= 0
                     : op == VERSION_GT ? cmp > 0
                     : op == VERSION_LE ? cmp <= 0
                                        : cmp < 0;
        if (!holds) {
            return false;
        }
    }
    return true;
}
