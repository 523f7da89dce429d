/*
 * node_series: reads a NodeSeries, and the series that a NodeMaintenance describes itself: which
 * machines.
 *
 * Both forms, one term at the top and the list `include`, become a list of terms. No terms to
 * include means every machine in scope; so a series with a problem has none and `problem` must be
 * looked at first. operation/series.h says which machines belong to it.
 */
#pragma once

#include "format/version_range.h"
#include "kinds/spec_read.h"
#include "kinds/store_kind.h"

#define SERIES_TERMS_MAX 32u  /* the schema's, as those below */
#define SERIES_NAMES_MAX 256u /* of a term */
#define SERIES_GLOBS_MAX 32u
#define SERIES_FACTS_MAX 16u

enum series_scope { SERIES_NODES, SERIES_EXTERNAL, SERIES_ALL };

struct series_facts {
    struct spec_texts os_id;
    struct version_range os_version;
    struct version_range kernel;
    struct version_range kubelet;
    struct spec_texts arch;
    struct spec_texts package_manager;
};

/* All parts that are given must hold. */
struct series_term {
    bool has_selector;
    struct selector selector;
    struct spec_texts names;
    struct spec_texts globs;
    bool has_facts;
    struct series_facts facts;
};

struct series_spec {
    bool given;
    enum series_scope scope;
    const struct series_term *include;
    uint32_t include_n; /* 0: everything in scope */
    const struct series_term *exclude;
    uint32_t exclude_n;
    struct spec_share sample; /* not given: all */
    struct str seed;
    usec_t min_age;
};

struct node_series {
    struct spec_meta meta;
    struct series_spec spec;
    struct spec_problem problem;
    struct str status; /* JSON */
};

bool series_facts_read(const struct spec_node *at, const char *key, struct series_facts *ret);
/* `seed` is what counts if none is given: the object's name. */
void series_spec_read(const struct spec_node *at, struct str seed, struct series_spec *ret);
void node_series_read(const struct jval *object, struct arena *out, struct node_series *ret);
/* For kube/store. */
extern const struct store_kind node_series_kind;
