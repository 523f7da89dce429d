/*
 * template_expand: puts values into a payload: ${name} for a parameter of its template, ${version},
 * ${versionTag}, ${machine.name}, ${machine.labels['key']}, ${facts.osId} and the like.
 *
 * A text that is exactly ${name} becomes the parameter's value with its type; inside a longer text
 * a string, number or truth value stands as it is written. "$${" is "${". What was put in is never
 * looked at again, scripts are not looked at at all, and names of members stay. Sizes are counted
 * while expanding: a parameter can stand at many places.
 *
 * Labels and facts are a machine's own words. They may stand in environment values and arguments
 * of a job and in fields of resources, and nowhere where they would choose what the machine is
 * given; and only such that no shell, path or name would take for more than a word.
 */
#pragma once

#include "kinds/node_operation_template.h"
#include "operation/run_job.h"
#include "operation/series.h"

#define EXPAND_PARAMETER_MAX ((size_t)64 * 1024) /* of a value, as JSON */
#define EXPAND_OUTPUT_MAX ((size_t)256 * 1024)   /* of an operation */
#define EXPAND_PARAMETER_DEPTH_MAX 16u           /* and of a payload: both fit JSON_DEPTH_MAX */
#define EXPAND_DEPTH_MAX 128u
#define EXPAND_WORD_MAX 253u /* of a word of the machine */

struct template_expand_input {
    /* NULL: the payload stands in the NodeMaintenance and has no parameters. */
    const struct node_operation_template *template;
    enum operation_payload payload; /* without template; PAYLOAD_JOB or PAYLOAD_RESOURCES */
    struct str payload_json;        /* without template */
    struct str parameters_json;     /* an object */
    struct str version;             /* resolved; empty: ${version} is an error */
    /* NULL: words of a machine stay as they are written. That form is for a revision, which is the
     * same for all machines; it is never expanded again. */
    const struct machine *machine;
};

/* The expanded payload as JSON, in `out`. -ERR_INVALID names the parameter and what is wanted;
 * -ERR_DENIED: a word of the machine stands where it must not, or is no word; -ERR_LIMIT: too
 * large. */
NODISCARD
int template_expand(const struct template_expand_input *in, struct arena *out, struct str *ret,
                    struct err *err);

/* The same for what the template says where an operation does not: timeout, disruptive, reboot,
 * preflight and drain. Words of a machine have no place there. */
NODISCARD
int template_expand_defaults(const struct template_expand_input *in, struct arena *out,
                             struct str *ret, struct err *err);

/* The parameters as variables of scripts, in the order of the template: DD_MIN_FREE for minFree. A
 * list has a line for each element, a map a line "name=value" for each member; what would look like
 * more of them than there are is refused. A secret is named, not given. */
NODISCARD
int template_variables(const struct template_expand_input *in, struct arena *out,
                       const struct run_job_parameter **ret, uint32_t *ret_n, struct err *err);
