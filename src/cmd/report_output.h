/*
 * report_output: a report in the form that -o names. Text comes from the server as it is printed;
 * YAML and names are made of its JSON.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* What a document is about, for `-o name`. */
enum report_about {
    REPORT_ABOUT_FLEET, /* the nodes that are not at rest */
    REPORT_ABOUT_NODE,
    REPORT_ABOUT_REQUEST,
    REPORT_ABOUT_LIMIT,
    REPORT_ABOUT_MACHINE,
    REPORT_ABOUT_MAINTENANCE,
};

/* Whether the form is made of the server's JSON: json, yaml and name are. */
bool report_output_is_json(struct str form);

/* Adds the document in the form; `colour`: text gets colours. */
NODISCARD
int report_output_add(struct str form, enum report_about about, bool colour, struct str body,
                      struct buf *out, struct err *err);
