/*
 * authorized_keys: the file of sshd that says which keys open an account. Pure; lines that an edit
 * does not concern stay as they are, to the byte.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct authorized_key {
    struct str options; /* in front of it; may be empty */
    struct str type;    /* "ssh-ed25519" */
    struct str blob;    /* the key itself, in base64 */
    struct str comment; /* may be empty */
};

/* False for a line that is no key: a comment, a blank line, nonsense. */
bool authorized_key_read(struct str line, struct authorized_key *ret);
/* A key without options, as ssh-keygen prints it; says what is wrong otherwise. */
NODISCARD
int authorized_key_parse(struct str text, struct arena *tmp, struct authorized_key *ret,
                         struct err *err);
/* Whether it could stand in front of a key. */
bool authorized_options_are_good(struct str options);

/* The line of a key, whatever its options and comment; false when it is not there. */
bool authorized_keys_find(const struct authorized_key *key, struct str text, struct str *ret_line);

struct authorized_keys_edit {
    struct authorized_key key; /* its options count if they are given */
    bool options_given;
    bool absent;
    bool exclusive; /* all other keys go */
};
struct str authorized_keys_edit(const struct authorized_keys_edit *edit, struct str text,
                                struct arena *out);
/* Puts the line of a key back as it was, or takes the key out; adds those of `others` that are not
 * there. */
struct str authorized_keys_restore(const struct authorized_key *key, struct str line,
                                   struct str others, struct str text, struct arena *out);
