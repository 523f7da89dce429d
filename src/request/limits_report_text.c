/* The report of limits as text for a terminal. */
#include "base/humantime.h"
#include "base/textwrap.h"
#include "request/limits_report.h"

#define TEXT_COLUMNS 80u
#define TARGET_COLUMNS_MAX 28u /* of a target's name; the rest is for words */
#define CELLS 6u               /* of the table of limits, before the last one */
#define GAP 2u                 /* spaces between columns */

struct limits_page {
    const struct limits_report *limits_report;
    bool wide;
    struct textwrap line;
    struct arena tmp;
};

static void limits_page_field(struct limits_page *p, const char *name, struct str text)
{
    if (text.n > 0) {
        p->line.hang = 11;
        textwrap_add(&p->line, STR("  "));
        textwrap_add(&p->line, str_from(name));
        textwrap_tab(&p->line, 11);
        textwrap_add(&p->line, text);
        textwrap_end(&p->line);
    }
}

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

struct limits_row {
    struct str cells[CELLS];
    struct str state_text;
};

static struct str number_text(const struct limits_report_limit *l, uint32_t n, struct arena *out)
{
    return l->computed ? arena_printf(out, "%u", n) : STR("-");
}

static void limits_row_fill(struct limits_page *p, const struct limits_report_limit *l,
                            struct limits_row *ret)
{
    struct arena *a = &p->tmp;
    struct str state = limits_report_limit_state(l);
    *ret = (struct limits_row){
        .cells = { l->name, l->type.n > 0 ? l->type : STR("-"),
                   l->computed ? arena_printf(a, "%u of %u", l->allowed, l->population) : STR("-"),
                   arena_printf(a, "%u", l->held), number_text(l, l->unavailable, a),
                   arena_printf(a, "%u", l->waiting) },
        .state_text = l->problem.n == 0 ? state
                                        : arena_printf(a, STR_FMT ": " STR_FMT, STR_ARG(state),
                                                       STR_ARG(l->problem)),
    };
}

static void limits_page_rows(struct limits_page *p, const struct limits_row *rows, uint32_t n)
{
    uint32_t at[CELLS + 1] = { 0 };
    for (uint32_t c = 0; c < CELLS; c++) {
        uint32_t width = 0;
        for (uint32_t i = 0; i < n; i++) {
            width = MAX(width, textwrap_width(rows[i].cells[c]));
        }
        at[c + 1] = at[c] + width + GAP;
    }
    for (uint32_t i = 0; i < n; i++) {
        /* What is wrong with a limit goes on below its name. */
        p->line.hang = 4;
        for (uint32_t c = 0; c <= CELLS; c++) {
            if (c > 0) {
                textwrap_tab(&p->line, at[c]);
            }
            textwrap_add(&p->line, c < CELLS ? rows[i].cells[c] : rows[i].state_text);
        }
        textwrap_end(&p->line);
    }
}

static void limits_page_limits(struct limits_page *p)
{
    const struct limits_report *b = p->limits_report;
    if (b->limit_n == 0) {
        textwrap_add(&p->line, STR("There are no limits: every request is granted."));
        textwrap_end(&p->line);
        return;
    }
    struct limits_row *rows = ARENA_ARRAY(&p->tmp, struct limits_row, b->limit_n + 1);
    rows[0] = (struct limits_row){ .cells = { STR("limit"), STR("type"), STR("allowed"),
                                              STR("held"), STR("unavailable"), STR("waiting") } };
    for (uint32_t i = 0; i < b->limit_n; i++) {
        limits_row_fill(p, &b->limits[i], &rows[i + 1]);
    }
    limits_page_rows(p, rows, b->limit_n + 1);
}

/* "2 of 40: 5 %, at least 1, at most 10". */
static struct str allowed_text(const struct limits_report_limit *l, struct arena *out)
{
    struct str least = l->minimum > 0 ? arena_printf(out, ", at least %u", l->minimum) : STR_NONE;
    struct str most = l->most != UINT32_MAX ? arena_printf(out, ", at most %u", l->most) : STR_NONE;
    struct str rule =
        arena_printf(out, "%u %%" STR_FMT STR_FMT, l->percent, STR_ARG(least), STR_ARG(most));
    return l->computed
               ? arena_printf(out, "%u of %u: " STR_FMT, l->allowed, l->population, STR_ARG(rule))
               : rule;
}

static void limits_page_limit(struct limits_page *p, const struct limits_report_limit *l)
{
    struct arena *a = &p->tmp;
    struct str all = arena_printf(a, "every " STR_FMT, STR_ARG(l->type));
    p->line.hang = 2;
    textwrap_printf(&p->line, "limit " STR_FMT ": " STR_FMT, STR_ARG(l->name),
                    STR_ARG(limits_report_limit_state(l)));
    textwrap_end(&p->line);
    limits_page_field(p, "problem", l->problem);
    struct str selects = l->selects.n > 0 ? arena_printf(a, STR_FMT ": " STR_FMT, STR_ARG(l->type),
                                                         STR_ARG(l->selects))
                                          : all;
    limits_page_field(p, "selects",
                      l->exclusive ? arena_concat(a, selects, STR("; no other limit concerns them"))
                                   : selects);
    limits_page_field(p, "allows", allowed_text(l, a));
    limits_page_field(p, "held", arena_printf(a, "%u", l->held));
    if (l->computed) {
        limits_page_field(p, "out", arena_printf(a, "%u unavailable and not held", l->unavailable));
        limits_page_field(p, "free", arena_printf(a, "for %u more", l->paused ? 0 : l->room));
    }
    limits_page_field(p, "waiting", arena_printf(a, "%u", l->waiting));
    if (l->gap_end > p->limits_report->now) {
        limits_page_field(p, "gap", humantime_at(p->limits_report->now, l->gap_end, a));
    }
}

/* ── claims ────────────────────────────────────────────────────────────────────────────────── */

static struct str age_text(const struct limits_page *p, usec_t since, struct arena *out)
{
    return since > 0 ? humantime_since(p->limits_report->now, since, out) : STR_NONE;
}

/* "in 3m (Mon 01:37:46 UTC), then it is closed"; empty = there is no deadline. */
static struct str deadline_text(const struct limits_page *p, usec_t deadline, struct str then,
                                struct arena *out)
{
    struct str when = humantime_at(p->limits_report->now, deadline, out);
    return when.n == 0 || then.n == 0
               ? when
               : arena_printf(out, STR_FMT ", then " STR_FMT, STR_ARG(when), STR_ARG(then));
}

/* "mr-a-1 of kured for 4m, InProgress, deadline in 3m (…), then …". */
static struct str holder_text(const struct limits_page *p, const struct limits_report_holder *h,
                              struct arena *out)
{
    struct str who = limits_report_owner_text(h->name, h->client, out);
    struct str length = age_text(p, h->since, out);
    struct str when = deadline_text(p, h->deadline, h->at_deadline, out);
    return arena_printf(out, STR_FMT "%s" STR_FMT "%s" STR_FMT "%s" STR_FMT, STR_ARG(who),
                        length.n > 0 ? " for " : "", STR_ARG(length), h->phase.n > 0 ? ", " : "",
                        STR_ARG(h->phase), when.n > 0 ? ", deadline " : "", STR_ARG(when));
}

static struct str limit_names_text(const struct limits_report_claim *c, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i < c->limit_n; i++) {
        buf_printf(&text, "%s" STR_FMT, i > 0 ? ", " : "", STR_ARG(c->limits[i]));
    }
    return arena_str(out, buf_str(&text));
}

/* "until one of the 2 held under limit node ends; longest held: worker-1 by …". */
static struct str until_text(const struct limits_page *p, const struct limits_report_claim *c,
                             struct arena *out)
{
    struct str when = humantime_at(p->limits_report->now, c->next, out);
    struct str text = c->until;
    if (when.n > 0) {
        text = arena_printf(out, STR_FMT ", " STR_FMT, STR_ARG(text), STR_ARG(when));
    }
    if (c->blocker == NULL) {
        return text;
    }
    bool other = !str_eq(c->blocker->target, c->target);
    struct str holder = holder_text(p, c->blocker, out);
    return arena_printf(out, STR_FMT "; %s" STR_FMT "%s" STR_FMT, STR_ARG(text),
                        other ? "longest held: " : "held by ",
                        STR_ARG(other ? c->blocker->target : STR_NONE), other ? " by " : "",
                        STR_ARG(holder));
}

/* "mr-a-1 of kured, InProgress for 4m, deadline in 3m (…)"; who waits has but one phase. */
static void claim_head_text(struct limits_page *p, const struct limits_report_claim *c)
{
    struct arena *a = &p->tmp;
    struct str length = age_text(p, c->since, a);
    struct str when = c->waits ? STR_NONE : deadline_text(p, c->deadline, c->at_deadline, a);
    struct str phase = c->waits ? STR_NONE : c->phase;
    if (c->waits && c->position > 0) {
        textwrap_printf(&p->line, "%u. ", c->position);
    }
    textwrap_add(&p->line, limits_report_owner_text(c->name, c->client, a));
    textwrap_printf(&p->line, "%s" STR_FMT "%s" STR_FMT "%s" STR_FMT, phase.n > 0 ? ", " : "",
                    STR_ARG(phase), length.n > 0 ? " for " : "", STR_ARG(length),
                    when.n > 0 ? ", deadline " : "", STR_ARG(when));
}

static void limits_page_claim(struct limits_page *p, const struct limits_report_claim *c,
                              uint32_t name)
{
    struct textwrap *line = &p->line;
    line->hang = name + 4;
    textwrap_add(line, STR("  "));
    textwrap_add(line, c->target.n > 0 ? c->target : STR("-"));
    textwrap_tab(line, name + 4);
    claim_head_text(p, c);
    if (c->waits && c->message.n > 0) {
        textwrap_printf(line, ": " STR_FMT, STR_ARG(c->message));
    } else if (c->waits && c->reason.n > 0) {
        textwrap_printf(line, ": " STR_FMT, STR_ARG(c->reason));
    } else if (!c->waits && c->limit_n > 0) {
        textwrap_printf(line, "; under " STR_FMT, STR_ARG(limit_names_text(c, &p->tmp)));
    }
    if (!c->waits && str_eq(c->phase, STR("Preparing")) && c->message.n > 0) {
        textwrap_printf(line, ": " STR_FMT, STR_ARG(c->message));
    }
    textwrap_end(line);
    struct str until = c->waits ? until_text(p, c, &p->tmp) : STR_NONE;
    if (until.n > 0) {
        line->hang = name + 4;
        textwrap_tab(line, name + 4);
        textwrap_printf(line, "until " STR_FMT, STR_ARG(until));
        textwrap_end(line);
    }
}

/* Claims that wait, or those that do not, from the one at `from`. */
static void limits_page_claims(struct limits_page *p, const char *title, bool waits, uint32_t from)
{
    const struct limits_report *b = p->limits_report;
    uint32_t n = 0;
    uint32_t name = 0;
    uint32_t shown = 0;
    for (uint32_t i = from; i < b->claim_n; i++) {
        n += b->claims[i].waits == waits ? 1 : 0;
    }
    if (n == 0) {
        return;
    }
    uint32_t most = p->wide ? n : MIN(n, LIMITS_REPORT_CLAIMS_SHOWN);
    for (uint32_t i = from; i < b->claim_n && shown < most; i++) {
        if (b->claims[i].waits == waits) {
            uint32_t width = textwrap_width(b->claims[i].target);
            name = MAX(name, p->wide ? width : MIN(width, TARGET_COLUMNS_MAX));
            shown++;
        }
    }
    textwrap_end(&p->line);
    p->line.hang = 2;
    textwrap_printf(&p->line, "%s (%u)", title, n);
    textwrap_end(&p->line);
    for (uint32_t i = from; i < b->claim_n && shown > 0; i++) {
        if (b->claims[i].waits == waits) {
            limits_page_claim(p, &b->claims[i], name);
            shown--;
        }
    }
    if (most < n) {
        textwrap_printf(&p->line, "  and %u more; -o wide lists all", n - most);
        textwrap_end(&p->line);
    }
}

/* ── one request ───────────────────────────────────────────────────────────────────────────── */

static void limits_page_request(struct limits_page *p, const struct limits_report_claim *c)
{
    struct arena *a = &p->tmp;
    p->line.hang = 2;
    textwrap_printf(&p->line, "request " STR_FMT ": " STR_FMT, STR_ARG(c->name), STR_ARG(c->phase));
    if (c->step.n > 0) {
        textwrap_printf(&p->line, " (" STR_FMT ")", STR_ARG(c->step));
    }
    if (c->since > 0) {
        textwrap_printf(&p->line, " for " STR_FMT,
                        STR_ARG(humantime_since(p->limits_report->now, c->since, a)));
    }
    if (c->waits && c->position > 0) {
        textwrap_printf(&p->line, ", place %u in the queue", c->position);
    }
    textwrap_end(&p->line);
    limits_page_field(p, "target",
                      arena_printf(a, STR_FMT " " STR_FMT, STR_ARG(c->type), STR_ARG(c->target)));
    limits_page_field(p, "client", c->client);
    if (c->priority != 0) {
        limits_page_field(p, "priority", arena_printf(a, "%d", c->priority));
    }
    limits_page_field(
        p, c->waits ? "waits" : "says",
        c->reason.n > 0 && c->message.n > 0
            ? arena_printf(a, STR_FMT ": " STR_FMT, STR_ARG(c->reason), STR_ARG(c->message))
            : arena_concat(a, c->reason, c->message));
    limits_page_field(p, c->waits ? "until" : "next", until_text(p, c, a));
    limits_page_field(p, "deadline", deadline_text(p, c->deadline, c->at_deadline, a));
    limits_page_field(p, "limits",
                      c->limit_n > 0 ? limit_names_text(c, a) : STR("none concerns it"));
    if (p->limits_report->limit_n > 0) {
        textwrap_end(&p->line);
        limits_page_limits(p);
    }
    limits_page_claims(p, "before it in the queue", /* waits= */ true, 1);
}

void limits_report_print_text(const struct limits_report *b, bool wide, struct buf *out)
{
    struct limits_page p = {
        .limits_report = b,
        .wide = wide,
        .line = { .out = out,
                  .columns = wide             ? 0
                             : b->columns > 0 ? b->columns
                                              : TEXT_COLUMNS },
    };
    if (b->about == LIMITS_REPORT_REQUEST && b->claim_n > 0) {
        limits_page_request(&p, &b->claims[0]);
    } else {
        if (b->about == LIMITS_REPORT_LIMIT && b->limit_n > 0) {
            limits_page_limit(&p, &b->limits[0]);
        } else {
            limits_page_limits(&p);
        }
        limits_page_claims(&p, "held", /* waits= */ false, 0);
        limits_page_claims(&p, "queue", /* waits= */ true, 0);
    }
    arena_done(&p.tmp);
}
