#include "demo/screen.h"

#include "base/timestamp.h"
#include "base/textwrap.h"
#include "format/json.h"
#include "profile/controller.h"

#define SCREEN_INDENT 12u    /* where texts begin, behind their headings */
#define SCREEN_BLOCKED 2u    /* rows */
#define SCREEN_MESSAGES 3u   /* of the inbox */
#define SCREEN_MILESTONES 5u /* rows */
#define SCREEN_BAR 24u       /* nodes; each takes two columns */

enum tone { TONE_PLAIN, TONE_GOOD, TONE_WAIT, TONE_MOVE, TONE_OUT, TONE_BAD, TONE_DIM, TONE_BOLD };

static const char *const tone_codes[] = {
    [TONE_PLAIN] = "\x1b[0m", [TONE_GOOD] = "\x1b[32m", [TONE_WAIT] = "\x1b[33m",
    [TONE_MOVE] = "\x1b[36m", [TONE_OUT] = "\x1b[34m",  [TONE_BAD] = "\x1b[31m",
    [TONE_DIM] = "\x1b[2m",   [TONE_BOLD] = "\x1b[1m",
};

static void screen_tone(const struct screen *p, struct buf *out, enum tone tone)
{
    if (p->colour) {
        buf_add(out, str_from(tone_codes[tone]));
    }
}

static void screen_add_tone(const struct screen *p, struct buf *out, enum tone tone,
                            struct str text)
{
    screen_tone(p, out, tone);
    buf_add(out, text);
    screen_tone(p, out, TONE_PLAIN);
}

/* Ends a row and clears what an earlier frame left behind it. */
static void screen_newline(struct buf *out)
{
    buf_add(out, STR("\x1b[K\n"));
}

void screen_clock(struct buf *out, usec_t wall)
{
    struct civil at = civil_from_sec(wall / SECONDS(1));
    buf_printf(out, "%02d:%02d:%02d", at.hour, at.minute, at.second);
}

void screen_length(struct buf *out, usec_t length)
{
    long long seconds = (long long)(length / SECONDS(1));
    buf_printf(out, "%02lld:%02lld", seconds / 60, seconds % 60);
}

void screen_add(struct screen *p, usec_t wall, struct str text)
{
    if (p->n == SCREEN_LINES_MAX) {
        memmove(&p->lines[0], &p->lines[1], sizeof(p->lines) - sizeof(p->lines[0]));
        p->n--;
    }
    struct screen_line *line = &p->lines[p->n++];
    size_t n = MIN(text.n, sizeof(line->text) - 1);
    memcpy(line->text, text.p, n);
    line->text[n] = '\0';
    line->wall = wall;
}

/* ── rows of text ──────────────────────────────────────────────────────────────────────────── */

static void screen_wrap(struct str text, struct buf *out)
{
    struct textwrap line = { .out = out, .columns = SCREEN_COLUMNS - SCREEN_INDENT };
    textwrap_add(&line, text);
    textwrap_end(&line);
}

static uint32_t screen_rows(struct str text)
{
    CLEANUP(buf_done)
    struct buf rows = { 0 };
    uint32_t n = 0;
    screen_wrap(text, &rows);
    for (size_t i = 0; i < rows.n; i++) {
        n += rows.p[i] == '\n' ? 1 : 0;
    }
    return n;
}

struct screen_text {
    struct str head; /* up to 8 columns, before the first row */
    enum tone head_tone;
    enum tone tone;
    struct str text;
    uint32_t max; /* rows */
};

/* A heading and text behind it; answers how many rows it took. */
static uint32_t screen_add_block(const struct screen *p, const struct screen_text *t,
                                 struct buf *out)
{
    CLEANUP(buf_done)
    struct buf wrapped = { 0 };
    screen_wrap(t->text, &wrapped);
    struct str rest = buf_str(&wrapped);
    struct str row;
    uint32_t n = 0;
    while (n < t->max && rest.n > 0 && str_split_next(&rest, '\n', &row)) {
        buf_add(out, STR("  "));
        screen_tone(p, out, t->head_tone);
        buf_printf(out, "%-10.*s", n == 0 ? (int)t->head.n : 0, n == 0 ? t->head.p : "");
        screen_tone(p, out, TONE_PLAIN);
        screen_add_tone(p, out, t->tone, row);
        screen_newline(out);
        n++;
    }
    return n;
}

static void screen_pad(struct buf *out, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) {
        screen_newline(out);
    }
}

/* ── parts ─────────────────────────────────────────────────────────────────────────────────── */

static void screen_header(const struct screen *p, struct script *s, struct buf *out)
{
    CLEANUP(buf_done)
    struct buf clock = { 0 };
    screen_clock(&clock, loop_wall(s->time));
    buf_add(out, STR("  "));
    screen_add_tone(p, out, TONE_BOLD, STR("drydock demo"));
    bool open = civil_from_sec(loop_wall(s->time) / SECONDS(1)).hour >= SCRIPT_WINDOW_HOUR;
    buf_add(out, STR("   an OS update of 24 nodes   "));
    screen_add_tone(p, out, open ? TONE_GOOD : TONE_WAIT,
                    open ? STR("the window is open   ") : STR("the window opens at 22"));
    buf_printf(out, "%*s" STR_FMT, open ? 7 : 6, "", STR_ARG(buf_str(&clock)));
    screen_newline(out);
    screen_tone(p, out, TONE_DIM);
    buf_printf(out, "  live at " STR_FMT "   time runs %.0f times as fast   Ctrl-C ends",
               STR_ARG(p->url), p->speed);
    screen_tone(p, out, TONE_PLAIN);
    screen_newline(out);
    screen_newline(out);
}

static const struct {
    enum tone tone;
    const char *cell;
    const char *name;
} state_looks[DEMO_NODE_STATES] = {
    [DEMO_NODE_OPERATIONAL] = { TONE_PLAIN, "□", "operational" },
    [DEMO_NODE_REQUIRED] = { TONE_WAIT, "◇", "required" },
    [DEMO_NODE_DRAINING] = { TONE_MOVE, "◆", "draining" },
    [DEMO_NODE_MAINTENANCE] = { TONE_OUT, "▣", "in maintenance" },
};

static void screen_node_cell(const struct screen *p, const struct demo_node *node, bool blocked,
                             struct buf *out)
{
    enum tone tone = state_looks[node->state].tone;
    const char *cell = state_looks[node->state].cell;
    if (node->state == DEMO_NODE_OPERATIONAL && node->updated) {
        tone = TONE_GOOD;
        cell = "■";
    } else if (blocked) {
        tone = TONE_BAD;
        cell = "!";
    } else if (!node->ready && !node->rebooting) {
        tone = TONE_BAD;
        cell = "×";
    }
    screen_add_tone(p, out, tone, str_from(cell));
    buf_add_char(out, ' ');
}

static void screen_replica(const struct screen *p, const struct script_replica *r, struct buf *out)
{
    bool leads = r->controller != NULL && core_leads(r->core);
    const char *what = r->controller == NULL ? "killed" : leads ? "leads" : "stands by";
    enum tone tone = r->controller == NULL ? TONE_BAD : leads ? TONE_GOOD : TONE_DIM;
    buf_printf(out, STR_FMT "   ", STR_ARG(r->name));
    screen_add_tone(p, out, tone, str_from(what));
}

/* The column beside the zones: the replicas and a legend. */
static void screen_right_column(const struct screen *p, const struct script *s, uint32_t row,
                                struct buf *out)
{
    buf_add(out, STR("      "));
    if (row < SCRIPT_REPLICAS) {
        screen_replica(p, &s->replicas[row], out);
    } else {
        screen_add_tone(p, out, TONE_DIM, STR("■ updated  ! blocked  × no network"));
    }
}

static void screen_fleet(const struct screen *p, const struct script *s,
                         const struct demo_state *fleet, struct buf *out)
{
    uint32_t rows = 0;
    /* Zones in the order of their first node. */
    for (uint32_t i = 0; i < fleet->n && rows < 3; i++) {
        struct str zone = str_from(fleet->nodes[i].zone);
        bool first = true;
        for (uint32_t k = 0; k < i; k++) {
            first = first && !str_eq(str_from(fleet->nodes[k].zone), zone);
        }
        if (!first) {
            continue;
        }
        buf_printf(out, "  zone %-5.1s", zone.n > 0 ? zone.p + zone.n - 1 : "");
        for (uint32_t k = i; k < fleet->n; k++) {
            const struct demo_node *node = &fleet->nodes[k];
            if (str_eq(str_from(node->zone), zone)) {
                screen_node_cell(p, node, strcmp(node->name, s->blocked.node) == 0, out);
            }
        }
        screen_right_column(p, s, rows++, out);
        screen_newline(out);
    }
    screen_pad(out, 3 - rows + 1);
}

static void screen_bar(const struct screen *p, const struct demo_state *fleet,
                       enum demo_node_state state, struct buf *out)
{
    uint32_t n = MIN(fleet->states[state], SCREEN_BAR);
    buf_printf(out, "  %s %-15s", state_looks[state].cell, state_looks[state].name);
    bool rests = state == DEMO_NODE_OPERATIONAL;
    uint32_t good = rests ? MIN(fleet->serviced, n) : 0;
    for (uint32_t i = 0; i < SCREEN_BAR; i++) {
        enum tone tone = i < good ? TONE_GOOD : i < n ? state_looks[state].tone : TONE_DIM;
        screen_add_tone(p, out, tone, i < good ? STR("██") : i < n ? STR("▓▓") : STR("··"));
    }
    buf_printf(out, " %2u", fleet->states[state]);
    screen_newline(out);
}

static void screen_blocked(const struct screen *p, const struct script *s, struct buf *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct screen_text block = { .max = SCREEN_BLOCKED };
    if (s->over) {
        script_summary(s, &text);
        block.head = s->failed ? STR("failed") : STR("done");
        block.head_tone = s->failed ? TONE_BAD : TONE_GOOD;
    } else if (s->blocked.node[0] != '\0') {
        buf_printf(&text, "%s, %s", s->blocked.node, s->blocked.why);
        if (s->blocked.more > 0) {
            buf_printf(&text, "; and %u more", s->blocked.more);
        }
        block.head = STR("blocked");
        block.head_tone = TONE_BAD;
    } else {
        buf_add(&text, STR("no drain is blocked"));
        block.tone = TONE_DIM;
        block.head = STR("blocked");
        block.head_tone = TONE_DIM;
    }
    block.text = buf_str(&text);
    uint32_t rows = screen_add_block(p, &block, out);
    screen_pad(out, SCREEN_BLOCKED - rows + 1);
}

/* "mail to ops@example.org: …" or "slack #nodes: …". */
static void screen_message(const struct inbox_message *m, struct buf *out)
{
    if (m->is_mail) {
        struct str head;
        struct str body;
        (void)str_cut(m->mail.payload, STR("\r\n\r\n"), &head, &body);
        buf_printf(out, "mail   " STR_FMT, STR_ARG(str_trim(body)));
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root;
    struct err err = { 0 };
    if (json_parse(m->request.body, 0, &tmp, &root, &err) < 0) {
        buf_add(out, STR("slack  a message that cannot be read"));
        return;
    }
    buf_printf(out, "slack  " STR_FMT "  " STR_FMT,
               STR_ARG(jval_str(jval_get(root, STR("channel")))),
               STR_ARG(jval_str(jval_get(root, STR("text")))));
}

static void screen_inbox(const struct screen *p, const struct script *s, struct buf *out)
{
    const struct inbox *inbox = &s->inbox;
    CLEANUP(buf_done)
    struct buf head = { 0 };
    buf_printf(&head, "inbox %llu", (unsigned long long)inbox->arrived);
    uint32_t first = inbox->n > SCREEN_MESSAGES ? inbox->n - SCREEN_MESSAGES : 0;
    uint32_t rows = 0;
    for (uint32_t i = first; i < inbox->n; i++) {
        CLEANUP(buf_done)
        struct buf text = { 0 };
        screen_message(inbox_at(inbox, i), &text);
        const struct screen_text block = {
            .head = i == first ? buf_str(&head) : STR_NONE,
            .head_tone = TONE_DIM,
            .text = buf_str(&text),
            .max = 1,
        };
        rows += screen_add_block(p, &block, out);
    }
    screen_pad(out, SCREEN_MESSAGES - rows + 1);
}

static void screen_milestones(const struct screen *p, struct buf *out)
{
    uint32_t first = p->n;
    uint32_t rows = 0;
    while (first > 0) {
        uint32_t more = screen_rows(str_from(p->lines[first - 1].text));
        if (rows + more > SCREEN_MILESTONES) {
            break;
        }
        rows += more;
        first--;
    }
    for (uint32_t i = first; i < p->n; i++) {
        CLEANUP(buf_done)
        struct buf clock = { 0 };
        screen_clock(&clock, p->lines[i].wall);
        const struct screen_text block = {
            .head = buf_str(&clock),
            .head_tone = TONE_DIM,
            .text = str_from(p->lines[i].text),
            .max = SCREEN_MILESTONES,
        };
        (void)screen_add_block(p, &block, out);
    }
}

void screen_draw(const struct screen *p, struct script *script, struct buf *out)
{
    struct demo_state fleet;
    demo_state_read(script->server, &fleet);
    buf_add(out, STR("\x1b[H"));
    screen_header(p, script, out);
    screen_fleet(p, script, &fleet, out);
    for (int state = 0; state < DEMO_NODE_STATES; state++) {
        screen_bar(p, &fleet, (enum demo_node_state)state, out);
    }
    screen_newline(out);
    screen_blocked(p, script, out);
    screen_inbox(p, script, out);
    screen_milestones(p, out);
    /* A line break in the last row would move everything up. */
    ASSERT(out->n > 0);
    if (out->p[out->n - 1] == '\n') {
        out->n--;
    }
    buf_add(out, STR("\x1b[J"));
}
