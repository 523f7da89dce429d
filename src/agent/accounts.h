/*
 * accounts: /etc/passwd, /etc/group and /etc/shadow as text. Pure.
 *
 * Only the files: a machine must not depend on a directory service for who owns its files. Lines
 * that are no entries (comments, blank lines, "+" of old directory services) are skipped.
 */
#pragma once

#include "base/str.h"

struct account {
    struct str name;
    uint32_t uid;
    uint32_t gid;
    struct str comment;
    struct str home;
    struct str shell;
};

struct account_group {
    struct str name;
    uint32_t gid;
    struct str members; /* with commas */
};

struct account_shadow {
    struct str name;
    struct str hash; /* "!…" and "*" lock the account */
};

/* Walks over the entries of `*rest`. */
bool account_next(struct str *rest, struct account *ret);
bool account_group_next(struct str *rest, struct account_group *ret);
bool account_shadow_next(struct str *rest, struct account_shadow *ret);

bool account_find(struct str passwd, struct str name, struct account *ret);
bool account_find_uid(struct str passwd, uint32_t uid, struct account *ret);
bool account_group_find(struct str groups, struct str name, struct account_group *ret);
bool account_group_find_gid(struct str groups, uint32_t gid, struct account_group *ret);
bool account_shadow_find(struct str shadow, struct str name, struct account_shadow *ret);
bool account_group_has(const struct account_group *group, struct str member);

/* Whether useradd would take it: 1 to 32 of a-z, 0-9, "_", "-", and "$" at the end. */
bool account_name_is_good(struct str name);
#define ACCOUNT_NAME_WANTED "1 to 32 of a-z, 0-9, '_' and '-', not digits alone"
/* Of a user or a group; the last two numbers mean "none" to some calls. */
bool account_number_is_good(int64_t number);
#define ACCOUNT_NUMBER_WANTED "0 to 4294967293"
/* Whether it can stand between two colons of a line. */
bool account_text_is_good(struct str text);
