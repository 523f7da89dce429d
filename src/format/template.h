/*
 * template: Go's text/template, as far as the messages of notifications use it.
 *
 * A template is read once and run often; running it changes nothing but the output. Whatever a
 * template does is bounded: a message is a message, not a program. Fields, functions and printing
 * are Go's. Beyond Go, an entry of a ResourceList can be had by its name (`.Capacity.cpu`), and a
 * string may have fields (govalue_str_with).
 */
#pragma once

#include "base/buf.h"
#include "format/govalue.h"

#define TEMPLATE_TEXT_MAX ((size_t)64 * 1024) /* messages are pages of text at most */
#define TEMPLATE_OUTPUT_MAX                                                                        \
    ((size_t)256 * 1024)           /* Slack takes 40,000 characters, mail little more */
#define TEMPLATE_STEPS_MAX 100000u /* a thousand labels in ten loops; over in some milliseconds */
#define TEMPLATE_DEPTH_MAX 200u    /* nesting, also of templates that call themselves: C's stack */
#define TEMPLATE_MEMORY_MAX ((size_t)16 * 1024 * 1024) /* values between steps, for one message */

#define TEMPLATE_MAIN "template" /* what the whole is called, for {{define}} and {{template}} */

struct template;

/* `text` and `out` live as long as the template. -ERR_INVALID: the text is no template. */
NODISCARD
int template_parse(struct str text, struct arena *out, struct template **ret, struct err *err);

/* Adds the message to `out`; on failure `out` is as before. Both errors carry line and column. */
NODISCARD
int template_render(const struct template *t, const struct govalue *root, struct buf *out,
                    struct err *err);
