/*
 * setting_edit: one value in a configuration file: ini, environment files, "key = value" and
 * sshd_config. Pure; comments, order and spaces of all other lines stay as they are, to the byte.
 *
 * Of a key that comes twice that one is read and changed which counts for the program: the first
 * for sshd, the last for the others.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum setting_format {
    SETTING_INI,  /* [section] and key=value; '#' and ';' begin comments */
    SETTING_ENV,  /* NAME=value, perhaps behind "export" and in quotes */
    SETTING_KV,   /* key, separator, value */
    SETTING_SSHD, /* Keyword value, whatever the case; ends at the first Match */
    SETTING_FORMATS,
};
extern const char *const setting_format_names[SETTING_FORMATS];

struct setting_key {
    enum setting_format format;
    struct str section; /* SETTING_INI; empty = before the first section */
    struct str name;
    struct str separator; /* of a new line, and SETTING_KV: what divides */
};

/* Names what a key or a value of this format cannot hold. */
NODISCARD
int setting_check(const struct setting_key *key, struct str value, struct err *err);

/* The value without quotes and spaces around it; false when the key is not there. */
bool setting_find(const struct setting_key *key, struct str text, struct arena *out,
                  struct str *ret);
/* -ERR_INVALID for a value that goes on on the next line. */
NODISCARD
int setting_set(const struct setting_key *key, struct str value, struct str text, struct arena *out,
                struct str *ret, struct err *err);
NODISCARD
int setting_remove(const struct setting_key *key, struct str text, struct arena *out,
                   struct str *ret, struct err *err);
