/* A configuration that loads has what its tables promise; one that does not has problems that lie
 * within the text, in order. Its expressions and chains read back as themselves. */
#include "profile/config.h"
#include "tests/fuzz/target.h"

static bool find_env(void *ctx, struct str name, struct str *ret)
{
    (void)ctx; /* every second name is set, to itself */
    *ret = name;
    return name.n % 2 == 1;
}

static uint32_t lines_of(struct str text)
{
    uint32_t n = 1;
    for (size_t i = 0; i < text.n; i++) {
        /* YAML also knows CR, NEL, LS and PS as ends of lines; bytes of those count, too. */
        n += text.p[i] == '\n' || text.p[i] == '\r' || (unsigned char)text.p[i] == 0x85 ||
             (unsigned char)text.p[i] == 0xa8 || (unsigned char)text.p[i] == 0xa9;
    }
    return n;
}

static void check_problems(struct str text, const struct problems *problems)
{
    uint32_t last = 0;
    ASSERT(problems->n > 0);
    for (uint32_t i = 0; i < problems->n; i++) {
        ASSERT(problems->items[i].text.n > 0);
        ASSERT(problems->items[i].pos.line >= last);
        last = problems->items[i].pos.line;
    }
    ASSERT(last <= lines_of(text) + 1);
}

static void check_chain(const struct config *c, enum plugin_kind kind, const struct chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        ASSERT(chain->links[i].index < c->instances[kind].n);
        ASSERT(str_eq(c->instances[kind].items[chain->links[i].index].name, chain->links[i].name));
    }
}

static void check_profile(const struct config *c, const struct config_profile *p)
{
    ASSERT(p->name.n > 0);
    for (uint32_t i = 0; i < PROFILE_STATE_COUNT; i++) {
        const struct config_state *s = &p->states[i];
        check_chain(c, PLUGIN_TRIGGER, &s->enter);
        check_chain(c, PLUGIN_NOTIFY, &s->notify);
        for (uint32_t t = 0; t < s->transition_n; t++) {
            ASSERT(s->transitions[t].check.n > 0);
            ASSERT(s->transitions[t].next < PROFILE_STATE_COUNT);
            check_chain(c, PLUGIN_TRIGGER, &s->transitions[t].trigger);
        }
    }
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems = { .out = &a };
    struct config c;
    if (config_load(text, (struct ucfg_env){ .find = find_env }, &a, &c, &problems) < 0) {
        check_problems(text, &problems);
        return;
    }
    ASSERT(problems.errors == 0); /* there may be warnings */
    ASSERT(c.requeue_ns != 0);
    ASSERT(config_find_profile(&c, NODE_LABEL_DEFAULT_PROFILE) != NULL);
    for (uint32_t i = 0; i < c.profile_n; i++) {
        check_profile(&c, &c.profiles[i]);
    }
    for (uint32_t kind = 0; kind < PLUGIN_KINDS; kind++) {
        for (uint32_t i = 0; i < c.instances[kind].n; i++) {
            const struct config_instance *one = &c.instances[kind].items[i];
            ASSERT(one->plugin != NULL);
            ASSERT(one->values != NULL);
            ASSERT((one->schedule != NULL) == (kind == PLUGIN_NOTIFY));
        }
    }
}
