/*
 * The rulebook of a drain's node: who decides about a pod, and whose turn it is.
 */
#include "drain/drain_internal.h"
#include "format/label_pack.h"

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static void book_read(struct drain_book *b, struct str text)
{
    b->given = true;
    b->text = arena_str(&b->memory, text);
    if (rulebook_parse(text, &b->memory, &b->rules, &b->trouble) < 0) {
        (void)err_wrap(&b->trouble, "annotation '" STR_FMT "'", STR_ARG(RULEBOOK_KEY));
    }
}

void drain_set_book(struct drain *d, struct str text)
{
    struct drain_book *b = &d->book;
    bool by_space = b->rules.by_space;
    bool given = text.p != NULL;
    if (b->given == given && (!given || str_eq(b->text, text))) {
        return;
    }
    struct arena old = b->memory;
    *b = (struct drain_book){ .memory = { .first = 256 } };
    if (given) {
        book_read(b, text);
    }
    arena_done(&old);
    /* In this order: a watch that both books need goes on. */
    if (b->rules.by_space) {
        drains_watch_spaces(d->drains);
    }
    if (by_space) {
        drains_unwatch_spaces(d->drains);
    }
    d->stirred = true;    /* other pods may stay, and so their claims */
    d->view.done = false; /* by the rules before it was, perhaps */
    drain_mark(d);
}

void drain_drop_book(struct drain *d)
{
    if (d->book.rules.by_space) {
        drains_unwatch_spaces(d->drains);
    }
    arena_done(&d->book.memory);
    d->book = (struct drain_book){ 0 };
}

bool drain_book_is_bad(const struct drain *d)
{
    return d->book.trouble.code != 0 || d->book.rules.error.n > 0;
}

/* ── who decides ───────────────────────────────────────────────────────────────────────────── */

int drain_ask_book(const struct drain_patient *p, const struct rulebook_rule **ret)
{
    const struct drain *d = p->drain;
    struct str *space = NULL;
    *ret = NULL;
    if (!d->book.given || drain_patient_pod(p)->wish != DRAIN_WISH_NONE) {
        return 0;
    }
    if (drain_book_is_bad(d)) {
        return -ERR_INVALID;
    }
    if (d->book.rules.by_space) {
        space = drains_find_space(d->drains, drain_space(p->item));
    }
    const struct rulebook_case pod = {
        .pod = drain_pod_lookup,
        .pod_ctx = drain_patient_pod(p),
        .space = space != NULL ? label_pack_find : NULL,
        .space_ctx = space,
    };
    return rulebook_find(&d->book.rules, &pod, ret);
}

/* ── whose turn it is ──────────────────────────────────────────────────────────────────────── */

int32_t drain_patient_order(const struct drain_patient *p)
{
    const struct rulebook_rule *rule = NULL;
    int r = drain_ask_book(p, &rule);
    return r == 0 && rule != NULL ? rule->order : 0;
}

bool drain_patient_is_over(const struct drain_patient *p, usec_t now)
{
    const struct drain_pod *pod = drain_patient_pod(p);
    return p->gone || (pod->deleting && p->drain->unreachable &&
                       now >= drain_after(p->deleting_at, pod->deletion_grace));
}

/* Whoever is on its way counts until its object is gone. */
void drain_find_turn(struct drain *d, usec_t now)
{
    d->turn = INT32_MAX;
    d->barred = false;
    LIST_EACH (&d->patients, link) {
        const struct drain_patient *p = CONTAINER_OF(link, struct drain_patient, link);
        enum drain_wait wait = DRAIN_WAIT_NONE;
        enum drain_lot lot = drain_patient_lot(p, &wait);
        if (lot == DRAIN_STAYS || drain_patient_is_over(p, now)) {
            continue;
        }
        if (d->book.given) {
            d->turn = MIN(d->turn, drain_patient_order(p));
        }
        /* One that goes bars nobody, unless nobody can tell whether others may go before it has. */
        bool going = drain_patient_pod(p)->deleting && wait != DRAIN_WAIT_RULES;
        d->barred = d->barred || (lot == DRAIN_BARRED && !going);
    }
}

bool drain_has_turn(const struct drain_patient *p)
{
    const struct drain *d = p->drain;
    return !d->book.given || d->forcing || drain_patient_order(p) <= d->turn ||
           mutated(d->drains->config.mutations, MUTATION_ORDER_IGNORED);
}
