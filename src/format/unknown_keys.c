#include "format/unknown_keys.h"

#include <string.h>

#include "base/closest.h"
#include "base/map.h"

#define SHOWN_MAX 64u /* bytes of a key */

static void warn(const struct ucfg_value_member *member, struct str best, const char *what,
                 struct problems *problems)
{
    struct str shown = str_sub(member->name, 0, MIN(member->name.n, (size_t)SHOWN_MAX));
    struct pos pos = member->pos.line > 0 ? member->pos : member->value->pos;
    if (best.n > 0) {
        problems_warn(problems, pos,
                      "key '" STR_FMT "' is unknown in %s and ignored; did you mean '" STR_FMT "'?",
                      STR_ARG(shown), what, STR_ARG(best));
    } else {
        problems_warn(problems, pos, "key '" STR_FMT "' is unknown in %s and ignored",
                      STR_ARG(shown), what);
    }
}

static bool is_known(struct str names, struct str name, struct closest *near)
{
    struct str piece;
    bool known = false;
    while (str_split_next(&names, '|', &piece)) {
        known = known || str_eq(piece, name);
        closest_offer(near, piece);
    }
    return known;
}

void unknown_keys_warn(const struct ucfg_value *obj, const char *names, const char *what,
                       struct problems *problems)
{
    for (uint32_t i = 0; obj != NULL && i < obj->member_n; i++) {
        const struct ucfg_value_member *member = &obj->members[i];
        struct closest near = closest_to(member->name);
        if (!is_known(str_from(names), member->name, &near)) {
            warn(member, near.best, what, problems);
        }
    }
}

/* The names that "${name", "${name.key" or "${name:default" ask for anywhere in the file. */
static void find_variables(const struct ucfg *u, struct map *ret)
{
    struct str rest = u->text;
    struct str head;
    while (str_cut(rest, STR("${"), &head, &rest)) {
        size_t n = 0;
        while (n < rest.n && n < SHOWN_MAX && strchr("}.:?+ \n", rest.p[n]) == NULL) {
            n++;
        }
        if (map_find(ret, str_sub(rest, 0, n)) == NULL) {
            (void)map_put(ret, str_sub(rest, 0, n), ret); /* any value: it is a set */
        }
    }
}

void unknown_keys_warn_root(const struct ucfg *u, const char *names, struct problems *problems)
{
    CLEANUP(map_done)
    struct map variables = { 0 };
    find_variables(u, &variables);
    for (uint32_t i = 0; i < u->root->member_n; i++) {
        const struct ucfg_value_member *member = &u->root->members[i];
        struct closest near = closest_to(member->name);
        if (!is_known(str_from(names), member->name, &near) &&
            map_find(&variables, member->name) == NULL) {
            warn(member, near.best, "the file", problems);
        }
    }
}
