/* A node's report as text for people. */
#include "profile/node_report.h"

#include "base/humantime.h"
#include "base/textwrap.h"

/* ── in one sentence ───────────────────────────────────────────────────────────────────────── */

/* "window: …; max: …": the checks that block, with their reasons where there are some. */
static struct str held_by(const struct node_report_transition *t, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i < t->check_n; i++) {
        const struct node_report_check *c = &t->checks[i];
        if (!c->holds) {
            continue;
        }
        struct str words = c->error.n > 0 ? c->error : c->reason;
        struct str label = node_report_check_label(c, out);
        buf_printf(&text, "%s" STR_FMT, text.n > 0 ? "; " : "", STR_ARG(label));
        if (words.n > 0) {
            buf_printf(&text, ": " STR_FMT, STR_ARG(words));
        } else {
            buf_printf(&text, " is '" STR_FMT "'",
                       STR_ARG(node_report_answer_name(node_report_check_meaning(c))));
        }
    }
    return arena_str(out, buf_str(&text));
}

/* It is not on its way yet: it waits for its turn, or for a limit. */
static bool waits_to_go(const struct node_report *r, const struct node_report_profile *p)
{
    return r->waits.n > 0 && p->next == PROFILE_STATE_MAINTENANCE &&
           p->state != PROFILE_STATE_MAINTENANCE;
}

struct str node_report_summary(const struct node_report *r, const struct node_report_profile *p,
                               struct arena *out)
{
    if (p->error.n > 0) {
        return p->error;
    }
    if (p->doing.n > 0) {
        return p->doing;
    }
    if (p->state != p->next && !waits_to_go(r, p)) {
        struct str next = profile_state_name(p->next);
        return arena_printf(out, "goes to " STR_FMT, STR_ARG(next));
    }
    if (p->state == PROFILE_STATE_OPERATIONAL && !waits_to_go(r, p)) {
        return STR_NONE;
    }
    if (p->state != PROFILE_STATE_MAINTENANCE && r->waits.n > 0) {
        return r->waits;
    }
    for (uint32_t i = 0; i < p->transition_n; i++) {
        const struct node_report_transition *t = &p->transitions[i];
        struct str why = t->held.n > 0 ? t->held : t->error;
        why = why.n > 0 ? why : held_by(t, out);
        if (why.n > 0) {
            return why;
        }
    }
    return p->transition_n == 0 ? STR("stays: there is no transition out of this state") : STR_NONE;
}

struct str node_report_orphan(const struct node_report *r, struct arena *out)
{
    return r->orphan.n == 0
               ? STR_NONE
               : arena_printf(out, "cordoned by profile " STR_FMT ", which does not serve the node",
                              STR_ARG(r->orphan));
}

/* ── the text ──────────────────────────────────────────────────────────────────────────────── */

struct node_report_page {
    const struct node_report *report;
    enum report_format form;
    struct textwrap line;
    struct arena tmp;
};

static void page_field(struct node_report_page *p, uint32_t indent, const char *name,
                       struct str text)
{
    if (text.n == 0) {
        return;
    }
    p->line.hang = indent + 9;
    textwrap_tab(&p->line, indent);
    textwrap_add(&p->line, str_from(name));
    textwrap_tab(&p->line, indent + 9);
    textwrap_add(&p->line, text);
    textwrap_end(&p->line);
}

/* The plugin's own words, as the JSON document has them; nothing where it said nothing. */
static void page_check_info(struct node_report_page *p, const struct node_report_check *c)
{
    CLEANUP(buf_done)
    struct buf info = { 0 };
    struct json_writer w = json_writer_on(&info);
    node_report_print_check_info(c, &w);
    if (!str_eq(buf_str(&info), STR("{}"))) {
        textwrap_add(&p->line, STR("  "));
        textwrap_add(&p->line, buf_str(&info));
    }
}

static void page_check(struct node_report_page *p, const struct node_report_check *c)
{
    struct textwrap *line = &p->line;
    line->hang = 15;
    textwrap_add(line, c->holds ? STR("    * ") : STR("      "));
    textwrap_add(line, node_report_answer_name(node_report_check_meaning(c)));
    textwrap_tab(line, 15);
    textwrap_add(line, node_report_check_label(c, &p->tmp));
    if (!str_eq(c->name, c->type)) {
        textwrap_add(line, STR(" ("));
        textwrap_add(line, c->type);
        textwrap_add(line, STR(")"));
    }
    struct str words = c->error.n > 0 ? c->error : c->reason;
    if (words.n > 0) {
        textwrap_add(line, STR(": "));
        textwrap_add(line, words);
    }
    struct str when = humantime_at(p->report->now, c->next, &p->tmp);
    if (when.n > 0) {
        textwrap_add(line, STR("; could change "));
        textwrap_add(line, when);
    }
    if (p->form == NODE_REPORT_WIDE) {
        page_check_info(p, c);
    }
    textwrap_end(line);
}

static struct str transition_verdict(const struct node_report_transition *t, struct str held)
{
    if (t->passed) {
        return held.n > 0 ? STR("not yet") : STR("yes");
    }
    if (t->error.n > 0) {
        return STR("cannot be told");
    }
    return t->chain_passed ? STR("not yet") : STR("no");
}

static void page_transition(struct node_report_page *p, const struct node_report_profile *profile,
                            const struct node_report_transition *t)
{
    struct str held = node_report_held(p->report, profile, t);
    struct textwrap *line = &p->line;
    line->hang = 6;
    textwrap_add(line, STR("  to "));
    textwrap_add(line, profile_state_name(t->target));
    textwrap_add(line, STR(": "));
    textwrap_add(line, transition_verdict(t, held));
    struct str when = humantime_at(p->report->now, t->next, &p->tmp);
    if (when.n > 0 && !t->passed) {
        textwrap_add(line, STR("; could change "));
        textwrap_add(line, when);
    }
    textwrap_end(line);
    page_field(p, 6, "if", t->expression);
    for (uint32_t i = 0; i < t->check_n; i++) {
        page_check(p, &t->checks[i]);
    }
    page_field(p, 6, "error", t->error);
    page_field(p, 6, "held", held);
}

static void page_profile(struct node_report_page *p, const struct node_report_profile *profile)
{
    struct textwrap *line = &p->line;
    textwrap_end(line);
    line->hang = 2;
    textwrap_add(line, STR("profile "));
    textwrap_add(line, profile->name);
    textwrap_add(line, STR(": "));
    textwrap_add(line, profile_state_name(profile->state));
    if (profile->since != 0) {
        textwrap_add(line, STR(" for "));
        textwrap_add(line, humantime_since(p->report->now, profile->since, &p->tmp));
    }
    if (profile->next != profile->state && !waits_to_go(p->report, profile)) {
        textwrap_add(line, STR(", goes to "));
        textwrap_add(line, profile_state_name(profile->next));
    }
    textwrap_end(line);
    page_field(p, 2, "error", profile->error);
    page_field(p, 2, "doing", profile->doing);
    for (uint32_t i = 0; i < profile->transition_n; i++) {
        page_transition(p, profile, &profile->transitions[i]);
    }
    if (profile->transition_n == 0 && profile->error.n == 0 && profile->doing.n == 0) {
        textwrap_add(line, STR("  there is no transition out of this state"));
        textwrap_end(line);
    }
}

static void page_labels(struct node_report_page *p)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i < p->report->label_n; i++) {
        const struct node_report_label *l = &p->report->labels[i];
        buf_printf(&text, "%s" STR_FMT "=" STR_FMT, i > 0 ? " " : "", STR_ARG(l->key),
                   STR_ARG(l->value));
    }
    page_field(p, 2, "labels", buf_str(&text));
}

/* "request mr-7 of kured: InProgress for 4m, deadline in 3m (…); under node, gpu". */
static void page_claim(struct node_report_page *p, const struct node_report_claim *c)
{
    struct textwrap *line = &p->line;
    struct str when = humantime_at(p->report->now, c->deadline, &p->tmp);
    line->hang = 11;
    textwrap_add(line, c->holds ? STR("  held") : STR("  asked"));
    textwrap_tab(line, 11);
    textwrap_add(line, STR("by "));
    textwrap_add(line, c->who);
    if (c->since != 0) {
        textwrap_add(line, STR(" for "));
        textwrap_add(line, humantime_since(p->report->now, c->since, &p->tmp));
    }
    textwrap_add(line, c->words.n > 0 ? STR(": ") : STR_NONE);
    textwrap_add(line, c->words);
    textwrap_add(line, c->until.n > 0 ? STR("; until ") : STR_NONE);
    textwrap_add(line, c->until);
    textwrap_add(line, when.n > 0 ? STR("; deadline ") : STR_NONE);
    textwrap_add(line, when);
    textwrap_add(line, when.n > 0 && c->at_deadline.n > 0 ? STR(", then ") : STR_NONE);
    textwrap_add(line, when.n > 0 ? c->at_deadline : STR_NONE);
    textwrap_add(line, c->limits.n > 0 ? STR("; under ") : STR_NONE);
    textwrap_add(line, c->limits);
    textwrap_end(line);
}

/* "hook about p in in-maintenance: …; next try in 12s". */
static void page_unsent(struct node_report_page *p, const struct node_report_unsent *u)
{
    struct str when = humantime_at(p->report->now, u->next, &p->tmp);
    page_field(
        p, 2, "unsent",
        arena_printf(&p->tmp, STR_FMT " about " STR_FMT " in " STR_FMT ": " STR_FMT "%s" STR_FMT,
                     STR_ARG(u->instance), STR_ARG(u->profile), STR_ARG(u->state),
                     STR_ARG(u->error), when.n > 0 ? "; next try " : "; tried now", STR_ARG(when)));
}

/* The words of a drain that is blocked stand below their own heading: somebody has to see to it. */
static void page_drain(struct node_report_page *p)
{
    const struct node_report *r = p->report;
    page_field(p, 2, r->draining.blocked ? "blocked" : "drain", r->drain);
}

void node_report_print_text(const struct node_report *r, enum report_format form, struct buf *out)
{
    struct node_report_page p = {
        .report = r,
        .form = form,
        .line = { .out = out,
                  .columns = form == NODE_REPORT_WIDE ? 0
                             : r->columns > 0         ? r->columns
                                                      : NODE_REPORT_COLUMNS },
    };
    p.line.hang = 2;
    textwrap_add(&p.line, STR("node "));
    textwrap_add(&p.line, r->node);
    textwrap_add(&p.line, STR(": "));
    textwrap_add(&p.line, r->state.n > 0 ? r->state : STR("no state yet"));
    textwrap_add(&p.line, r->ready ? STR(", ready") : STR(", not ready"));
    textwrap_add(&p.line, r->cordoned ? STR(", cordoned") : STR_NONE);
    textwrap_add(&p.line, r->deleting ? STR(", being deleted") : STR_NONE);
    textwrap_end(&p.line);
    page_field(&p, 2, "error", r->error);
    page_field(&p, 2, "waits", r->waits);
    page_drain(&p);
    page_field(&p, 2, "cordon", node_report_orphan(r, &p.tmp));
    for (uint32_t i = 0; i < r->unsent_n; i++) {
        page_unsent(&p, &r->unsent[i]);
    }
    for (uint32_t i = 0; i < r->claim_n; i++) {
        page_claim(&p, &r->claims[i]);
    }
    for (uint32_t i = 0; i < r->operation_n; i++) {
        const struct node_report_operation *op = &r->operations[i];
        struct str next = humantime_at(r->now, op->next, &p.tmp);
        page_field(&p, 2, "work",
                   arena_printf(&p.tmp, STR_FMT ": " STR_FMT "%s" STR_FMT, STR_ARG(op->maintenance),
                                STR_ARG(op->words), next.n > 0 ? "; next " : "", STR_ARG(next)));
    }
    for (uint32_t i = 0; i < r->activity_n; i++) {
        const struct activity *a = &r->activities[i];
        page_field(&p, 2, "outside",
                   arena_printf(&p.tmp, STR_FMT ": " STR_FMT, STR_ARG(a->who),
                                STR_ARG(activity_text(a, r->now, &p.tmp))));
    }
    if (r->updated != 0) {
        struct str ago = humantime_since(r->now, r->updated, &p.tmp);
        page_field(&p, 2, "decided", arena_concat(&p.tmp, ago, STR(" ago")));
    }
    page_labels(&p);
    for (uint32_t i = 0; i < r->profile_n; i++) {
        page_profile(&p, &r->profiles[i]);
    }
    arena_done(&p.tmp);
}
