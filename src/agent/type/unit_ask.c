#include "agent/type/unit_ask.h"

#define LOOK_TIME SECONDS(30)
#define NAME_MAX_BYTES 255u

/* From step to step: which orders were given. */
struct asked {
    uint32_t done; /* bits of enum unit_verb */
    bool looking;  /* the last question was UNIT_LOOK */
};

static int ask(struct resource_call *call, enum unit_verb verb, struct str unit, usec_t time_max)
{
    call->ask = (struct unit_request){ .verb = verb, .unit = unit, .time_max = time_max };
    return RESOURCE_ASK;
}

static int judge(const struct resource_call *call, struct str unit, struct err *err)
{
    struct str problem = call->answer->problem;
    return problem.n == 0
               ? 0
               : err_set(err, ERR_IO, "'" STR_FMT "': " STR_FMT, STR_ARG(unit), STR_ARG(problem));
}

int unit_look(struct resource_call *call, struct str unit, const struct unit_reply **ret,
              struct err *err)
{
    if (call->step == 0) {
        return ask(call, UNIT_LOOK, unit, LOOK_TIME);
    }
    *ret = call->answer;
    return judge(call, unit, err);
}

int unit_run_all(struct resource_call *call, struct str unit, usec_t time_max, unit_next_fn next,
                 const void *ctx, struct err *err)
{
    struct asked *asked = call->memory;
    if (asked == NULL) {
        asked = ARENA_NEW(call->tmp, struct asked);
        call->memory = asked;
        asked->looking = true;
        return ask(call, UNIT_LOOK, unit, LOOK_TIME);
    }
    int r = judge(call, unit, err);
    if (r < 0) {
        return r;
    }
    if (!asked->looking) {
        asked->looking = true;
        return ask(call, UNIT_LOOK, unit, LOOK_TIME);
    }
    enum unit_verb verb = next(call, call->answer, ctx);
    if (verb == UNIT_LOOK || unit_was_ordered(call, verb)) {
        return 0; /* the check that follows says what is left */
    }
    asked->looking = false;
    asked->done |= 1U << verb;
    return ask(call, verb, verb == UNIT_RELOAD_MANAGER ? STR("") : unit, time_max);
}

bool unit_was_ordered(const struct resource_call *call, enum unit_verb verb)
{
    const struct asked *asked = call->memory;
    return asked != NULL && (asked->done & (1U << verb)) != 0;
}

bool unit_full_name(struct str name, struct arena *out, struct str *ret)
{
    static const struct str suffixes[] = {
        STR_INIT(".service"), STR_INIT(".socket"),    STR_INIT(".timer"),
        STR_INIT(".path"),    STR_INIT(".mount"),     STR_INIT(".target"),
        STR_INIT(".slice"),   STR_INIT(".automount"), STR_INIT(".swap"),
    };
    bool good = name.n > 0 && name.p[0] != '-' && name.p[0] != '.';
    for (size_t i = 0; i < name.n && good; i++) {
        char c = name.p[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               str_find_char(STR(":_.\\@-"), c) != SIZE_MAX;
    }
    bool whole = false;
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        whole = whole || (name.n > suffixes[i].n && str_ends(name, suffixes[i]));
    }
    *ret = whole || !good ? name : arena_printf(out, STR_FMT ".service", STR_ARG(name));
    return good && ret->n <= NAME_MAX_BYTES;
}
