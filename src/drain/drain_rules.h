/*
 * drain_rules: which pods of a node go first, are waited for, or stay: Cluster API's
 * MachineDrainRules, as far as they concern this node.
 *
 * The rules are objects of another cluster, the management cluster. The controller that may read
 * them there (`drydock bridge`) writes those that apply to a node into the node's annotation
 * KEY_DRAIN_RULES when it asks for the node, and mends the annotation should somebody change
 * it. A node with that annotation is drained as Cluster API would drain it:
 *
 *   [{"name":"10-db","behavior":"Drain","order":5,
 *     "pods":[{"selector":"app=db","namespaceSelector":"team in (a,b)"}]},
 *    {"name":"20-rest","behavior":"WaitCompleted"}]
 *
 * or, when the rules cannot be used, {"error":"…"}, and then nothing is drained. Rules stand in
 * the order of their names; the first that matches a pod decides alone. Selectors are text, as
 * kubectl takes them; one that is not there matches everything.
 */
#pragma once

#include "format/json.h"
#include "format/selector.h"

#define DRAIN_RULES_BYTES_MAX 65536u /* all annotations of an object may have four times that */

enum drain_rule_behavior {
    DRAIN_RULE_DRAIN,
    DRAIN_RULE_SKIP,
    DRAIN_RULE_WAIT_COMPLETED, /* until the Pod object is gone, even when the pod has finished */
};

/* Both have to match. */
struct drain_rule_pods {
    struct selector pods;
    struct selector namespaces; /* the labels of the pod's namespace */
};

struct drain_rule {
    struct str name;
    enum drain_rule_behavior behavior;
    int32_t order; /* lower ones go first; 0 unless DRAIN_RULE_DRAIN says otherwise */
    struct drain_rule_pods *pods;
    uint32_t n; /* 0: all pods are meant */
};

struct drain_rules {
    struct drain_rule *rules;
    uint32_t n;
    bool by_namespace; /* some rule asks for the labels of namespaces */
    struct str error;  /* why nothing may be drained; empty: there is no reason */
};

/* The annotation's value. Texts are copied into `out`. */
NODISCARD
int drain_rules_parse(struct str text, struct arena *out, struct drain_rules *ret, struct err *err);
/* The canonical text; more than DRAIN_RULES_BYTES_MAX, and it says {"error":"…"}. */
void drain_rules_print(const struct drain_rules *drain_rules, struct buf *out);

/* A selector of a MachineDrainRule: where there is none, everything is meant. */
NODISCARD
int drain_rule_read_selector(const struct jval *v, struct arena *out, struct selector *ret,
                             struct err *err);
/* What a MachineDrainRule says of drains: `name`, its spec.drain and spec.pods. */
NODISCARD
int drain_rule_read(struct str name, const struct jval *spec, struct arena *out,
                    struct drain_rule *ret, struct err *err);

/* The rule that decides about a pod; *ret is NULL when no rule matches. Labels are packed as
 * format/label_pack.h does it; `namespace` are those of the pod's namespace, NULL when they are not
 * known. -ERR_NOTFOUND: they would have to be known. */
NODISCARD
int drain_rules_find(const struct drain_rules *drain_rules, const struct str *pod,
                     const struct str *namespace, const struct drain_rule **ret);

/* Whether the labels of namespaces have to be known for it. */
bool drain_rule_asks_namespaces(const struct drain_rule *rule);
