/*
 * limits: every maximum, with its reason. Reaching one is ERR_LIMIT and visible, never truncation.
 */
#pragma once

#include "base/defs.h"

#define JSON_DEPTH_MAX 192u        /* CRD schemas nest some 60 deep; Go stops at 10,000 */
#define JSON_VALUES_MAX (1u << 26) /* what fits the tape's span; a 64 MiB document has fewer */
#define YAML_DEPTH_MAX 100u        /* deeper files are attacks, not configuration */
#define YAML_VALUES_MAX 200000u    /* an alias bomb expands past this within its first lines */
#define YAML_MERGE_STEPS_MAX                                                                       \
    1000000u /* each "<<" walks all anchors: files of people take some hundred steps */
#define OBJECT_BYTES_MAX                                                                           \
    ((size_t)4 * 1024 * 1024) /* etcd refuses objects above 1.5 MiB; room for managed fields */
/* What Kubernetes itself allows, in bytes. A server that sends more is none. */
#define OBJECT_NAME_MAX 253u /* a DNS subdomain; a namespace is shorter */
#define OBJECT_UID_MAX 128u  /* a UUID has 36 */
#define LABEL_KEY_MAX 317u   /* a DNS subdomain, a slash and 63 signs; annotations have the same */
#define LABEL_VALUE_MAX 63u
#define ANNOTATIONS_BYTES_MAX ((size_t)256 * 1024)  /* all keys and values together */
#define REPLY_BYTES_MAX ((size_t)48 * 1024 * 1024)  /* a page of 500 large nodes */
#define REQUEST_BYTES_MAX ((size_t)3 * 1024 * 1024) /* kube-apiserver's own limit for a body */
