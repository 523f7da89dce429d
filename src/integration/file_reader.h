/*
 * file_reader: takes the keys of a provider's configuration file, and says what is wrong with them
 * by file, line and column.
 *
 * A key that is missing or wrong becomes a problem, and reading goes on: all of them are listed at
 * once. `path` names the key for people: "intervals.check.period"; its last piece is the key in
 * `obj`. No message shows a value that may be a password: those are read with file_reader_secret.
 */
#pragma once

#include "format/ucfg.h"

struct file_reader {
    const struct ucfg *u;
    struct problems *problems;
};

/* The mapping, of which these keys are known ("period|timeout"; others are warned of); NULL when
 * there is none. `names` NULL: any key may stand there. */
const struct ucfg_value *file_reader_obj(const struct file_reader *r, const struct ucfg_value *obj,
                                         const char *path, const char *names);
/* In microseconds, above 0; with `required`, a missing one is a problem. 0 when there is none. */
usec_t file_reader_duration(const struct file_reader *r, const struct ucfg_value *obj,
                            const char *path, bool required);
bool file_reader_bool(const struct file_reader *r, const struct ucfg_value *obj, const char *path);
double file_reader_real(const struct file_reader *r, const struct ucfg_value *obj, const char *path,
                        double otherwise);
struct str file_reader_text(const struct file_reader *r, const struct ucfg_value *obj,
                            const char *path, bool required);
struct ucfg_strs file_reader_texts(const struct file_reader *r, const struct ucfg_value *obj,
                                   const char *path);
/* As file_reader_text, and no message shows any of it. */
struct str file_reader_secret(const struct file_reader *r, const struct ucfg_value *obj,
                              const char *path, bool required);
/* Where a problem with that key is shown: the key's own place, or that of what it is missing in. */
struct pos file_reader_pos(const struct file_reader *r, const struct ucfg_value *obj,
                           const char *path);
