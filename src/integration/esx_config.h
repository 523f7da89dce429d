/*
 * esx_config: what config/esx.yaml says. Keys and rules are the original's, and `wholeHost`.
 */
#pragma once

#include "format/ucfg.h"

#define ESX_ZONES_MAX 64u /* a zone is one byte, and a region has three */

struct esx_zone_login {
    struct str zone; /* the last byte of the zone label */
    struct str url;  /* with /sdk */
    struct str user;
    struct str password;
};

struct esx_config {
    usec_t period; /* between readings of an inventory, from start to start */
    double jitter; /* part of a period that is added at random */
    usec_t eviction_timeout;
    usec_t deletion_timeout;
    bool force;
    usec_t shutdown_period;
    usec_t shutdown_timeout;
    bool whole_host;
    bool insecure;
    struct ucfg_strs alarms;
    struct esx_zone_login logins[ESX_ZONES_MAX];
    uint32_t login_n;
};

/* The `read` of its integration_provider. */
void esx_config_read(const struct ucfg *u, void *ret, struct problems *problems);
