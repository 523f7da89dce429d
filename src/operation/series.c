#include "operation/series.h"

#include <stdlib.h>
#include <string.h>

#include "format/glob.h"

#define LABEL_KEY_MAX 317u /* prefix, slash and name */

static bool texts_have(const struct spec_texts *list, struct str text)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (str_eq(list->items[i], text)) {
            return true;
        }
    }
    return false;
}

static bool globs_have(const struct spec_texts *globs, struct str text)
{
    for (uint32_t i = 0; i < globs->n; i++) {
        if (glob_match(globs->items[i], text)) {
            return true;
        }
    }
    return false;
}

/* A fact that is not known is no match. */
static bool fact_is_one_of(const struct spec_texts *wanted, struct str fact)
{
    return wanted->n == 0 || (fact.n > 0 && texts_have(wanted, fact));
}

static bool facts_match(const struct series_facts *f, const struct machine_facts *known)
{
    static const struct machine_facts unknown = { 0 };
    const struct machine_facts *k = known != NULL ? known : &unknown;
    return fact_is_one_of(&f->os_id, k->os_id) && fact_is_one_of(&f->arch, k->arch) &&
           fact_is_one_of(&f->package_manager, k->package_manager) &&
           version_range_has(&f->os_version, k->os_version) &&
           version_range_has(&f->kernel, k->kernel) && version_range_has(&f->kubelet, k->kubelet);
}

static bool term_matches(const struct series_term *t, const struct machine *m)
{
    return (!t->has_selector || selector_match(&t->selector, m->label, m->label_ctx)) &&
           (t->names.n == 0 || texts_have(&t->names, m->name)) &&
           (t->globs.n == 0 || globs_have(&t->globs, m->name)) &&
           (!t->has_facts || facts_match(&t->facts, m->facts));
}

static bool any_matches(const struct series_term *terms, uint32_t n, const struct machine *m)
{
    for (uint32_t i = 0; i < n; i++) {
        if (term_matches(&terms[i], m)) {
            return true;
        }
    }
    return false;
}

bool series_has(const struct series_spec *s, const struct machine *m, usec_t now)
{
    if (s->scope != SERIES_ALL && m->external != (s->scope == SERIES_EXTERNAL)) {
        return false;
    }
    if (s->min_age > 0 && now - m->created < s->min_age) {
        return false;
    }
    return (s->include_n == 0 || any_matches(s->include, s->include_n, m)) &&
           !any_matches(s->exclude, s->exclude_n, m);
}

bool series_when(const struct operation_when *when, const struct machine *m)
{
    return (!when->has_labels || selector_match(&when->labels, m->label, m->label_ctx)) &&
           (!when->has_facts || facts_match(&when->facts, m->facts));
}

struct series_rank series_rank(struct str seed, struct str uid, uint32_t index)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct series_rank r = { .index = index };
    buf_add(&text, seed);
    buf_add_char(&text, '\0');
    buf_add(&text, uid);
    sha256(buf_str(&text), r.hash);
    return r;
}

static int rank_cmp(const void *a, const void *b)
{
    const struct series_rank *x = a;
    const struct series_rank *y = b;
    int cmp = memcmp(x->hash, y->hash, sizeof(x->hash));
    return cmp != 0 ? cmp : x->index < y->index ? -1 : x->index > y->index ? 1 : 0;
}

uint32_t series_sample(const struct series_spec *s, struct series_rank *ranks, uint32_t n)
{
    if (n > 0) {
        qsort(ranks, n, sizeof(*ranks), rank_cmp);
    }
    return s->sample.given ? MIN(spec_share_of(s->sample, n), n) : n;
}

bool machine_is_held(const struct machine *m, struct str maintenance)
{
    CLEANUP(buf_done)
    struct buf key = { .max = LABEL_KEY_MAX };
    struct str value = STR_NONE;
    if (m->label(m->label_ctx, KEY_HOLD, &value) && str_eq(value, KEYS_TRUE)) {
        return true;
    }
    buf_printf(&key, KEY_HOLD_FOR_TEXT STR_FMT, STR_ARG(maintenance));
    return !key.full && m->label(m->label_ctx, buf_str(&key), &value) && str_eq(value, KEYS_TRUE);
}
