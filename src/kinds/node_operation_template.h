/*
 * node_operation_template: reads a NodeOperationTemplate: a payload with parameters.
 *
 * The payload stays JSON; operation/template_expand.h puts values into it.
 */
#pragma once

#include "format/regex.h"
#include "kinds/node_operation.h"

#define TEMPLATE_PARAMETERS_MAX 32u
#define TEMPLATE_ENUM_MAX 64u
#define TEMPLATE_PARAMETER_NAME_MAX 40u

enum parameter_type {
    PARAMETER_STRING,
    PARAMETER_INT,
    PARAMETER_BOOL,
    PARAMETER_LIST,
    PARAMETER_MAP,
    PARAMETER_ENUM,
};

struct template_parameter {
    struct str name;
    enum parameter_type type;
    struct str default_json; /* empty: none, and it is required */
    bool required;
    bool secret;               /* only as {"secretRef": {"name": …, "key": …}} */
    struct spec_texts allowed; /* PARAMETER_ENUM */
    struct str pattern_text;
    const struct regex *pattern; /* NULL: none */
    bool has_min;
    bool has_max;
    int64_t min;
    int64_t max;
};

struct node_operation_template {
    struct spec_meta meta;
    struct str version;
    unsigned types; /* 1 << enum operation_type */
    const struct template_parameter *parameters;
    uint32_t parameter_n;
    enum operation_payload payload; /* PAYLOAD_JOB or PAYLOAD_RESOURCES */
    struct str payload_json;
    struct str defaults_json; /* "{}" if there are none */
    struct spec_problem problem;
    struct str status; /* JSON */
};

const char *parameter_type_name(enum parameter_type type);

void node_operation_template_read(const struct jval *object, struct arena *out,
                                  struct node_operation_template *ret);
/* For kube/store. */
extern const struct store_kind node_operation_template_kind;
